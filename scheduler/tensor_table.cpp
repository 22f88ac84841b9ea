#include "scheduler/tensor_table.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "scheduler/memory_attempts.hpp"

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
      admission_.note_allocated(owner.batch, allocation.block, attempts.waits(attempt));
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

TensorState& TensorTable::acquire(const Shape& shape, DType dtype, std::string_view label) {
  const Lock lock(mutex_);
  if (free_.empty()) {
    // Reserves room for every state, so that returning one cannot fail. Doubles, so that it stays
    // cheap.
    if (free_.capacity() <= states_.size()) free_.reserve(2 * states_.size() + 64);
    states_.push_back(std::make_unique<TensorState>());
    free_.push_back(states_.back().get());
  }
  TensorState& state = *free_.back();
  free_.pop_back();
  state.table = this;
  state.shape = shape;
  state.dtype = dtype;
  state.label = {};
  std::ranges::copy(label.substr(0, state.label.size() - 1), state.label.begin());
  state.handles.store(1, std::memory_order_relaxed);
  state.references.store(1, std::memory_order_relaxed);
  return state;
}

void TensorTable::drop_handles(TensorState& state) noexcept {
  // Count before reading memory_, in one order with `abandon`: either that waits for this call, or
  // this reads null.
  freeing_.fetch_add(1);
  if (TensorMemory* memory = memory_.load()) {
    memory->release(state.memory);
    state.memory = {};
    state.data.store(nullptr, std::memory_order_relaxed);
  }
  freeing_.fetch_sub(1);
  drop_reference(state);
}

void TensorTable::drop_reference(TensorState& state) noexcept {
  if (state.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  bool last = false;
  {
    const Lock lock(mutex_);
    state.history = {};
    state.error = nullptr;
    state.failed.store(false, std::memory_order_relaxed);
    free_.push_back(&state);
    last = abandoned_ && free_.size() == states_.size();
  }
  if (last) delete this;
}

void TensorTable::abandon() noexcept {
  TensorMemory* memory = memory_.exchange(nullptr);
  while (freeing_.load() != 0) std::this_thread::yield();  // ends: a free does not wait
  // From here on, handles that end leave their memory to this call.
  bool last = false;
  {
    Lock lock(mutex_);
    for (const auto& state : states_) {
      if (state->data.exchange(nullptr, std::memory_order_relaxed) == nullptr) continue;
      const TensorBlock allocation = std::exchange(state->memory, {});
      lock.unlock();
      memory->release(allocation);
      lock.lock();
    }
    abandoned_ = true;
    last = free_.size() == states_.size();
  }
  if (last) delete this;
}

void TensorTable::set_error(TensorState& state, const std::exception_ptr& error) noexcept {
  const Lock lock(mutex_);
  state.error = error;
  state.failed.store(true, std::memory_order_release);
}

void TensorTable::clear_error(TensorState& state) noexcept {
  if (!state.failed.load(std::memory_order_acquire)) return;
  const Lock lock(mutex_);
  state.error = nullptr;
  state.failed.store(false, std::memory_order_release);
}

std::exception_ptr TensorTable::error(const TensorState& state) const noexcept {
  if (!state.failed.load(std::memory_order_acquire)) return nullptr;
  const Lock lock(mutex_);
  return state.error;
}

void TensorTable::note_first(const std::exception_ptr& error) noexcept {
  const Lock lock(mutex_);
  if (first_error_ == nullptr) first_error_ = error;
}

std::exception_ptr TensorTable::take_first() noexcept {
  const Lock lock(mutex_);
  return std::exchange(first_error_, nullptr);
}

}  // namespace weir
