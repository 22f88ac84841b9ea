#pragma once

// What the training loop without Weir holds of a GPU, with plain runtime calls.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error_cuda.hpp"

namespace weir {

/// Device memory and page-locked host memory, allocated piece by piece and freed at the end, when
/// the device must be done with it.
class PlainMemory {
 public:
  /// Throws CudaError if the device has no room.
  [[nodiscard]] std::span<float> on_device(std::size_t count) {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, count * sizeof(float)), "cudaMalloc");
    device_.emplace_back(memory);
    taken_ += Bytes{count * sizeof(float)};
    return {static_cast<float*>(memory), count};
  }
  [[nodiscard]] std::span<float> on_host(std::size_t count) {
    void* memory = nullptr;
    check_cuda(cudaHostAlloc(&memory, count * sizeof(float), cudaHostAllocDefault),
               "cudaHostAlloc");
    host_.emplace_back(memory);
    pinned_ += Bytes{count * sizeof(float)};
    return {static_cast<float*>(memory), count};
  }
  [[nodiscard]] Bytes taken() const noexcept { return taken_; }    ///< on the device
  [[nodiscard]] Bytes pinned() const noexcept { return pinned_; }  ///< on the host

 private:
  struct FreeDevice {
    void operator()(void* memory) const noexcept { (void)take_cuda_error(cudaFree(memory)); }
  };
  struct FreeHost {
    void operator()(void* memory) const noexcept { (void)take_cuda_error(cudaFreeHost(memory)); }
  };
  std::vector<std::unique_ptr<void, FreeDevice>> device_;
  std::vector<std::unique_ptr<void, FreeHost>> host_;
  Bytes taken_{};
  Bytes pinned_{};
};

/// An event without timing.
class PlainEvent {
 public:
  PlainEvent() {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming),
               "cudaEventCreateWithFlags");
  }
  ~PlainEvent() { (void)take_cuda_error(cudaEventDestroy(event_)); }
  PlainEvent(const PlainEvent&) = delete;
  PlainEvent& operator=(const PlainEvent&) = delete;

  void record(cudaStream_t stream) {
    check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  /// Makes `stream` wait on the device.
  void hold_back(cudaStream_t stream) const {
    check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }
  /// Waits on the host; returns at once if nothing was recorded.
  void wait() const { check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace weir
