#pragma once

// Free blocks in order of a key, equal ones by address: a treap (Seidel and Aragon, Randomized
// Search Trees, Algorithmica 1996): no parent ranks below a child. The rank hashes the address, so
// blocks store none. Calls take logarithmically many steps. Allocates nothing, takes no lock.

#include <cstdint>
#include <type_traits>

#include "allocator/index/block.hpp"

namespace weir {

/// `Link`: the link of a block's subtrees: `previous` to blocks before it, `next` to those behind.
/// With a `parent` too, inserting the last block and removing any takes about two steps.
/// `Key(block)` is what orders. A block must be in no list by its link when inserted, and in here
/// neither its key nor its address may change.
template <auto Link, std::uint64_t (*Key)(const Block&)>
class BlockTree {
 public:
  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  /// Null if empty.
  [[nodiscard]] Block* front() const noexcept { return end_of<true>(root_); }
  [[nodiscard]] Block* back() const noexcept { return end_of<false>(root_); }
  /// The first whose key is at least `key`; null if there is none.
  [[nodiscard]] Block* first_from(std::uint64_t key) const noexcept {
    return first_that([key](const Block& each) { return Key(each) >= key; });
  }
  /// The successor of `block`, which is in here; null for the last.
  [[nodiscard]] Block* next(const Block& block) const noexcept {
    if constexpr (kHasParents) {
      if (Block* behind = (block.*Link).next) return end_of<true>(behind);
      const Block* child = &block;
      Block* parent = (block.*Link).parent;
      while (parent != nullptr && (parent->*Link).next == child) {
        child = parent;
        parent = (parent->*Link).parent;
      }
      return parent;
    } else {
      return first_that([&block](const Block& each) { return is_before(block, each); });
    }
  }

  void insert(Block& block) noexcept {
    const std::uint64_t own = rank(block);
    Block* parent = nullptr;
    if constexpr (kHasParents) {
      if (last_ == nullptr || is_before(*last_, block)) {
        parent = last_;
        while (parent != nullptr && rank(*parent) < own) parent = (parent->*Link).parent;
        last_ = &block;
      }
    }
    Block** place = parent != nullptr ? &(parent->*Link).next : &root_;
    while (*place != nullptr && rank(**place) >= own) {
      parent = *place;
      place = towards(block, *parent);
    }
    // Split this subtree into blocks before and behind the new one, below it.
    Block* below = *place;
    hang(place, &block, parent);
    Block** before = &(block.*Link).previous;
    Block** behind = &(block.*Link).next;
    Block* above_before = &block;
    Block* above_behind = &block;
    while (below != nullptr) {
      if (is_before(*below, block)) {
        hang(before, below, above_before);
        above_before = below;
        before = &(below->*Link).next;
        below = *before;
      } else {
        hang(behind, below, above_behind);
        above_behind = below;
        behind = &(below->*Link).previous;
        below = *behind;
      }
    }
    *before = nullptr;
    *behind = nullptr;
  }

  void remove(Block& block) noexcept {
    Block* parent = nullptr;
    Block** place = &root_;
    Block* before = (block.*Link).previous;
    Block* behind = (block.*Link).next;
    if constexpr (kHasParents) {
      parent = (block.*Link).parent;
      if (parent != nullptr) {
        auto& link = parent->*Link;
        place = link.previous == &block ? &link.previous : &link.next;
      }
      if (last_ == &block) last_ = before != nullptr ? end_of<false>(before) : parent;
    } else {
      while (*place != &block) place = towards(block, **place);
    }
    block.*Link = {};
    while (before != nullptr && behind != nullptr) {
      if (rank(*before) >= rank(*behind)) {
        hang(place, before, parent);
        parent = before;
        place = &(before->*Link).next;
        before = *place;
      } else {
        hang(place, behind, parent);
        parent = behind;
        place = &(behind->*Link).previous;
        behind = *place;
      }
    }
    hang(place, before != nullptr ? before : behind, parent);
  }

 private:
  struct Nothing {};
  static constexpr bool kHasParents = requires(Block & block) { (block.*Link).parent; };

  /// splitmix64's finalizer.
  [[nodiscard]] static std::uint64_t rank(const Block& block) noexcept {
    std::uint64_t x = block.begin();
    x = (x ^ x >> 30U) * 0xBF58476D1CE4E5B9U;
    x = (x ^ x >> 27U) * 0x94D049BB133111EBU;
    return x ^ x >> 31U;
  }
  [[nodiscard]] static bool is_before(const Block& a, const Block& b) noexcept {
    return Key(a) != Key(b) ? Key(a) < Key(b) : a.begin() < b.begin();
  }
  /// The child of `parent` on the side of `block`.
  [[nodiscard]] static Block** towards(const Block& block, Block& parent) noexcept {
    return is_before(block, parent) ? &(parent.*Link).previous : &(parent.*Link).next;
  }
  static void hang(Block** place, Block* child, [[maybe_unused]] Block* parent) noexcept {
    *place = child;
    if constexpr (kHasParents) {
      if (child != nullptr) (child->*Link).parent = parent;
    }
  }
  template <bool First>
  [[nodiscard]] static Block* end_of(Block* block) noexcept {
    const auto further = [](Block& b) { return First ? (b.*Link).previous : (b.*Link).next; };
    while (block != nullptr && further(*block) != nullptr) block = further(*block);
    return block;
  }
  /// `is_behind` must be true for all blocks behind one for which it is.
  template <typename IsBehind>
  [[nodiscard]] Block* first_that(const IsBehind& is_behind) const noexcept {
    Block* first = nullptr;
    for (Block* each = root_; each != nullptr;) {
      if (is_behind(*each)) {
        first = each;
        each = (each->*Link).previous;
      } else {
        each = (each->*Link).next;
      }
    }
    return first;
  }

  Block* root_ = nullptr;
  [[no_unique_address]] std::conditional_t<kHasParents, Block*, Nothing> last_{};
};

[[nodiscard]] inline std::uint64_t size_of_block(const Block& block) { return block.size.count; }
[[nodiscard]] inline std::uint64_t age_of_block(const Block& block) { return block.moved_at; }

/// Free pieces, smallest first.
using SizeTree = BlockTree<&Block::by_stream, size_of_block>;
/// Least recently freed first. A tree and no list, because the device passes some points late, so
/// blocks enter out of order. Parts of one block have one age.
using AgeTree = BlockTree<&Block::in_tree, age_of_block>;

}  // namespace weir
