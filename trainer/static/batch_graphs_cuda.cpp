// CUDA graphs, captured on a stream of their own.

#include <algorithm>
#include <atomic>
#include <list>
#include <utility>

#include "allocator/base/error_cuda.hpp"
#include "allocator/base/log.hpp"
#include "scheduler/device/stream_cuda.hpp"
#include "trainer/static/batch_graphs.hpp"

namespace weir {
namespace {

/// Destroys what the driver made, or logs why it cannot.
template <typename Handle>
class Owned {
 public:
  Owned(int device, cudaError_t (*destroy)(Handle)) noexcept : device_(device), destroy_(destroy) {}
  ~Owned() {
    if (handle_ == nullptr) return;
    try {
      const CudaScope scope(device_);
      check_cuda(destroy_(handle_), "destroying a graph");
    } catch (const std::exception& error) {
      log(LogLevel::kError, std::string("a CUDA graph is leaked: ") + error.what());
    }
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  [[nodiscard]] Handle get() const noexcept { return handle_; }
  [[nodiscard]] Handle* put() noexcept { return &handle_; }

 private:
  const int device_;
  cudaError_t (*const destroy_)(Handle);
  Handle handle_ = nullptr;
};

using Executable = Owned<cudaGraphExec_t>;

/// While it lives, closures on `stream` enqueue on `captured` instead.
class EnqueuesOn {
 public:
  EnqueuesOn(Stream& stream, cudaStream_t captured) : stream_(static_cast<CudaStream&>(stream)) {
    stream_.enqueue_on(captured);
  }
  ~EnqueuesOn() { stream_.enqueue_on(nullptr); }
  EnqueuesOn(const EnqueuesOn&) = delete;
  EnqueuesOn& operator=(const EnqueuesOn&) = delete;

 private:
  CudaStream& stream_;
};

class CudaGraphs final : public BatchGraphs {
 public:
  explicit CudaGraphs(int ordinal) : ordinal_(ordinal), stream_(ordinal) {}

  std::shared_ptr<const void> launch(Stream& stream, GraphKey&& key,
                                     const std::function<void()>& work) override {
    auto known = std::ranges::find(kept_, key, &Kept::key);
    if (known == kept_.end()) {
      known = kept_.insert(known, {std::move(key), capture(stream, work)});
      captures_.fetch_add(1, std::memory_order_relaxed);
    }
    kept_.splice(kept_.begin(), kept_, known);
    if (kept_.size() > kKept) kept_.pop_back();
    check_cuda(cudaGraphLaunch(known->graph->get(), cuda_stream(stream)), "cudaGraphLaunch");
    return known->graph;
  }

  [[nodiscard]] std::uint64_t captures() const noexcept override {
    return captures_.load(std::memory_order_relaxed);
  }

 private:
  struct Kept {
    GraphKey key;
    std::shared_ptr<Executable> graph;
  };

  [[nodiscard]] std::shared_ptr<Executable> capture(Stream& stream,
                                                    const std::function<void()>& work) {
    Owned<cudaGraph_t> graph(ordinal_, cudaGraphDestroy);
    // Relaxed: neither does the capture refuse other threads' calls, nor do they break it.
    check_cuda(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeRelaxed),
               "cudaStreamBeginCapture");
    try {
      const EnqueuesOn own(stream, stream_.get());
      work();
    } catch (...) {
      // The stream must be usable again; what was captured is dropped, and so is its error.
      (void)take_cuda_error(cudaStreamEndCapture(stream_.get(), graph.put()));
      throw;
    }
    check_cuda(cudaStreamEndCapture(stream_.get(), graph.put()), "cudaStreamEndCapture");
    auto executable = std::make_shared<Executable>(ordinal_, cudaGraphExecDestroy);
    check_cuda(cudaGraphInstantiateWithFlags(executable->put(), graph.get(), 0),
               "cudaGraphInstantiateWithFlags");
    return executable;
  }

  const int ordinal_;
  const OwnedCudaStream stream_;
  std::list<Kept> kept_;  ///< used last first
  std::atomic<std::uint64_t> captures_{0};
};

}  // namespace

std::shared_ptr<BatchGraphs> make_cuda_graphs(int ordinal) {
  return std::make_shared<CudaGraphs>(ordinal);
}

}  // namespace weir
