#pragma once

// Memory, timers and lists of timed kernels for GPU benchmarks.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/error_cuda.hpp"
#include "bench/gpu/gpu_kernels.hpp"
#include "tools/program/median.hpp"

namespace weir::bench {

inline constexpr double kFloat = sizeof(float);

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

/// Times kernels, one after the other.
class KernelTimes {
 public:
  /// Each kernel runs `runs` times. A copy moves `copied_bytes` in a microsecond.
  explicit KernelTimes(int runs, double copied_bytes = 1)
      : runs_(runs), copied_bytes_(copied_bytes) {}

  [[nodiscard]] cudaStream_t stream() const { return timer_.stream(); }
  /// A call of `memory` from now on has this rate.
  void set_copied_bytes(double copied_bytes) { copied_bytes_ = copied_bytes; }

  /// Adds a row without a floor, of what `enqueue` enqueues on the stream.
  template <typename Enqueue>
  KernelTime& timed(std::string name, std::string shape, const Enqueue& enqueue) {
    const std::vector<double> times = timer_.runs(enqueue, runs_);
    KernelTime& time = times_.emplace_back();
    time.name = std::move(name);
    time.shape = std::move(shape);
    time.microseconds = median(times);
    time.fastest = std::ranges::min(times);
    return time;
  }
  /// Adds a memory-bound kernel. Its floor is its bytes at the rate of a copy.
  template <typename Enqueue>
  void memory(std::string name, std::string shape, double bytes, const Enqueue& enqueue) {
    KernelTime& time = timed(std::move(name), std::move(shape), enqueue);
    time.bytes = bytes;
    time.floor_of = "copy";
    time.floor = bytes / copied_bytes_;
  }
  [[nodiscard]] std::vector<KernelTime> take() { return std::move(times_); }

 private:
  const int runs_;
  double copied_bytes_;
  GpuTimer timer_;
  std::vector<KernelTime> times_;
};

}  // namespace weir::bench
