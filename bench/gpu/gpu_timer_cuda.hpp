#pragma once

// Memory and timers for GPU benchmarks.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "allocator/base/error_cuda.hpp"

namespace weir::bench {

/// Zeroed device memory for `size` elements.
template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t size) : size_(size) {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, size * sizeof(T)), "cudaMalloc");
    data_ = static_cast<T*>(memory);
    check_cuda(cudaMemset(memory, 0, size * sizeof(T)), "cudaMemset");
  }
  ~DeviceBuffer() { (void)take_cuda_error(cudaFree(data_)); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  [[nodiscard]] std::span<T> first(std::size_t count) { return {data_, count}; }
  [[nodiscard]] std::span<T> all() { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

/// A stream and the events that time work on it.
class GpuTimer {
 public:
  GpuTimer() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check_cuda(cudaEventCreate(&begin_), "cudaEventCreate");
    check_cuda(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~GpuTimer() {
    (void)take_cuda_error(cudaEventDestroy(end_));
    (void)take_cuda_error(cudaEventDestroy(begin_));
    (void)take_cuda_error(cudaStreamDestroy(stream_));
  }
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  [[nodiscard]] cudaStream_t stream() const { return stream_; }

  /// Returns the microseconds of each of `count` runs of what `enqueue` enqueues on the stream. A
  /// few warm-up runs do not count.
  template <typename Enqueue>
  [[nodiscard]] std::vector<double> runs(const Enqueue& enqueue, int count) {
    for (int i = 0; i < kWarmUps; ++i) enqueue();
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      check_cuda(cudaEventRecord(begin_, stream_), "cudaEventRecord");
      enqueue();
      check_cuda(cudaEventRecord(end_, stream_), "cudaEventRecord");
      check_cuda(cudaEventSynchronize(end_), "cudaEventSynchronize");
      float milliseconds = 0;
      check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
      times.push_back(1e3 * static_cast<double>(milliseconds));
    }
    return times;
  }

 private:
  static constexpr int kWarmUps = 5;

  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace weir::bench
