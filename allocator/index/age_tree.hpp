#pragma once

// Free blocks, least recently freed first. A treap (treap_rank.hpp), because the device passes some
// points late, so blocks enter out of order. Calls take logarithmically many steps; inserting the
// youngest and removing any, about two. Allocates nothing, takes no lock.

#include <cstdint>

#include "allocator/index/block.hpp"

namespace weir {

class AgeTree {
 public:
  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  /// Null if empty.
  [[nodiscard]] Block* front() const noexcept;
  /// The block freed next; null for the last.
  [[nodiscard]] static Block* next(const Block& block) noexcept;

  /// `block` must be in no list by its by_age link. Its age and address must not change in here.
  void insert(Block& block) noexcept;
  void remove(Block& block) noexcept;

 private:
  /// Returns the pointer to `block`: in its parent, or root_.
  [[nodiscard]] Block*& pointer_to(Block& block) noexcept;
  /// `block` is not the root.
  void rotate_up(Block& block) noexcept;

  Block* root_ = nullptr;
  Block* last_ = nullptr;  ///< most recently freed; most new blocks follow it
};

}  // namespace weir
