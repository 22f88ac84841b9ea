#pragma once

// Free pieces by size, equal ones by address: a treap (treap_rank.hpp). Calls take logarithmically
// many steps. Allocates nothing, takes no lock.

#include "allocator/base/bytes.hpp"
#include "allocator/index/block.hpp"

namespace weir {

/// Links by by_stream: `previous` to smaller, `next` to larger pieces.
class SizeTree {
 public:
  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  /// The smallest of at least `size`; null if there is none.
  [[nodiscard]] Block* first_from(Bytes size) const noexcept;
  /// Null when empty.
  [[nodiscard]] Block* largest() const noexcept;
  /// The successor of `piece`, which is in here; null for the last.
  [[nodiscard]] Block* next(const Block& piece) const noexcept;

  /// `piece` must be in no list by its by_stream link. Its size and address must not change in
  /// here.
  void insert(Block& piece) noexcept;
  void remove(Block& piece) noexcept;

 private:
  Block* root_ = nullptr;
};

}  // namespace weir
