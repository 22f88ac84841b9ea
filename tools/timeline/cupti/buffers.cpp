#include "tools/timeline/cupti/buffers.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace weir::timeline::cupti {

ActivityBuffers& activity_buffers() {
  static auto* const kAll = new ActivityBuffers;
  return *kAll;
}

ActivityBuffers::~ActivityBuffers() {
  if (memory_ != nullptr) munmap(memory_, kCount * kBytes);
}

bool ActivityBuffers::reserve() noexcept {
  if (memory_ != nullptr) return true;
  void* const memory = mmap(nullptr, kCount * kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<std::uint8_t*>(memory);
  free_.store(~std::uint64_t{0}, std::memory_order_release);
  return true;
}

std::span<std::uint8_t> ActivityBuffers::take() noexcept {
  std::uint64_t free = free_.load(std::memory_order_acquire);
  while (free != 0) {
    if (free_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acq_rel)) {
      const auto slot = static_cast<std::size_t>(std::countr_zero(free));
      slots_[slot].taken.store(true, std::memory_order_release);
      return {at(slot), kBytes};
    }
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

void ActivityBuffers::complete(std::uint8_t* data, std::size_t valid) noexcept {
  if (memory_ == nullptr || data < memory_ || data >= memory_ + kCount * kBytes) return;
  const auto slot = static_cast<std::size_t>(data - memory_) / kBytes;
  if (data != at(slot) || !slots_[slot].taken.exchange(false, std::memory_order_acq_rel)) return;
  slots_[slot].ticket = tickets_.fetch_add(1, std::memory_order_relaxed);
  slots_[slot].valid = std::min(valid, kBytes);
  ready_.fetch_or(std::uint64_t{1} << slot, std::memory_order_release);
}

void ActivityBuffers::collect(std::vector<Filled>& filled) {
  std::uint64_t ready = ready_.exchange(0, std::memory_order_acquire);
  std::array<std::size_t, kCount> order{};
  std::size_t count = 0;
  for (; ready != 0; ready &= ready - 1) {
    order[count++] = static_cast<std::size_t>(std::countr_zero(ready));
  }
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
            [this](std::size_t a, std::size_t b) { return slots_[a].ticket < slots_[b].ticket; });
  for (const std::size_t slot : std::span(order).first(count)) {
    filled.push_back({at(slot), slots_[slot].valid});
  }
}

void ActivityBuffers::give_back(const Filled& buffer) noexcept {
  // CUPTI is told that buffers are zeroed, so that it does not zero them in the program's threads.
  std::memset(buffer.data, 0, kBytes);
  const auto slot = static_cast<std::size_t>(buffer.data - memory_) / kBytes;
  free_.fetch_or(std::uint64_t{1} << slot, std::memory_order_release);
}

}  // namespace weir::timeline::cupti
