#pragma once

// A block of a pool, and its links in the pool's index.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

struct Block;
struct FreeOwner;

/// Neighbours in one of a block's intrusive lists.
struct BlockLink {
  Block* previous;
  Block* next;
};

/// A block's place in a tree, see block_tree.hpp.
struct TreeLink {
  Block* parent;
  Block* previous;  ///< root of the blocks before it
  Block* next;      ///< root of the blocks behind it
};

enum class BlockState : std::uint8_t {
  kAllocated,  ///< handed out
  kFreeing,    ///< one thread records points for its free, without the lock
  kAwaiting,   ///< freed; waits for the device to pass a point
  kCached,     ///< free
  kMoving,     ///< no block: pages are being mapped or unmapped, without the lock
  kVoid,       ///< no block: addresses without pages
  kStale,      ///< no block: its pages live at another place and are mapped here, too
};

/// Two cache lines, both touched by an allocation and a free: with very many blocks, reading them
/// from memory is most of the cost. In pools that split blocks it may be a free piece of a segment.
struct alignas(64) Block {
  /// A point not recorded yet, which the device never passes.
  static constexpr std::uint64_t kUnrecorded = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::size_t kLabel = 31;   ///< characters kept
  static constexpr unsigned kCountBits = 56;  ///< lasts two years at an event per nanosecond

  // The first line: a free also reads its neighbours'.
  void* pointer = nullptr;
  Bytes size;
  /// Who may reuse it: now if cached, else once it is freed.
  FreeOwner* owner = nullptr;
  /// Cached: others of its owner, in a list or a tree (block_tree.hpp). Awaiting: others of the
  /// stream.
  BlockLink by_stream{};
  BlockLink neighbours{};  ///< adjacent pieces of its segment, if cut from one
  /// The pool's event count at its allocation or last free.
  std::uint64_t moved_at : kCountBits = 0;
  BlockState state : 6 = BlockState::kAllocated;
  bool begins_run : 1 = false;  ///< first piece of a run of small ones (segment_index.hpp)
  bool may_touch : 1 = false;   ///< only its stream may reuse it; a neighbour may be common

  Bytes requested;
  StreamId home;                    ///< of its allocation
  std::uint64_t home_sequence = 0;  ///< the free's point on home; zero once passed
  /// The other streams that use it; once freed, the points there. Null until there is one, as for
  /// most.
  std::unique_ptr<std::vector<Point>> others;
  union {
    BlockLink by_age;  ///< cached: least recently freed first
    TreeLink in_tree;  ///< the same, in a tree
    /// Not cached: the holder's label, truncated, zero-padded.
    std::array<char, kLabel> label{};
  };

  void note_moved(std::uint64_t events) noexcept {
    moved_at = events & ((std::uint64_t{1} << kCountBits) - 1);
  }
  [[nodiscard]] Point home_point() const { return {home, home_sequence}; }
  [[nodiscard]] std::span<Point> other_points() const noexcept {
    return others != nullptr ? std::span<Point>(*others) : std::span<Point>();
  }
  void set_label(std::string_view text) noexcept;
  [[nodiscard]] std::string_view label_view() const noexcept;
  [[nodiscard]] std::uintptr_t begin() const noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }
  [[nodiscard]] std::uintptr_t end() const noexcept { return begin() + size.count; }
};
static_assert(sizeof(Block) == 128);

/// A doubly linked list through a link of its blocks. Owns nothing.
template <BlockLink Block::*Link>
class BlockList {
 public:
  [[nodiscard]] Block* front() const noexcept { return front_; }
  [[nodiscard]] Block* back() const noexcept { return back_; }
  [[nodiscard]] bool empty() const noexcept { return front_ == nullptr; }
  [[nodiscard]] static Block* next(const Block& block) noexcept { return (block.*Link).next; }

  void push_back(Block& block) noexcept { insert_after(back_, block); }
  void push_front(Block& block) noexcept { insert_after(nullptr, block); }

  /// Keeps the list ascending by `key`. Searches from both ends: newly freed blocks belong at the
  /// back, those joined with old ones at the front.
  template <typename Key>
  void insert_sorted(Block& block, const Key& key) noexcept {
    Block* place = back_;
    for (Block* behind = front_; place != nullptr && key(*place) > key(block);
         behind = (behind->*Link).next, place = (place->*Link).previous) {
      if (key(*behind) <= key(block)) continue;
      place = (behind->*Link).previous;
      break;
    }
    insert_after(place, block);
  }

  /// `block` is in no list.
  void replace(Block& old, Block& block) noexcept {
    insert_after(&old, block);
    remove(old);
  }

  void remove(Block& block) noexcept {
    BlockLink& link = block.*Link;
    (link.previous != nullptr ? (link.previous->*Link).next : front_) = link.next;
    (link.next != nullptr ? (link.next->*Link).previous : back_) = link.previous;
    link = {};
  }

 private:
  void insert_after(Block* place, Block& block) noexcept {
    Block* after = place != nullptr ? (place->*Link).next : front_;
    block.*Link = {.previous = place, .next = after};
    (place != nullptr ? (place->*Link).next : front_) = &block;
    (after != nullptr ? (after->*Link).previous : back_) = &block;
  }

  Block* front_ = nullptr;
  Block* back_ = nullptr;
};

/// A pool's blocks by address. Every free looks one up. With very many blocks most of that cost is
/// uncached memory: so blocks are dense, a slot has 8 bytes, and a search reads only the block
/// found. A data structure only: takes no lock.
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
