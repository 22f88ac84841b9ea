#pragma once

// Which blocks are out, by address. Threads that allocate and free meet only in one of 64 parts of
// the table. The locks are leaves: nothing is called under one except what is given to `with`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tools/torch/books/short_lock.hpp"

namespace weir::torch_plug {

/// Thread-safe. Addresses are those of device memory, in steps of 512 bytes; null is none.
template <typename Block>
class LiveBlocks {
  static_assert(std::is_nothrow_move_constructible_v<Block> &&
                    std::is_nothrow_move_assignable_v<Block> &&
                    std::is_nothrow_default_constructible_v<Block>,
                "a block that is taken out must not be lost on the way");

 public:
  /// Adds a block at an address that has none. Throws std::bad_alloc and is then unchanged.
  void insert(const void* address, Block block) {
    Part& part = part_of(address);
    const std::lock_guard lock(part.mutex);
    if (4 * (part.used + 1) > 3 * part.slots.size()) part.grow();
    part.place(address, std::move(block));
    ++part.used;
  }

  /// Removes the block at `address` and returns it; nothing if there is none.
  [[nodiscard]] std::optional<Block> take(const void* address) noexcept {
    Part& part = part_of(address);
    const std::lock_guard lock(part.mutex);
    Slot* const found = part.find(address);
    if (found == nullptr) return std::nullopt;
    std::optional<Block> block(std::move(found->block));
    part.remove(static_cast<std::size_t>(found - part.slots.data()));
    --part.used;
    return block;
  }

  /// Calls `act` with the block at `address`, under the lock of its part: `act` must take no lock.
  /// Returns false if there is none.
  template <typename Act>
  bool with(const void* address, Act act) {
    Part& part = part_of(address);
    const std::lock_guard lock(part.mutex);
    Slot* const found = part.find(address);
    if (found != nullptr) act(found->block);
    return found != nullptr;
  }

  /// Returns a copy of the block at `address`; nothing if there is none.
  [[nodiscard]] std::optional<Block> find(const void* address) {
    std::optional<Block> copy;
    with(address, [&copy](const Block& block) { copy = block; });
    return copy;
  }

  /// Returns copies of all blocks, unordered. Blocks that come or go meanwhile may be among them.
  [[nodiscard]] std::vector<std::pair<const void*, Block>> all() {
    std::vector<std::pair<const void*, Block>> found;
    for (Part& part : parts_) {
      const std::lock_guard lock(part.mutex);
      for (const Slot& slot : part.slots) {
        if (slot.address != nullptr) found.emplace_back(slot.address, slot.block);
      }
    }
    return found;
  }

 private:
  static constexpr unsigned kPartBits = 6;
  static constexpr std::size_t kFirstSlots = 16;

  struct Slot {
    const void* address = nullptr;
    Block block;
  };

  // Multiplication by 2^64 / golden ratio spreads neighbouring addresses (Knuth, The Art of
  // Computer Programming, 6.4). The top bits choose the part, those below them the slot.
  [[nodiscard]] static std::uint64_t hash(const void* address) noexcept {
    return (reinterpret_cast<std::uintptr_t>(address) >> 9U) * 0x9E3779B97F4A7C15ULL;
  }

  // Open addressing with linear probing. Without marks for removed slots: a removal closes the gap,
  // so that a search ends at the first empty slot however many blocks have come and gone.
  struct alignas(64) Part {
    ShortLock mutex;
    std::vector<Slot> slots;  ///< guarded by mutex, as used; a power of two, never full
    std::size_t used = 0;

    [[nodiscard]] std::size_t home(const void* address) const noexcept {
      return (hash(address) << kPartBits >> 32U) & (slots.size() - 1);
    }
    [[nodiscard]] std::size_t after(std::size_t index) const noexcept {
      return (index + 1) & (slots.size() - 1);
    }
    [[nodiscard]] Slot* find(const void* address) noexcept {
      if (slots.empty() || address == nullptr) return nullptr;
      for (std::size_t i = home(address); slots[i].address != nullptr; i = after(i)) {
        if (slots[i].address == address) return &slots[i];
      }
      return nullptr;
    }
    void place(const void* address, Block block) noexcept {
      std::size_t i = home(address);
      while (slots[i].address != nullptr) i = after(i);
      slots[i] = {address, std::move(block)};
    }
    void grow() {
      std::vector<Slot> old(slots.empty() ? kFirstSlots : 2 * slots.size());
      old.swap(slots);
      for (Slot& slot : old) {
        if (slot.address != nullptr) place(slot.address, std::move(slot.block));
      }
    }
    void remove(std::size_t gap) noexcept {
      for (std::size_t i = after(gap); slots[i].address != nullptr; i = after(i)) {
        // A block may move back to the gap only if its home is not behind it.
        const std::size_t mask = slots.size() - 1;
        if (((i - home(slots[i].address)) & mask) < ((i - gap) & mask)) continue;
        slots[gap] = std::move(slots[i]);
        gap = i;
      }
      slots[gap] = Slot{};
    }
  };

  [[nodiscard]] Part& part_of(const void* address) noexcept {
    return parts_[hash(address) >> (64U - kPartBits)];
  }

  std::array<Part, std::size_t{1} << kPartBits> parts_;
};

}  // namespace weir::torch_plug
