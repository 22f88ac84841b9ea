#pragma once

/// @file
/// A stream of a GPU, and its CUDA stream for closures that launch kernels.

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

#include "allocator/progress/progress_cuda.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

/// Returns the CUDA stream that `stream` enqueues on. Its device is current while a submitted
/// closure runs. Undefined for a stream of another kind of device.
[[nodiscard]] cudaStream_t cuda_stream(Stream& stream) noexcept;

/// Owns a CUDA stream that does not synchronize with the default stream.
class OwnedCudaStream {
 public:
  /// Creates it on GPU number `device`. Throws CudaError.
  explicit OwnedCudaStream(int device);
  OwnedCudaStream(OwnedCudaStream&& other) noexcept;  ///< leaves `other` empty
  ~OwnedCudaStream();
  OwnedCudaStream& operator=(OwnedCudaStream&&) = delete;
  /// Returns the runtime's handle.
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

/// Closures enqueue kernels here on the submitting thread; a thread of the stream finishes each
/// task when the device is done with it. Thread-safe.
class CudaStream final : private CudaCompletion, public Stream {
 public:
  /// On `users`, which must outlive it, or on a CUDA stream of its own. `progress` is of the same
  /// device and must outlive it.
  CudaStream(int device, std::optional<cudaStream_t> users, StreamRole role,
             CudaProgress& progress);
  /// Waits until its work is done or the device is lost.
  ~CudaStream() override;

  /// Blocks the caller until the copy is almost or entirely done if host memory is not page-locked.
  void copy(void* to, const void* from, Bytes size) override;
  /// By a function of the host in stream order.
  void give(Signal& signal) override;
  /// The same. The driver runs such functions one after the other, perhaps for all streams of the
  /// process, and lets none wait for work of the device that need not come before it. So whoever
  /// gives and awaits signals does both on one stream.
  void await(Signal& signal) override;
  /// Lets the task enqueue its work, and returns the sequence that is passed once the device is
  /// done. On a lost device, and while the program captures its stream, throws CudaError and
  /// enqueues nothing.
  std::uint64_t enqueue(Task& task);
  /// Returns when all of its tasks are told, whatever became of them.
  void drain() noexcept { followed_.drain(); }
  /// The runtime's handle that closures enqueue on.
  [[nodiscard]] cudaStream_t get() const noexcept {
    return instead_ != nullptr ? instead_ : stream_;
  }
  /// Lets the running closure enqueue on `other`, to capture it there; null ends that. Its own
  /// stream must not be captured: other threads record events on it.
  void enqueue_on(cudaStream_t other) noexcept { instead_ = other; }
  /// Device time of its tasks so far.
  [[nodiscard]] std::chrono::nanoseconds busy() const noexcept { return followed_.busy(); }

 private:
  CudaStream(int device, std::optional<OwnedCudaStream> own,
             const std::optional<cudaStream_t>& users, StreamRole role, CudaProgress& progress);
  void completed(void* tag, const CudaWorkTime& time) noexcept override;
  void serve();

  const int device_;
  const std::optional<OwnedCudaStream> own_;
  const cudaStream_t stream_;
  cudaStream_t instead_ = nullptr;  ///< only during a closure, on its thread
  FollowedCudaStream& followed_;
  std::atomic<std::uint32_t> news_{0};  ///< changes with each task; the thread sleeps on it
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace weir
