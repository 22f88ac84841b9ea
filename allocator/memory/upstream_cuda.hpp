#pragma once

/// @file
/// Memory of a GPU, and host memory that a GPU copies to and from while the host goes on.

#include "allocator/memory/upstream.hpp"

namespace weir {

/// What the driver says of a GPU's memory, which other programs use too.
struct CudaMemory {
  Bytes total;  ///< all of it
  Bytes free;   ///< what nobody has now
};
/// Of GPU number `device`. Makes its context, which takes some. Throws CudaError.
[[nodiscard]] CudaMemory cuda_memory_info(int device);

/// Device memory from cudaMalloc. Each call takes tens of microseconds, and a free may wait for the
/// device: a pool stands between this and a training loop.
class CudaUpstream final : public Upstream {
 public:
  /// Of GPU number `device`, at most `capacity` bytes at a time: its total where that is zero.
  /// Throws CudaError.
  explicit CudaUpstream(int device, Bytes capacity = {});
  /// Null where the driver is out of memory; CudaError for any other fault.
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  [[nodiscard]] Bytes capacity() const override { return gauge_.capacity(); }
  /// What the driver has left now, at most the rest of the capacity.
  [[nodiscard]] Bytes available() const override;
  /// Pages of cuMemCreate, mapped into addresses of cuMemAddressReserve: memory of this device that
  /// no other GPU has access to and no other process can be given. Null where the driver or the
  /// device has no virtual memory management.
  [[nodiscard]] PageSource* pages() noexcept override;
  /// Out now.
  [[nodiscard]] Bytes used() const noexcept { return gauge_.used(); }

 private:
  const int device_;
  CapacityGauge gauge_;
  PageSourceOnDemand pages_;
};

/// Page-locked host memory from cudaHostAlloc: the only kind that is copied while the host goes on.
/// Every GPU knows it, and a call takes milliseconds for what the kernel has to lock.
class PinnedUpstream final : public Upstream {
 public:
  /// At most `capacity` bytes at a time. `device` is the current one during the calls.
  PinnedUpstream(int device, Bytes capacity) noexcept : device_(device), gauge_(capacity) {}
  /// Null where the system has no more to lock; CudaError for any other fault.
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  [[nodiscard]] Bytes capacity() const override { return gauge_.capacity(); }
  /// Out now.
  [[nodiscard]] Bytes used() const noexcept { return gauge_.used(); }

 private:
  const int device_;
  CapacityGauge gauge_;
};

}  // namespace weir
