#pragma once

// Free pieces by size, and those of one size by address: a treap (treap_rank.hpp). Every call takes
// a logarithmic number of steps. It takes no memory and no lock.

#include "allocator/base/bytes.hpp"
#include "allocator/index/block.hpp"

namespace weir {

/// Its links are the pieces' by_stream: `previous` leads to the smaller ones, `next` to the larger.
class SizeTree {
 public:
  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  /// The smallest that has `size` bytes or more; null when none has.
  [[nodiscard]] Block* first_from(Bytes size) const noexcept;
  /// Null when empty.
  [[nodiscard]] Block* largest() const noexcept;
  /// The one behind `piece`, which is in here; null for the last.
  [[nodiscard]] Block* next(const Block& piece) const noexcept;

  /// `piece` is in no list by its by_stream link. Its size and address stay while it is in here.
  void insert(Block& piece) noexcept;
  void remove(Block& piece) noexcept;

 private:
  Block* root_ = nullptr;
};

}  // namespace weir
