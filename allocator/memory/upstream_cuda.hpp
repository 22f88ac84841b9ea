#pragma once

/// @file
/// GPU memory, and host memory that a GPU copies while the host continues.

#include "allocator/memory/upstream.hpp"

namespace weir {

/// A GPU's memory as the driver reports it. Other programs use it too.
struct CudaMemory {
  Bytes total;  ///< the device's total
  Bytes free;   ///< free now
};
/// Queries GPU number `device`. Creates its context, which takes some memory. Throws CudaError.
[[nodiscard]] CudaMemory cuda_memory_info(int device);

/// Device memory from cudaMalloc. Each call takes tens of microseconds, and a free may wait for the
/// device. So a training loop uses a pool over it.
class CudaUpstream final : public Upstream {
 public:
  /// Hands out at most `capacity` bytes of GPU number `device` at a time; zero means its total.
  /// Throws CudaError.
  explicit CudaUpstream(int device, Bytes capacity = {});
  /// Returns null if the driver is out of memory. Throws CudaError for any other fault.
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  [[nodiscard]] Bytes capacity() const override { return gauge_.capacity(); }
  /// Returns what the driver has free now, at most the rest of the capacity.
  [[nodiscard]] Bytes available() const override;
  /// Returns pages of cuMemCreate, mapped into addresses of cuMemAddressReserve. No other GPU or
  /// process can have this memory. Returns null if the driver or the device has no virtual memory
  /// management.
  [[nodiscard]] PageSource* pages() noexcept override;
  /// Returns the bytes in use.
  [[nodiscard]] Bytes used() const noexcept { return gauge_.used(); }

 private:
  const int device_;
  CapacityGauge gauge_;
  PageSourceOnDemand pages_;
};

/// Page-locked host memory from cudaHostAlloc: only this kind is copied while the host continues.
/// Every GPU can use it. A call takes milliseconds to lock pages.
class PinnedUpstream final : public Upstream {
 public:
  /// Hands out at most `capacity` bytes at a time. Makes `device` current during the calls.
  PinnedUpstream(int device, Bytes capacity) noexcept : device_(device), gauge_(capacity) {}
  /// Returns null if the system cannot lock more. Throws CudaError for any other fault.
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  [[nodiscard]] Bytes capacity() const override { return gauge_.capacity(); }
  /// Returns the bytes in use.
  [[nodiscard]] Bytes used() const noexcept { return gauge_.used(); }

 private:
  const int device_;
  CapacityGauge gauge_;
};

}  // namespace weir
