#include "allocator/index/size_tree.hpp"

#include <tuple>

#include "allocator/index/treap_rank.hpp"

namespace weir {
namespace {

bool is_before(const Block& a, const Block& b) {
  return std::tuple(a.size, a.begin()) < std::tuple(b.size, b.begin());
}

Block*& smaller(Block& piece) { return piece.by_stream.previous; }
Block*& larger(Block& piece) { return piece.by_stream.next; }

}  // namespace

Block* SizeTree::first_from(Bytes size) const noexcept {
  Block* best = nullptr;
  for (Block* piece = root_; piece != nullptr;) {
    if (piece->size >= size) {
      best = piece;
      piece = smaller(*piece);
    } else {
      piece = larger(*piece);
    }
  }
  return best;
}

Block* SizeTree::largest() const noexcept {
  Block* piece = root_;
  while (piece != nullptr && larger(*piece) != nullptr) piece = larger(*piece);
  return piece;
}

Block* SizeTree::next(const Block& piece) const noexcept {
  Block* next = nullptr;
  for (Block* each = root_; each != nullptr;) {
    if (is_before(piece, *each)) {
      next = each;
      each = smaller(*each);
    } else {
      each = larger(*each);
    }
  }
  return next;
}

void SizeTree::insert(Block& piece) noexcept {
  Block** place = &root_;
  while (*place != nullptr && treap_rank(**place) >= treap_rank(piece)) {
    place = is_before(piece, **place) ? &smaller(**place) : &larger(**place);
  }
  // Split this subtree into pieces before and behind the new one, below it.
  Block* below = *place;
  *place = &piece;
  Block** before = &smaller(piece);
  Block** behind = &larger(piece);
  while (below != nullptr) {
    if (is_before(*below, piece)) {
      *before = below;
      before = &larger(*below);
      below = *before;
    } else {
      *behind = below;
      behind = &smaller(*below);
      below = *behind;
    }
  }
  *before = nullptr;
  *behind = nullptr;
}

void SizeTree::remove(Block& piece) noexcept {
  Block** place = &root_;
  while (*place != &piece) {
    place = is_before(piece, **place) ? &smaller(**place) : &larger(**place);
  }
  Block* before = smaller(piece);
  Block* behind = larger(piece);
  piece.by_stream = {};
  while (before != nullptr && behind != nullptr) {
    if (treap_rank(*before) >= treap_rank(*behind)) {
      *place = before;
      place = &larger(*before);
      before = *place;
    } else {
      *place = behind;
      place = &smaller(*behind);
      behind = *place;
    }
  }
  *place = before != nullptr ? before : behind;
}

}  // namespace weir
