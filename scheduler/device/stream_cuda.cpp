#include "scheduler/device/stream_cuda.hpp"

#include <utility>

#include "allocator/base/error_cuda.hpp"
#include "allocator/base/log.hpp"
#include "scheduler/device/serves_device.hpp"

namespace weir {

cudaStream_t cuda_stream(Stream& stream) noexcept { return static_cast<CudaStream&>(stream).get(); }

OwnedCudaStream::OwnedCudaStream(int device) : device_(device) {
  const CudaScope scope(device);
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
             "cudaStreamCreateWithFlags");
}

OwnedCudaStream::OwnedCudaStream(OwnedCudaStream&& other) noexcept
    : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}

OwnedCudaStream::~OwnedCudaStream() {
  if (stream_ == nullptr) return;
  try {
    const CudaScope scope(device_);
    check_cuda(cudaStreamDestroy(stream_), "cudaStreamDestroy");
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("a CUDA stream is leaked: ") + error.what());
  }
}

namespace {

std::optional<OwnedCudaStream> own_unless(const std::optional<cudaStream_t>& users, int device) {
  if (users) return std::nullopt;
  return OwnedCudaStream(device);
}

}  // namespace

CudaStream::CudaStream(int device, std::optional<cudaStream_t> users, StreamRole role,
                       CudaProgress& progress)
    : CudaStream(device, own_unless(users, device), users, role, progress) {}

CudaStream::CudaStream(int device, std::optional<OwnedCudaStream> own,
                       const std::optional<cudaStream_t>& users, StreamRole role,
                       CudaProgress& progress)
    : Stream(progress.add(own ? own->get() : *users, own ? CudaWork::kMarked : CudaWork::kShared,
                          this),
             role),
      device_(device),
      own_(std::move(own)),
      stream_(own_ ? own_->get() : *users),
      followed_(progress.followed(id())),
      thread_([this] { serve(); }) {}

CudaStream::~CudaStream() {
  closing_.store(true);
  news_.fetch_add(1);
  news_.notify_one();
  thread_.join();
}

void CudaStream::copy(void* to, const void* from, Bytes size) {
  check_cuda(cudaMemcpyAsync(to, from, size.count, cudaMemcpyDefault, get()), "cudaMemcpyAsync");
}

void CudaStream::give(Signal& signal) {
  const auto call = [](void* given) { static_cast<Signal*>(given)->give(); };
  check_cuda(cudaLaunchHostFunc(get(), call, &signal), "cudaLaunchHostFunc");
}

void CudaStream::await(Signal& signal) {
  const auto call = [](void* awaited) { static_cast<Signal*>(awaited)->wait(); };
  check_cuda(cudaLaunchHostFunc(get(), call, &signal), "cudaLaunchHostFunc");
}

std::uint64_t CudaStream::enqueue(Task& task) {
  if (followed_.lost() != cudaSuccess) throw CudaError("cudaEventQuery", followed_.lost());
  const CudaScope scope(device_);
  followed_.require_not_captured("submit");
  followed_.expect_mark();  // nothing may fail once the task has run
  const auto since = std::chrono::steady_clock::now();
  {
    const ServesDevice serves;
    task.run(*this);
  }
  const std::uint64_t sequence = followed_.mark(&task, since);
  news_.fetch_add(1);
  news_.notify_one();
  return sequence;
}

void CudaStream::completed(void* tag, const CudaWorkTime& time) noexcept {
  static_cast<Task*>(tag)->finished(
      {.device_time = time.device_time, .gap = time.gap, .starved = time.starved, .end = time.end});
}

void CudaStream::serve() {
  const ServesDevice serves;
  // For this thread's lifetime: on another device the calls below would create a context there.
  (void)take_cuda_error(cudaSetDevice(device_));
  for (;;) {
    const std::uint32_t seen = news_.load();
    if (followed_.await_oldest()) continue;
    if (closing_.load()) return followed_.drain();
    news_.wait(seen);
  }
}

}  // namespace weir
