#pragma once

// Allocates tensors from the pool, or small ones from a slab over it. Charges the allocating batch,
// and lets an allocation wait for other open batches before it fails.

#include <array>
#include <cstdint>
#include <string_view>

#include "allocator/pool.hpp"
#include "allocator/slab_allocator.hpp"
#include "scheduler/admission/admission.hpp"
#include "scheduler/device/device.hpp"

namespace weir {

/// The memory of one tensor, and what its release must know.
struct TensorBlock {
  void* data = nullptr;
  SlabAllocator::Slab* slab = nullptr;  ///< null: a block of the pool
  Bytes block{};                        ///< what the batch was charged for it
  StreamRole home = StreamRole::kCompute;
  TicketRef owner{};                         ///< the batch that allocated it
  std::array<bool, kStreamRoles> used_by{};  ///< streams other than home that used it
};

class TensorMemory {
 public:
  TensorMemory(Pool& pool, DeviceBackend& device, Admission& admission, Policy policy)
      : pool_(pool),
        device_(device),
        admission_(admission),
        policy_(policy),
        slabs_(pool, device.progress()) {}

  /// Returns memory for work on `home` from now on. Waits as the policy allows, for submitted work
  /// or for the grace, without a lock. Throws OutOfMemory, and Cancelled if `owner.stop` ended a
  /// wait or was requested before one.
  [[nodiscard]] TensorBlock allocate(Bytes bytes, StreamRole home, std::string_view label,
                                     const Owner& owner);
  /// Records that work on `role` is about to use it. A throw changes nothing. Calls for one
  /// allocation must not overlap.
  void note_use(TensorBlock& allocation, StreamRole role);
  /// Frees it in the order of every stream that used it.
  void release(const TensorBlock& allocation) noexcept;

 private:
  [[nodiscard]] TensorBlock try_allocate(Bytes bytes, StreamRole home, std::string_view label,
                                         Attempt& attempt);

  Pool& pool_;
  DeviceBackend& device_;
  Admission& admission_;
  const Policy policy_;
  SlabAllocator slabs_;
};

}  // namespace weir
