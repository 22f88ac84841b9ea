#pragma once

/// @file
/// A stream of a GPU, and the CUDA stream behind it for submitted closures that launch kernels.

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "allocator/progress/progress_cuda.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

/// The CUDA stream that `stream` enqueues on. Its device is the current one while a submitted
/// closure runs. Undefined for a stream of another kind of device.
[[nodiscard]] cudaStream_t cuda_stream(Stream& stream) noexcept;

/// A CUDA stream that does not wait for the default stream; made and destroyed with this.
class OwnedCudaStream {
 public:
  /// On GPU number `device`. CudaError.
  explicit OwnedCudaStream(int device);
  OwnedCudaStream(OwnedCudaStream&& other) noexcept;  ///< leaves `other` without one
  ~OwnedCudaStream();
  OwnedCudaStream& operator=(OwnedCudaStream&&) = delete;
  /// The runtime's.
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

/// A closure enqueues its kernels here while it is submitted, on the thread that submits it; a
/// thread of the stream tells its task when the device is done with them. Thread-safe.
class CudaStream final : private CudaCompletion, public Stream {
 public:
  /// `progress`, of the same device, outlives it.
  CudaStream(int device, OwnedCudaStream stream, StreamRole role, CudaProgress& progress);
  /// Waits until its work is done, or the device lost: its thread ends no earlier.
  ~CudaStream() override;

  /// Host memory that is not page-locked holds the caller until the copy is done, or nearly.
  void copy(void* to, const void* from, Bytes size) override;
  /// Lets the task enqueue its work; the sequence that is passed once the device is done with it.
  /// CudaError, with nothing enqueued, where the device is lost.
  std::uint64_t enqueue(Task& task);
  /// Returns when all of its tasks are told, whatever became of them.
  void drain() noexcept { lane_.drain(); }
  /// The runtime's.
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_.get(); }
  /// Device time of its tasks so far.
  [[nodiscard]] std::chrono::nanoseconds busy() const noexcept { return lane_.busy(); }

 private:
  void completed(void* tag, std::chrono::nanoseconds device_time) noexcept override;
  void serve();

  const int device_;
  const OwnedCudaStream stream_;
  CudaLane& lane_;
  std::atomic<std::uint32_t> news_{0};  ///< changes with each task; the thread sleeps on it
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace weir
