#pragma once

// A pool's blocks by address. Every free looks its block up here, and with very many blocks most of
// what that costs is memory that no cache holds: so the blocks stand densely, and the table that
// finds them is small, 4 bytes a slot. A data structure only: it takes no lock.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/block.hpp"

namespace weir {

class BlockTable {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// The block at this address; null when there is none.
  [[nodiscard]] Block* find(const void* pointer) const noexcept {
    if (size_ == 0) return nullptr;
    const std::uint32_t slot = slots_[place_of(pointer)];
    return slot == 0 ? nullptr : &block_of(slot);
  }
  /// A new block; none may have this address. It stays where it is until it is erased. When there
  /// is no memory for it, nothing changes.
  Block& insert(void* pointer);
  void erase(Block& block) noexcept;
  /// Sets memory for `blocks` insertions aside, which others do not touch until `redeem`. May fail,
  /// and has changed nothing then.
  void promise(std::size_t blocks);
  /// Ends such a promise: so many insertions that follow now cannot fail.
  void redeem(std::size_t blocks) noexcept { promised_ -= blocks; }

  /// Calls `visit(const Block&)` for each, in no particular order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const std::uint32_t slot : slots_) {
      if (slot != 0) visit(std::as_const(block_of(slot)));
    }
  }

 private:
  static constexpr std::size_t kChunk = 128;  ///< blocks
  using Chunk = std::array<Block, kChunk>;

  /// A slot is 0 when empty; otherwise its low bits, as many as the slots' index has, are a block's
  /// number from 1, and the others are of the address's hash, so that another's block is hardly
  /// ever looked at. There is always an empty slot, so searches end.
  struct Hash {
    std::size_t home;   ///< where the search starts
    std::uint32_t tag;  ///< the hash's part of a slot
  };
  [[nodiscard]] Hash hash(const void* pointer) const noexcept {
    const auto bits = static_cast<unsigned>(std::countr_zero(slots_.size()));
    // The top bits of the product depend on all bits of the address (Knuth, The Art of Computer
    // Programming 3, 6.4): the topmost are home, the next ones the tag.
    const std::uint64_t product = reinterpret_cast<std::uintptr_t>(pointer) * 0x9E3779B97F4A7C15U;
    return {product >> (64U - bits),
            static_cast<std::uint32_t>(product << bits >> 32U) & ~number_mask()};
  }
  [[nodiscard]] std::uint32_t number_mask() const noexcept {
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  [[nodiscard]] Block& block_of(std::uint32_t slot) const noexcept {
    const std::size_t number = (slot & number_mask()) - 1;
    return (*chunks_[number / kChunk])[number % kChunk];
  }
  [[nodiscard]] std::size_t next(std::size_t i) const noexcept {
    return (i + 1) & (slots_.size() - 1);
  }
  /// The slot of the block at this address, or the empty one that it would take.
  [[nodiscard]] std::size_t place_of(const void* pointer) const noexcept {
    const Hash own = hash(pointer);
    std::size_t i = own.home;
    for (;; i = next(i)) {
      const std::uint32_t slot = slots_[i];
      if (slot == 0) return i;
      if ((slot & ~number_mask()) == own.tag && block_of(slot).pointer == pointer) return i;
    }
  }
  void make_room(std::size_t blocks);

  std::vector<std::uint32_t> slots_;  ///< a power of two of them, or none yet
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::uint32_t> free_;  ///< numbers that no block has now
  std::size_t size_ = 0;
  std::size_t promised_ = 0;
};

}  // namespace weir
