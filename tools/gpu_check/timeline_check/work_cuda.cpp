#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "allocator/timeline/sink.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "tools/gpu_check/facts/spin_cuda.hpp"
#include "tools/gpu_check/timeline_check/work.hpp"
#include "trainer/plain/plain_memory_cuda.hpp"

namespace weir::gpu_check {
namespace {

using std::chrono::microseconds;

/// Lengths of stretches. A timed operation takes at least 0.8 ms on memory of 5 TB/s: a gap of 4 us
/// is then half a percent, and 2% in all is allowed. A fill takes half as long and is only counted.
struct Lengths {
  microseconds shorter, longer;  ///< of a spin kernel
  std::uint64_t shorts, longs;   ///< number of each
  std::size_t floats;            ///< of an array on the device
  std::uint64_t arrays;          ///< kernels and copies on the device that process one array
  std::size_t host_floats;
  std::uint64_t copies;  ///< in each direction
  std::uint64_t empty;   ///< kernels that end at once
  std::uint64_t nodes, graphs;
};
constexpr Lengths kMeasuredLengths{.shorter = microseconds{1000},
                                   .longer = microseconds{5000},
                                   .shorts = 200,
                                   .longs = 20,
                                   .floats = std::size_t{1} << 29U,
                                   .arrays = 100,
                                   .host_floats = std::size_t{1} << 26U,
                                   .copies = 15,
                                   .empty = 2000,
                                   .nodes = 8,
                                   .graphs = 10};
constexpr Lengths kSmallLengths{.shorter = microseconds{200},
                                .longer = microseconds{1000},
                                .shorts = 5,
                                .longs = 2,
                                .floats = std::size_t{1} << 12U,
                                .arrays = 5,
                                .host_floats = std::size_t{1} << 12U,
                                .copies = 5,
                                .empty = 10,
                                .nodes = 3,
                                .graphs = 2};

std::uint64_t steady_now() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

class TimedEvent {
 public:
  TimedEvent() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~TimedEvent() { (void)take_cuda_error(cudaEventDestroy(event_)); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  void record(cudaStream_t stream) {
    check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  void wait() const { check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  [[nodiscard]] double ms_since(const TimedEvent& begin) const {
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin.event_, event_), "cudaEventElapsedTime");
    return static_cast<double>(ms);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class WorkStream {
 public:
  WorkStream() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~WorkStream() { (void)take_cuda_error(cudaStreamDestroy(stream_)); }
  WorkStream(const WorkStream&) = delete;
  WorkStream& operator=(const WorkStream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// What `enqueue` enqueues, captured as a graph.
class WorkGraph {
 public:
  WorkGraph(cudaStream_t stream, const std::function<void()>& enqueue) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture");
    enqueue();
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t code = cudaGraphInstantiate(&exec_, graph, 0);
    (void)take_cuda_error(cudaGraphDestroy(graph));
    check_cuda(code, "cudaGraphInstantiate");
  }
  ~WorkGraph() { (void)take_cuda_error(cudaGraphExecDestroy(exec_)); }
  WorkGraph(const WorkGraph&) = delete;
  WorkGraph& operator=(const WorkGraph&) = delete;
  void launch(cudaStream_t stream) const {
    check_cuda(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

/// How to make a stretch: `launches` calls of `enqueue`, each of `each` operations.
struct Launches {
  std::string name;
  StretchKind kind = StretchKind::kKernels;
  std::uint64_t launches = 0;
  bool is_timed = true;
  std::uint64_t each = 1;
};

class Work {
 public:
  explicit Work(const Lengths& lengths) : lengths_(lengths) {}

  std::vector<Stretch> run() {
    launch_spins();
    launch_arrays();
    launch_graph();
    launch_copies();
    return std::move(stretches_);
  }

 private:
  void launch_spins() {
    const auto spin_for = [this](microseconds time) { return [=, this] { spin(stream(), time); }; };
    stretch({"short kernel", StretchKind::kKernels, lengths_.shorts}, spin_for(lengths_.shorter));
    stretch({"long kernel", StretchKind::kKernels, lengths_.longs}, spin_for(lengths_.longer));
    stretch({"empty kernel", StretchKind::kKernels, lengths_.empty, false},
            spin_for(microseconds{0}));
  }
  void launch_arrays() {
    stretch({"fill", StretchKind::kKernels, lengths_.arrays, false},
            [this] { cuda::fill(stream(), x_, 1.0F); });
    stretch({"scale", StretchKind::kKernels, lengths_.arrays},
            [this] { cuda::scale(stream(), -1.0F, x_); });
    stretch({"axpy", StretchKind::kKernels, lengths_.arrays},
            [this] { cuda::axpy(stream(), 0.5F, x_, y_); });
  }
  void launch_graph() {
    const WorkGraph graph(stream(), [this] {
      for (std::uint64_t i = 0; i < lengths_.nodes; ++i) spin(stream(), lengths_.shorter);
    });
    stretch({"graph of kernels", StretchKind::kKernels, lengths_.graphs, true, lengths_.nodes},
            [&] { graph.launch(stream()); });
  }
  void launch_copies() {
    const auto copy = [this](std::span<float> to, std::span<float> from, cudaMemcpyKind kind) {
      return [=, this] {
        check_cuda(cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), kind, stream()),
                   "cudaMemcpyAsync");
      };
    };
    stretch({"copy to the device", StretchKind::kToDevice, lengths_.copies},
            copy(x_, host_, cudaMemcpyHostToDevice));
    stretch({"copy from the device", StretchKind::kFromDevice, lengths_.copies},
            copy(host_, x_.first(host_.size()), cudaMemcpyDeviceToHost));
    stretch({"copy on the device", StretchKind::kOnDevice, lengths_.arrays},
            copy(y_, x_, cudaMemcpyDeviceToDevice));
  }

  /// Runs it twice: the first operation loads code and so takes longer.
  void stretch(const Launches& what, const std::function<void()>& enqueue) {
    Launches once = what;
    once.name += ", the first";
    once.launches = 1;
    once.is_timed = false;
    launch(once, enqueue);
    launch(what, enqueue);
  }
  void launch(const Launches& what, const std::function<void()>& enqueue) {
    Stretch made{.name = what.name,
                 .kind = what.kind,
                 .operations = what.launches * what.each,
                 .batch = static_cast<std::uint32_t>(stretches_.size() + 1),
                 .is_timed = what.is_timed,
                 .begin_ns = steady_now()};
    {
      const TimelineScope scope(made.batch, __FILE__, __LINE__);
      begin_.record(stream());
      for (std::uint64_t i = 0; i < what.launches; ++i) enqueue();
      end_.record(stream());
    }
    end_.wait();
    made.end_ns = steady_now();
    made.event_ms = end_.ms_since(begin_);
    stretches_.push_back(std::move(made));
  }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }

  Lengths lengths_;
  PlainMemory memory_;
  std::span<float> x_ = memory_.on_device(lengths_.floats);
  std::span<float> y_ = memory_.on_device(lengths_.floats);
  std::span<float> host_ = memory_.on_host(lengths_.host_floats);
  WorkStream stream_;
  TimedEvent begin_;
  TimedEvent end_;
  std::vector<Stretch> stretches_;
};

}  // namespace

std::string why_no_gpu() {
  int devices = 0;
  const cudaError_t code = take_cuda_error(cudaGetDeviceCount(&devices));
  if (code != cudaSuccess) return describe_cuda_error(code);
  return devices > 0 ? "" : "the driver knows of none";
}

std::vector<Stretch> do_work(WorkSize size) {
  return Work(size == WorkSize::kSmall ? kSmallLengths : kMeasuredLengths).run();
}

}  // namespace weir::gpu_check
