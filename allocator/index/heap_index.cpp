#include "allocator/index/heap_index.hpp"

#include <algorithm>
#include <iterator>

namespace weir {

HeapIndex::HeapIndex(Bytes small) : small_(small) {
  for (const Area area : {kSmallArea, kLargeArea}) {
    common_.at(area).state = &nobody_;
    common_.at(area).area = area;
  }
}

HeapIndex::Owner* HeapIndex::find_owner(StreamId stream, Area area) const {
  const auto owners = owners_.find(stream);
  return owners == owners_.end() ? nullptr : &owners->second->at(area);
}

void HeapIndex::reserve_bins(Area area, Bytes largest) {
  if (largest <= largest_.at(area)) return;
  common_.at(area).bins.reserve(largest);
  if (owners_.size() <= kFewStreams) {
    for (const auto& [stream, owners] : owners_) owners->at(area).bins.reserve(largest);
  }
  largest_.at(area) = largest;
}

void HeapIndex::expect_free(const Block& block) const noexcept {
  // The free checks whether these join. With many blocks they are uncached, and recording the point
  // takes about as long as reading them.
  __builtin_prefetch(block.neighbours.previous);
  __builtin_prefetch(block.neighbours.next);
  if (block.neighbours.next != nullptr) {
    blocks_.prefetch(static_cast<const std::byte*>(block.pointer) + block.size.count);
  }
}

void HeapIndex::set_owner(Block& block, StreamId stream) {
  auto owners = owners_.find(stream);
  if (owners == owners_.end()) {
    auto made = std::make_unique<Owners>();
    for (const Area area : {kSmallArea, kLargeArea}) {
      made->at(area).home = stream;
      made->at(area).state = &state_of(stream);
      made->at(area).area = area;
      if (owners_.size() < kFewStreams) made->at(area).bins.reserve(largest_.at(area));
    }
    owners = owners_.emplace(stream, std::move(made)).first;
    if (owners_.size() > 1) ever_several_ = true;
  }
  give_to(block, &owners->second->at(owner_of(block).area));
}

void HeapIndex::insert_into_bins(Block& piece) noexcept {
  owner_of(piece).bins.insert(piece);
  if (is_common(piece)) add_releasable(piece, releasable_of(piece));
  mark_touching(piece);
}

void HeapIndex::remove_from_bins(Block& piece) noexcept {
  owner_of(piece).bins.remove(piece);
  if (is_common(piece)) subtract_releasable(piece, releasable_of(piece));
  if (piece.may_touch) --owner_of(piece).touching;
  piece.may_touch = false;
}

void HeapIndex::mark_touching(Block& piece) noexcept {
  const auto mark = [](Block& own) {
    own.may_touch = true;
    ++owner_of(own).touching;
  };
  piece.may_touch = false;
  if (!ever_several_) return;  // touching pieces are joined at once (can_join)
  const BlockLink near = piece.neighbours;
  if (!is_common(piece)) {
    if (is_common_and_cached(near.previous) || is_common_and_cached(near.next)) mark(piece);
    return;
  }
  for (Block* own : {near.previous, near.next}) {
    const bool is_own = own != nullptr && own->state == BlockState::kCached && !is_common(*own);
    if (is_own && !own->may_touch) mark(*own);
  }
}

void HeapIndex::insert(Block& piece) noexcept {
  piece.state = BlockState::kCached;
  insert_into_bins(piece);
  if (!is_common(piece)) piece.owner->state->add_unpassed(piece);
}

void HeapIndex::take_out(Block& piece) noexcept {
  remove_from_bins(piece);
  if (!is_common(piece)) piece.owner->state->remove_unpassed(piece);
}

Block& HeapIndex::split(Block& piece, Bytes size) {
  Block& rest = blocks_.insert(static_cast<std::byte*>(piece.pointer) + size.count);
  rest.size = piece.size - size;
  rest.home = piece.home;
  rest.home_sequence = piece.home_sequence;
  give_to(rest, piece.owner);
  rest.moved_at = piece.moved_at;
  rest.state = piece.state;
  Block* after = piece.neighbours.next;
  rest.neighbours = {.previous = &piece, .next = after};
  if (after != nullptr) after->neighbours.previous = &rest;
  piece.neighbours.next = &rest;
  piece.size = size;
  return rest;
}

Block* HeapIndex::take_part(Block& piece, Bytes size) {
  if (piece.size == size) {
    take_out(piece);
    return &piece;
  }
  const bool at_end = cuts_at_end(piece, size);
  remove_from_bins(piece);
  Block* second = nullptr;
  try {
    second = &split(piece, at_end ? piece.size - size : size);
  } catch (...) {
    insert_into_bins(piece);
    throw;
  }
  StreamState* const state = is_common(piece) ? nullptr : piece.owner->state;
  if (state != nullptr) state->unpassed_bytes -= size;
  if (at_end) {
    insert_into_bins(piece);
    return second;
  }
  insert_into_bins(*second);
  if (state != nullptr) state->unpassed.replace(piece, *second);
  return &piece;
}

Block* HeapIndex::best(Bytes size, StreamId stream, Area area) const {
  Block* best = pick(common_.at(area).bins, size);
  if (const Owner* own = find_owner(stream, area)) {
    Block* piece = pick(own->bins, size);
    if (piece != nullptr && (best == nullptr || piece->size <= best->size)) best = piece;
  }
  return best;
}

Block* HeapIndex::take_own(Bytes size, StreamId stream) {
  Block* piece = best(size, stream, area_of(size));
  return piece != nullptr ? take_part(*piece, size) : take_elsewhere(size, stream);
}

Block* HeapIndex::take_passed(Bytes size, StreamId stream) {
  if (Block* block = take_own(size, stream)) return block;
  return join_own_with_common(stream, area_of(size)) ? take_own(size, stream) : nullptr;
}

bool HeapIndex::join_own_with_common(StreamId stream, Area area) {
  Owner* own = find_owner(stream, area);
  if (own == nullptr || own->touching == 0) return false;
  const auto is_common_here = [this, area](const Block* block) {
    return is_common_and_cached(block) && block->owner == &common_.at(area);
  };
  const auto takes_next = [&](const Block& piece) {
    const Block* next = piece.neighbours.next;
    return is_common_here(next) && !next->begins_run;
  };
  const auto takes_previous = [&](const Block& piece) {
    return is_common_here(piece.neighbours.previous) && !piece.begins_run;
  };
  // Addresses, because joining one piece may end another.
  std::vector<void*> touching;
  touching.reserve(std::min<std::size_t>(own->touching, kJoined));
  std::size_t looked_at = 0;
  own->bins.for_each_largest([&](Block& piece) {
    if (piece.may_touch) {
      piece.may_touch = false;
      --own->touching;
      if (takes_next(piece) || takes_previous(piece)) touching.push_back(piece.pointer);
    }
    return own->touching != 0 && ++looked_at < kJoined;
  });
  // All were seen. A piece that was in no list meanwhile may have been counted twice.
  if (looked_at < kJoined) own->touching = 0;
  for (void* address : touching) {
    Block* piece = blocks_.find(address);
    if (piece == nullptr || piece->owner != own) continue;
    take_out(*piece);
    if (takes_next(*piece)) {
      Block& next = *piece->neighbours.next;
      take_out(next);
      absorb_next(*piece, next);
    }
    if (takes_previous(*piece)) {
      Block& previous = *piece->neighbours.previous;
      take_out(previous);
      absorb_next(previous, *piece);
      piece = &previous;
    }
    place_piece(*piece);
  }
  return !touching.empty();
}

Block* HeapIndex::oldest_unpassed(Bytes size, Area area) const {
  Block* oldest = nullptr;
  for (const auto& [stream, owners] : owners_) {
    Block* piece = owners->at(area).bins.best(size);
    if (piece == nullptr) continue;
    if (oldest == nullptr || piece->moved_at < oldest->moved_at) oldest = piece;
  }
  return oldest;
}

Block* HeapIndex::take_unpassed(Bytes size) {
  Block* piece = oldest_unpassed(size, area_of(size));
  return piece != nullptr ? take_part(*piece, size) : take_unpassed_elsewhere(size);
}

bool HeapIndex::can_join(const Block& a, const Block& b) const {
  if (a.state != BlockState::kCached || b.state != BlockState::kCached) return false;
  if (b.begins_run || is_small(a) != is_small(b)) return false;
  if (a.owner == b.owner) return true;
  // Joining withholds common memory from other streams until the point is passed: only if there are
  // none, or the stream lacks just that (join_own_with_common).
  return owners_.size() == 1 && (is_common(a) || is_common(b));
}

void HeapIndex::absorb_next(Block& piece, Block& next) noexcept {
  piece.size += next.size;
  if (is_common(piece)) {
    give_to(piece, next.owner);
    piece.home = next.home;
    piece.home_sequence = next.home_sequence;
  } else if (!is_common(next)) {
    piece.home_sequence = std::max(piece.home_sequence, next.home_sequence);
  }
  if (next.moved_at > piece.moved_at) piece.moved_at = next.moved_at;
  Block* after = next.neighbours.next;
  piece.neighbours.next = after;
  if (after != nullptr) after->neighbours.previous = &piece;
  give_to(next, nullptr);
  blocks_.erase(next);
}

void HeapIndex::place_piece(Block& piece) {
  piece.state = BlockState::kCached;
  Block* next = piece.neighbours.next;
  if (next != nullptr && can_join(piece, *next)) {
    take_out(*next);
    absorb_next(piece, *next);
  }
  Block* whole = &piece;
  Block* previous = piece.neighbours.previous;
  if (previous != nullptr && can_join(*previous, piece)) {
    take_out(*previous);
    absorb_next(*previous, piece);
    whole = previous;
  }
  if (!changes_area(*whole)) return insert(*whole);
  change_area(*whole);
  place_piece(*whole);  // recurses at most once: changes_area is true for one area only
}

void HeapIndex::change_area(Block& piece) {
  const Area other = is_small(piece) ? kLargeArea : kSmallArea;
  piece.begins_run = other == kSmallArea;
  give_to(piece, is_common(piece) ? &common_.at(other) : find_owner(piece.owner->home, other));
}

void HeapIndex::place_cached(Block& block) noexcept {
  keep_points(block);
  // The point may have been passed while the block awaited another stream; no poll reports that
  // again.
  if (block.owner->passed(block)) {
    block.home_sequence = 0;
    give_to(block, &common_.at(owner_of(block).area));
  }
  place_piece(block);
}

void HeapIndex::make_common(Block& piece) {
  take_out(piece);
  piece.home_sequence = 0;
  give_to(piece, &common_.at(owner_of(piece).area));
  place_piece(piece);
}

Bytes HeapIndex::largest_cached() const {
  Bytes largest;
  const auto look = [&](const Owners& owners) {
    for (const Owner& owner : owners) largest = std::max(largest, owner.bins.largest());
  };
  look(common_);
  for (const auto& [stream, owners] : owners_) look(*owners);
  return largest;
}

}  // namespace weir
