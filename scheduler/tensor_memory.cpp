#include "scheduler/tensor_memory.hpp"

#include <chrono>
#include <optional>
#include <string>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"

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
  std::optional<std::chrono::steady_clock::time_point> deadline;
  bool last = !may_wait;
  std::uint64_t waits = 0;
  Pressure pressure;
  for (;;) {
    const std::uint64_t looked = slabs_.given_back();
    const std::uint64_t freed = admission_.given_back();
    Attempt attempt{.stop = owner.stop};
    TensorBlock allocation = try_allocate(bytes, home, label, attempt);
    if (allocation.data != nullptr) {
      allocation.owner = owner.batch;
      const bool waited = deadline || waits + attempt.waits != 0;
      admission_.note_allocated(owner.batch, allocation.block, waited);
      return allocation;
    }
    const bool reclaimed = slabs_.reclaim(may_wait, looked, attempt);
    attempt.waits = waits += attempt.waits;  // the report covers all attempts
    if (reclaimed) continue;
    const bool cancelled = may_wait && owner.stop.stop_requested();
    if ((cancelled || last) && (deadline || waits != 0)) admission_.note_waited(owner.batch);
    if (cancelled) throw Cancelled(std::string(label) + kMemoryWaitCancelled);
    if (last) pool_.fail(attempt);
    if (!deadline) {
      // From now on each attempt follows a reading of the pressure, so that later frees are
      // noticed.
      deadline = std::chrono::steady_clock::now() + admission_.grace();
      pressure = pool_.pressure();
      continue;
    }
    // Try once more before failing: it was woken to fail, or a free after the last attempt is not
    // reported yet.
    const TimelineSlice slice;
    last = !admission_.await_memory({.batch = owner.batch,
                                     .block = attempt.block,
                                     .looked = freed,
                                     .pressure = pressure,
                                     .deadline = *deadline,
                                     .stop = owner.stop});
    if (slice.sink() != nullptr) {
      slice.write({.bytes = attempt.block.count,
                   .name = slice.sink()->name(label),
                   .kind = TimelineKind::kMemoryWait});
    }
    pressure = pool_.pressure();
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
