#pragma once

// Free blocks in the order of their frees, for what takes the least recently freed first. A block
// often enters out of that order: it was freed early, and the device passed its points late. So it
// is a search tree, a treap (treap_rank.hpp). Every call takes a logarithmic number of steps; to
// insert the youngest and to remove any takes two or so. It takes no memory and no lock.

#include <cstdint>

#include "allocator/index/block.hpp"

namespace weir {

class AgeTree {
 public:
  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  /// The one freed first; null when empty.
  [[nodiscard]] Block* front() const noexcept;
  /// The one that was freed next after `block`; null for the last.
  [[nodiscard]] static Block* next(const Block& block) noexcept;

  /// `block` is in no list by its by_age link, and its age and address stay while it is in here.
  void insert(Block& block) noexcept;
  void remove(Block& block) noexcept;

 private:
  /// Where the pointer to `block` is: in its parent, or here.
  [[nodiscard]] Block*& pointer_to(Block& block) noexcept;
  /// `block`, which is not the root, changes places with its parent.
  void rotate_up(Block& block) noexcept;

  Block* root_ = nullptr;
  Block* last_ = nullptr;  ///< freed last: most that enter come right behind it
};

}  // namespace weir
