// PagedIndex::finish: applies a move, executed wholly or in part.

#include <algorithm>

#include "allocator/index/paged/paged_index.hpp"

namespace weir {

Block* PagedIndex::finish(PageMove& move) {
  blocks_.redeem(move.promised);
  pages_ -= move.promised_pages - move.created + move.destroyed;
  finish_retired(move);
  std::size_t done = 0;
  for (Block* victim : move.victims) {
    const std::uintptr_t end = victim->end();
    const std::size_t pages = victim->size.count / page().count;
    const std::size_t unmapped = std::min(pages, move.unmapped - done);
    for (std::size_t i = 0; i < unmapped; ++i) {
      page_at(victim->begin() + i * page().count) = {};
    }
    done += unmapped;
    Block* kept = victim;
    if (unmapped != 0 && unmapped != pages) {
      kept = &cut(*victim, end - (pages - unmapped) * page().count);
    }
    if (unmapped != pages) place_piece(*kept);
    if (unmapped != 0) place_void(*victim);
  }
  for (std::size_t i = 0; i < move.mapped; ++i) {
    page_at(reinterpret_cast<std::uintptr_t>(move.places[i])) = move.pages[i];
  }
  finish_lenders(move);
  const auto left = static_cast<std::ptrdiff_t>(std::max(move.mapped, move.lent));
  spare_.insert(spare_.end(), move.pages.begin() + left, move.pages.end());
  if (move.target == nullptr) return nullptr;
  if (move.mapped == move.places.size()) return finish_target(move);
  give_up_target(*move.target);
  return nullptr;
}

void PagedIndex::finish_retired(PageMove& move) {
  std::size_t done = 0;
  for (Block* piece : move.retired) {
    stale_.release_taken(*piece);
    const std::size_t pages = piece->size.count / page().count;
    const std::size_t unmapped = std::min(pages, move.retired_pages - done);
    for (std::size_t i = 0; i < unmapped; ++i) page_at(piece->begin() + i * page().count) = {};
    done += unmapped;
    Block* kept = piece;
    if (unmapped != 0 && unmapped != pages) {
      kept = &cut(*piece, piece->begin() + unmapped * page().count);
    }
    if (unmapped != pages) stale_.put_back_retired(*kept);
    if (unmapped != 0) place_void(*piece);
  }
  stale_.end(done);
}

void PagedIndex::finish_lenders(PageMove& move) {
  if (move.lenders.empty()) return;
  std::size_t left = std::min(move.mapped, move.lent);
  for (Block* lender : move.lenders) {
    const std::size_t pages = lender->size.count / page().count;
    const std::size_t mapped = std::min(pages, left);
    left -= mapped;
    if (mapped == 0) {
      place_again(*lender);
      continue;
    }
    if (mapped != pages) place_again(cut(*lender, lender->begin() + mapped * page().count));
    place_stale(*lender);
  }
  stale_.end_move(move.borrower);
}

void PagedIndex::place_stale(Block& piece) noexcept {
  const Owner& owner = owner_of(piece);
  const bool passed = owner.passed(piece);
  const StreamId home = owner.home;
  give_to(piece, &common_.at(owner.area));
  passed ? stale_.add_retired(piece) : stale_.add(piece, home);
}

void PagedIndex::place_again(Block& piece) {
  const Owner& owner = owner_of(piece);
  if (owner.passed(piece)) {
    piece.home_sequence = 0;
    give_to(piece, &common_.at(owner.area));
  }
  place_piece(piece);
}

Block* PagedIndex::finish_target(PageMove& move) {
  Block* block = move.target;
  if (block->begin() < move.at) {
    Block& rest = cut(*block, move.at);
    place_again(*block);
    block = &rest;
  }
  if (block->size > move.size) place_again(cut(*block, move.at + move.size.count));
  block->state = BlockState::kAllocated;
  return block;
}

void PagedIndex::give_up_target(Block& target) {
  const auto is_mapped = [this](std::uintptr_t at) { return page_at(at).id != 0; };
  for (Block* piece = &target; piece != nullptr;) {
    const std::uintptr_t end = piece->end();
    const bool mapped = is_mapped(piece->begin());
    std::uintptr_t at = grid_.down(piece->begin()) + page().count;
    while (at < end && is_mapped(at) == mapped) at += page().count;
    Block* rest = at < end ? &cut(*piece, at) : nullptr;
    mapped ? place_again(*piece) : place_void(*piece);
    piece = rest;
  }
}

}  // namespace weir
