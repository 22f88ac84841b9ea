#include "allocator/index/age_tree.hpp"

#include <tuple>

#include "allocator/index/treap_rank.hpp"

namespace weir {
namespace {

/// Parts of one block have one age: the address breaks the tie.
bool is_older(const Block& a, const Block& b) {
  return std::tuple(std::uint64_t{a.moved_at}, a.begin()) <
         std::tuple(std::uint64_t{b.moved_at}, b.begin());
}

}  // namespace

Block* AgeTree::front() const noexcept {
  Block* block = root_;
  while (block != nullptr && block->in_tree.older != nullptr) block = block->in_tree.older;
  return block;
}

Block* AgeTree::next(const Block& block) noexcept {
  Block* next = block.in_tree.younger;
  if (next != nullptr) {
    while (next->in_tree.older != nullptr) next = next->in_tree.older;
    return next;
  }
  const Block* child = &block;
  next = child->in_tree.parent;
  while (next != nullptr && next->in_tree.younger == child) {
    child = next;
    next = next->in_tree.parent;
  }
  return next;
}

Block*& AgeTree::pointer_to(Block& block) noexcept {
  Block* parent = block.in_tree.parent;
  if (parent == nullptr) return root_;
  return parent->in_tree.older == &block ? parent->in_tree.older : parent->in_tree.younger;
}

void AgeTree::rotate_up(Block& block) noexcept {
  Block& parent = *block.in_tree.parent;
  pointer_to(parent) = &block;
  block.in_tree.parent = parent.in_tree.parent;
  parent.in_tree.parent = &block;
  const bool was_older = parent.in_tree.older == &block;
  Block*& between = was_older ? block.in_tree.younger : block.in_tree.older;
  (was_older ? parent.in_tree.older : parent.in_tree.younger) = between;
  if (between != nullptr) between->in_tree.parent = &parent;
  between = &parent;
}

void AgeTree::insert(Block& block) noexcept {
  block.in_tree = {};
  if (last_ == nullptr || is_older(*last_, block)) {
    block.in_tree.parent = last_;
    (last_ != nullptr ? last_->in_tree.younger : root_) = &block;
    last_ = &block;
  } else {
    Block** place = &root_;
    while (*place != nullptr) {
      block.in_tree.parent = *place;
      Block& parent = **place;
      place = is_older(block, parent) ? &parent.in_tree.older : &parent.in_tree.younger;
    }
    *place = &block;
  }
  const std::uint64_t own = treap_rank(block);
  while (block.in_tree.parent != nullptr && treap_rank(*block.in_tree.parent) < own)
    rotate_up(block);
}

void AgeTree::remove(Block& block) noexcept {
  if (last_ == &block) {
    last_ = block.in_tree.older != nullptr ? block.in_tree.older : block.in_tree.parent;
    while (last_ != nullptr && last_ != block.in_tree.parent && last_->in_tree.younger != nullptr) {
      last_ = last_->in_tree.younger;
    }
  }
  while (block.in_tree.older != nullptr && block.in_tree.younger != nullptr) {
    Block& older = *block.in_tree.older;
    Block& younger = *block.in_tree.younger;
    rotate_up(treap_rank(older) > treap_rank(younger) ? older : younger);
  }
  Block* child = block.in_tree.older != nullptr ? block.in_tree.older : block.in_tree.younger;
  pointer_to(block) = child;
  if (child != nullptr) child->in_tree.parent = block.in_tree.parent;
  block.in_tree = {};
}

}  // namespace weir
