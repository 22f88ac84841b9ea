#pragma once

// One block of a pool and the links by which the pool's index holds it.

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

struct Block;
struct FreeOwner;

/// Neighbours in one intrusive list; a block can be in several lists through several of these.
struct BlockLink {
  Block* previous;
  Block* next;
};

/// A place in an AgeTree (age_tree.hpp).
struct AgeLink {
  Block* parent;
  Block* older;    ///< all in here were freed before the block
  Block* younger;  ///< all in here after it
};

enum class BlockState : std::uint8_t {
  kAllocated,  ///< handed out
  kFreeing,    ///< its free is recording points, on one thread, outside the lock
  kAwaiting,   ///< freed; a point that it waits for is not passed
  kCached,     ///< free
  kMoving,     ///< no block: its pages are being mapped or unmapped, outside the lock
  kVoid,       ///< no block: addresses with no page behind them
  kStale,      ///< no block: its pages are mapped elsewhere too, and live there
};

/// Two cache lines, both of which a free and an allocation touch: with very many blocks, reading
/// them from memory is most of what either costs. In pools that split blocks it is also a free
/// piece of a segment.
struct alignas(64) Block {
  /// A point that could not be recorded yet; nothing ever passes it.
  static constexpr std::uint64_t kUnrecorded = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::size_t kLabel = 31;   ///< characters of a label that are kept
  static constexpr unsigned kCountBits = 56;  ///< enough for two years of an event a nanosecond

  // The first line is what a neighbour that is freed looks at as well.
  void* pointer = nullptr;
  Bytes size;
  /// Cached: who may have it. Otherwise who will, once it is freed.
  FreeOwner* owner = nullptr;
  /// Cached: with those of its owner, in a list or a tree (size_tree.hpp); awaiting: of the same
  /// stream.
  BlockLink by_stream{};
  BlockLink neighbours{};  ///< those next to it in its segment, by address, if it was cut from one
  /// The pool's count of events at its allocation or last free.
  std::uint64_t moved_at : kCountBits = 0;
  BlockState state : 6 = BlockState::kAllocated;
  bool begins_run : 1 = false;  ///< the first piece of a run of small ones (segment_index.hpp)
  bool may_touch : 1 = false;   ///< its stream's alone; a neighbour may be everybody's

  Bytes requested;
  StreamId home;                    ///< the stream that it was allocated on
  std::uint64_t home_sequence = 0;  ///< of its free: the point on home; zero once that is passed
  /// Streams other than home that use it, and of its free: the points there. Null until there was
  /// one, as for most.
  std::unique_ptr<std::vector<Point>> others;
  union {
    BlockLink by_age;  ///< cached: least recently freed first
    AgeLink in_tree;   ///< the same, where it is in a tree
    /// Not cached: what its holder calls it, cut to fit, zeros behind it.
    std::array<char, kLabel> label{};
  };

  void note_moved(std::uint64_t events) noexcept {
    moved_at = events & ((std::uint64_t{1} << kCountBits) - 1);
  }
  [[nodiscard]] Point home_point() const { return {home, home_sequence}; }
  /// The points on streams other than home.
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

/// A doubly linked list through one of a block's links. It owns nothing.
template <BlockLink Block::*Link>
class BlockList {
 public:
  [[nodiscard]] Block* front() const noexcept { return front_; }
  [[nodiscard]] Block* back() const noexcept { return back_; }
  [[nodiscard]] bool empty() const noexcept { return front_ == nullptr; }
  [[nodiscard]] static Block* next(const Block& block) noexcept { return (block.*Link).next; }

  void push_back(Block& block) noexcept { insert_after(back_, block); }
  void push_front(Block& block) noexcept { insert_after(nullptr, block); }

  /// Keeps the list ascending by `key`. Searched from both ends: what is freed now belongs to the
  /// back, and what was joined with an old one to the front.
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

  /// `block`, in no list, takes the place of `old`.
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

}  // namespace weir
