#pragma once

// Where the memory of tensors comes from: the pool, or for small ones a slab over it. It charges
// the batch that allocates, and lets an allocation wait for other open batches before it fails.

#include <array>
#include <cstdint>
#include <string_view>

#include "allocator/pool.hpp"
#include "allocator/slab.hpp"
#include "scheduler/admission/admission.hpp"
#include "scheduler/device/device.hpp"

namespace weir {

/// The memory of one tensor and who is to be told of its end.
struct Allocation {
  void* data = nullptr;
  Slab::Chunk* chunk = nullptr;  ///< null: a block of the pool
  Bytes block{};                 ///< what the batch was charged for it
  StreamRole home = StreamRole::kCompute;
  TicketRef owner{};                         ///< the batch that allocated it
  std::array<bool, kStreamRoles> used_by{};  ///< streams but home with work that uses it
};

/// Ends the message of a Cancelled that a request for memory threw.
inline constexpr const char* kMemoryWaitCancelled = ": the wait for memory was cancelled";

class TensorMemory {
 public:
  TensorMemory(Pool& pool, DeviceBackend& device, Admission& admission, Policy policy)
      : pool_(pool),
        device_(device),
        admission_(admission),
        policy_(policy),
        slab_(pool, device.progress()) {}

  /// Memory for work on `home` from now on. May wait as the policy allows, for submitted work or
  /// for the grace; holds no lock meanwhile. Throws OutOfMemory, and Cancelled where `owner.stop`
  /// ended a wait, or is requested when one would begin.
  [[nodiscard]] Allocation allocate(Bytes bytes, StreamRole home, std::string_view label,
                                    const Owner& owner);
  /// Work on `role` is about to use it. May fail, and has changed nothing then. The caller sees to
  /// it that calls for one allocation come one after the other.
  void note_use(Allocation& allocation, StreamRole role);
  /// Frees in the order of every stream that used it.
  void release(const Allocation& allocation) noexcept;

 private:
  [[nodiscard]] Allocation try_allocate(Bytes bytes, StreamRole home, std::string_view label,
                                        Attempt& attempt);

  Pool& pool_;
  DeviceBackend& device_;
  Admission& admission_;
  const Policy policy_;
  Slab slab_;
};

}  // namespace weir
