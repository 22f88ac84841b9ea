#include "scheduler/tensor_table.hpp"

#include <algorithm>
#include <thread>

namespace weir {

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
