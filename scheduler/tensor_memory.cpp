#include "scheduler/tensor_memory.hpp"

#include <string>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "scheduler/admission/memory_attempts.hpp"

namespace weir {

TensorBlock TensorMemory::try_allocate(Bytes bytes, StreamRole home, std::string_view label,
                                       Attempt& attempt) {
  TensorBlock allocation{.home = home};
  const StreamId stream = device_.stream(home);
  if (bytes <= SlabAllocator::kLargest) {
    const SlabAllocator::Slot slot = slabs_.try_allocate(bytes, stream, attempt, allocation.block);
    allocation.data = slot.pointer;
    allocation.slab = slot.slab;
  } else {
    allocation.data = pool_.try_allocate(bytes, stream, label, attempt);
    if (allocation.data != nullptr) allocation.block = *pool_.block_size(bytes);
  }
  return allocation;
}

TensorBlock TensorMemory::allocate(Bytes bytes, StreamRole home, std::string_view label,
                                   const Owner& owner) {
  const bool may_wait = policy_ != Policy::kUnbounded;
  MemoryAttempts attempts(pool_, admission_, owner, label, may_wait);
  for (;;) {
    const std::uint64_t looked = slabs_.given_back();
    Attempt attempt = attempts.begin();
    TensorBlock allocation = try_allocate(bytes, home, label, attempt);
    if (allocation.data != nullptr) {
      allocation.owner = owner.batch;
      admission_.note_allocated(owner.batch, allocation.block, attempts.waited(attempt));
      return allocation;
    }
    const bool reclaimed = slabs_.reclaim(may_wait, looked, attempt);
    attempts.count(attempt);
    if (!reclaimed) attempts.wait_or_fail(attempt);
  }
}

void TensorMemory::note_use(TensorBlock& allocation, StreamRole role) {
  if (role == allocation.home || allocation.used_by.at(index_of(role))) return;
  // Here and not at its end, which must not fail where the program's heap is used up.
  if (allocation.slab == nullptr) pool_.record_use(allocation.data, device_.stream(role));
  allocation.used_by.at(index_of(role)) = true;
}

void TensorMemory::release(const TensorBlock& allocation) noexcept {
  if (allocation.data == nullptr) return;
  try {
    if (allocation.slab != nullptr) {
      std::array<StreamId, kStreamRoles> others{};
      std::size_t count = 0;
      for (const StreamRole role : kAllRoles) {
        if (allocation.used_by.at(index_of(role))) others.at(count++) = device_.stream(role);
      }
      slabs_.deallocate({allocation.data, allocation.slab}, std::span(others).first(count));
      admission_.note_given_back();
      return;
    }
    const Freed freed = pool_.deallocate(allocation.data, device_.stream(allocation.home));
    admission_.note_freed(allocation.owner, allocation.block, freed == Freed::kAwaiting);
  } catch (const std::exception& error) {
    // A handle's destructor cannot throw. The block stays allocated, which is safe and shows in
    // reports.
    log(LogLevel::kError, std::string("a tensor's memory could not be freed: ") + error.what());
  }
}

}  // namespace weir
