#pragma once

// What observes allocations: histories, trackers, the profiler. The allocation path calls this and
// holds no lock: a context recorder takes Python's interpreter lock, and a thread that has that one
// may be waiting here for memory.

#include <cstddef>
#include <memory>

#include "tools/torch/plug/versions.hpp"

namespace weir::torch_plug {

/// A tensor's memory that Weir serves.
struct Block {
  std::size_t bytes = 0;      ///< rounded
  std::size_t requested = 0;  ///< as asked for
  cudaStream_t stream = nullptr;
  std::shared_ptr<c10::GatheredContext> context;  ///< where it was allocated; null if not recorded
  c10::DeviceIndex device = 0;
};

/// Thread-safe.
class Recorder {
 public:
  /// Returns where the caller is, if that is recorded: asked before an allocation.
  [[nodiscard]] std::shared_ptr<c10::GatheredContext> context() { return nullptr; }
  /// Told after `block` was allocated at `address`. `allocated` bytes are now out on its device.
  void on_allocation(const void* address, const Block& block, std::int64_t allocated) {
    (void)address, (void)block, (void)allocated;
  }
  /// Told before the memory goes back to Weir. `allocated` bytes are still out.
  void on_free(const void* address, const Block& block, std::int64_t allocated) {
    (void)address, (void)block, (void)allocated;
  }
  /// Told that `block` cannot be allocated, before the error is thrown. The device has `free` of
  /// `total` bytes.
  void on_failure(const Block& block, std::size_t total, std::size_t free) {
    (void)block, (void)total, (void)free;
  }
};

}  // namespace weir::torch_plug
