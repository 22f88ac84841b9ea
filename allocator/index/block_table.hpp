#pragma once

// A pool's blocks by address. Every free looks one up. With very many blocks most of that cost is
// uncached memory: so blocks are dense, a slot has 8 bytes, and a search reads only the block
// found. A data structure only: takes no lock.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/index/block.hpp"

namespace weir {

class BlockTable {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Null if there is none.
  [[nodiscard]] Block* find(const void* pointer) const noexcept {
    if (size_ == 0) return nullptr;
    const Slot slot = slots_[place_of(pointer)];
    return slot.number == 0 ? nullptr : &block_of(slot);
  }
  /// For a `find` or an erasure soon.
  void prefetch(const void* pointer) const noexcept {
    if (size_ != 0) __builtin_prefetch(&slots_[home_of(hash(pointer))]);
  }
  /// The address must be new. The block stays in place until erased. Throws for lack of memory, and
  /// then changes nothing.
  Block& insert(void* pointer);
  void erase(Block& block) noexcept;
  /// Reserves memory for `blocks` insertions until `redeem`. May fail, and then changes nothing.
  void promise(std::size_t blocks);
  /// Ends such a promise: so many insertions cannot fail now.
  void redeem(std::size_t blocks) noexcept { promised_ -= blocks; }

  /// Calls `visit(const Block&)` for each, in arbitrary order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const Slot slot : slots_) {
      if (slot.number != 0) visit(std::as_const(block_of(slot)));
    }
  }

 private:
  static constexpr std::size_t kArray = 128;  ///< blocks
  using BlockArray = std::array<Block, kArray>;

  /// A block's number from 1, or 0 if empty, and its address's hash: searches read almost no other
  /// block, and moving a slot none. One slot is always empty, so searches end.
  struct Slot {
    std::uint32_t number = 0;
    std::uint32_t hash = 0;
  };
  [[nodiscard]] static std::uint32_t hash(const void* pointer) noexcept {
    // The top bits of the product depend on all bits of the address (Knuth 3, 6.4).
    return static_cast<std::uint32_t>(
        reinterpret_cast<std::uintptr_t>(pointer) * 0x9E3779B97F4A7C15U >> 32U);
  }
  /// Where its search starts.
  [[nodiscard]] std::size_t home_of(std::uint32_t hash) const noexcept {
    return hash >> (32U - static_cast<unsigned>(std::countr_zero(slots_.size())));
  }
  [[nodiscard]] Block& block_of(Slot slot) const noexcept {
    const std::size_t number = slot.number - 1;
    return (*arrays_[number / kArray])[number % kArray];
  }
  [[nodiscard]] std::size_t next(std::size_t i) const noexcept {
    return (i + 1) & (slots_.size() - 1);
  }
  /// The block's slot, or the empty one for it.
  [[nodiscard]] std::size_t place_of(const void* pointer) const noexcept {
    const std::uint32_t own = hash(pointer);
    std::size_t i = home_of(own);
    for (;; i = next(i)) {
      const Slot slot = slots_[i];
      if (slot.number == 0) return i;
      if (slot.hash == own && block_of(slot).pointer == pointer) return i;
    }
  }
  [[nodiscard]] std::size_t empty_place(std::uint32_t hash) const noexcept {
    std::size_t i = home_of(hash);
    while (slots_[i].number != 0) i = next(i);
    return i;
  }
  void make_room(std::size_t blocks);

  std::vector<Slot> slots_;  ///< a power of two, or none
  std::vector<std::unique_ptr<BlockArray>> arrays_;
  std::vector<std::uint32_t> free_;  ///< unused numbers
  std::size_t size_ = 0;
  std::size_t promised_ = 0;
};

}  // namespace weir
