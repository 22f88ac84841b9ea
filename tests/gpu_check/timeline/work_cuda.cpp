#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <memory>
#include <span>

#include "allocator/timeline/sink.hpp"
#include "gpu_check/timeline/work.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "tools/gpu_check/facts/spin_cuda.hpp"
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
constexpr Lengths kMeasured{.shorter = microseconds{1000},
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
constexpr Lengths kSmall{.shorter = microseconds{200},
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

/// Owns a handle of CUDA's.
template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, cudaError_t (*)(Handle)>;

Owned<cudaEvent_t> make_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreate(&event), "cudaEventCreate");
  return {event, cudaEventDestroy};
}

Owned<cudaStream_t> make_stream() {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return {stream, cudaStreamDestroy};
}

/// What `enqueue` enqueues, captured as a graph.
Owned<cudaGraphExec_t> capture(cudaStream_t stream, const std::function<void()>& enqueue) {
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
  enqueue();
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  const Owned<cudaGraph_t> owned{graph, cudaGraphDestroy};
  cudaGraphExec_t exec = nullptr;
  check_cuda(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  return {exec, cudaGraphExecDestroy};
}

class Work {
 public:
  explicit Work(const Lengths& lengths) : lengths_(lengths) {}

  std::vector<Stretch> run() {
    const auto spin_for = [this](microseconds time) { return [=, this] { spin(stream(), time); }; };
    kernels("short kernel", lengths_.shorts, spin_for(lengths_.shorter));
    kernels("long kernel", lengths_.longs, spin_for(lengths_.longer));
    kernels("empty kernel", lengths_.empty, spin_for(microseconds{0}), false);
    kernels(
        "fill", lengths_.arrays, [this] { cuda::fill(stream(), x_, 1.0F); }, false);
    kernels("scale", lengths_.arrays, [this] { cuda::scale(stream(), -1.0F, x_); });
    kernels("add", lengths_.arrays, [this] { cuda::add(stream(), x_, y_); });
    const Owned<cudaGraphExec_t> graph = capture(stream(), [this] {
      for (std::uint64_t i = 0; i < lengths_.nodes; ++i) spin(stream(), lengths_.shorter);
    });
    kernels(
        "graph of kernels", lengths_.graphs,
        [&] { check_cuda(cudaGraphLaunch(graph.get(), stream()), "cudaGraphLaunch"); }, true,
        lengths_.nodes);
    copies(TimelineCopy::kToDevice, lengths_.copies, x_, host_, cudaMemcpyHostToDevice);
    copies(TimelineCopy::kFromDevice, lengths_.copies, host_, x_.first(host_.size()),
           cudaMemcpyDeviceToHost);
    copies(TimelineCopy::kOnDevice, lengths_.arrays, y_, x_, cudaMemcpyDeviceToDevice);
    return std::move(stretches_);
  }

 private:
  void kernels(const char* name, std::uint64_t launches, const std::function<void()>& enqueue,
               bool is_timed = true, std::uint64_t each = 1) {
    twice({.name = name, .is_timed = is_timed}, launches, each, enqueue);
  }
  void copies(TimelineCopy direction, std::uint64_t launches, std::span<float> to,
              std::span<float> from, cudaMemcpyKind kind) {
    const Stretch stretch{.name = "copy " + std::to_string(kind),
                          .kind = TimelineKind::kCopy,
                          .direction = direction,
                          .is_timed = true};
    twice(stretch, launches, 1, [=, this] {
      check_cuda(cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), kind, stream()),
                 "cudaMemcpyAsync");
    });
  }

  /// Runs it twice: the first operation loads code and so takes longer.
  void twice(const Stretch& what, std::uint64_t launches, std::uint64_t each,
             const std::function<void()>& enqueue) {
    Stretch first = what;
    first.name += ", the first";
    first.is_timed = false;
    launch(first, 1, each, enqueue);
    launch(what, launches, each, enqueue);
  }
  void launch(Stretch made, std::uint64_t launches, std::uint64_t each,
              const std::function<void()>& enqueue) {
    made.operations = launches * each;
    made.batch = static_cast<std::uint32_t>(stretches_.size() + 1);
    made.begin_ns = steady_now();
    {
      const TimelineScope scope(made.batch, __FILE__, __LINE__);
      check_cuda(cudaEventRecord(begin_.get(), stream()), "cudaEventRecord");
      for (std::uint64_t i = 0; i < launches; ++i) enqueue();
      check_cuda(cudaEventRecord(end_.get(), stream()), "cudaEventRecord");
    }
    check_cuda(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    made.end_ns = steady_now();
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "cudaEventElapsedTime");
    made.event_ms = static_cast<double>(ms);
    stretches_.push_back(std::move(made));
  }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }

  Lengths lengths_;
  PlainMemory memory_;
  std::span<float> x_ = memory_.on_device(lengths_.floats);
  std::span<float> y_ = memory_.on_device(lengths_.floats);
  std::span<float> host_ = memory_.on_host(lengths_.host_floats);
  Owned<cudaStream_t> stream_ = make_stream();
  Owned<cudaEvent_t> begin_ = make_event();
  Owned<cudaEvent_t> end_ = make_event();
  std::vector<Stretch> stretches_;
};

}  // namespace

std::vector<Stretch> do_work(WorkSize size) {
  return Work(size == WorkSize::kSmall ? kSmall : kMeasured).run();
}

}  // namespace weir::gpu_check
