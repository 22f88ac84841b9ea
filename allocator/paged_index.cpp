#include "allocator/paged_index.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace weir {

Page& PagedIndex::page_at(std::uintptr_t address) {
  const auto region = std::ranges::find_if(regions_, [address](const Region& r) {
    return address >= r.begin && address - r.begin < r.size.count;
  });
  return region->pages[(address - region->begin) / page_.count];
}

Block& PagedIndex::add(Segment /*segment*/, Bytes /*size*/) {
  throw std::logic_error("paged: grows by pages, not by segments");
}

void PagedIndex::add_region(void* address, Bytes size, Bytes for_block) {
  const Area area = area_of(for_block);
  reserve_bins(area, size);
  voids_.at(area).reserve(size);
  Region region{.begin = reinterpret_cast<std::uintptr_t>(address), .size = size, .pages = {}};
  region.pages.resize(size.count / page_.count);
  regions_.push_back(std::move(region));
  Block* piece = nullptr;
  try {
    piece = &blocks_.insert(address);
  } catch (...) {
    regions_.pop_back();
    throw;
  }
  piece->size = size;
  piece->owner = &common_.at(area);
  place_void(*piece);
}

void PagedIndex::place_void(Block& piece) noexcept {
  FreeBins& voids = voids_.at(owner_of(piece).area);
  piece.state = BlockState::kVoid;
  piece.owner = &common_.at(owner_of(piece).area);
  const auto is_void = [](const Block* b) { return b != nullptr && b->state == BlockState::kVoid; };
  Block* next = piece.neighbours.next;
  if (is_void(next)) {
    voids.remove(*next);
    absorb_next(piece, *next);
  }
  Block* kept = &piece;
  Block* previous = piece.neighbours.previous;
  if (is_void(previous)) {
    voids.remove(*previous);
    absorb_next(*previous, piece);
    kept = previous;
  }
  voids.insert(*kept);
}

void PagedIndex::take_any(Block& piece) noexcept {
  if (piece.state == BlockState::kVoid) {
    voids_.at(owner_of(piece).area).remove(piece);
  } else {
    take_out(piece);
  }
}

Block& PagedIndex::cut(Block& piece, std::uintptr_t address) {
  return split(piece, Bytes{address - piece.begin()});
}

bool PagedIndex::usable(const Block* piece, const Owner* own) const {
  if (piece == nullptr) return false;
  if (piece->state == BlockState::kVoid) return true;
  return piece->state == BlockState::kCached && (piece->owner == own || is_common(*piece));
}

PagedIndex::Site PagedIndex::find_site(Bytes size, const Owner* own, Area area) const {
  Site best;
  voids_.at(area).for_each_from({}, [&](Block& piece) {
    // The first void of its run looks at all of it.
    Block* first = &piece;
    while (usable(first->neighbours.previous, own)) {
      first = first->neighbours.previous;
      if (first->state == BlockState::kVoid) return;
    }
    look_at_run(*first, size, own, best);
  });
  return best;
}

void PagedIndex::look_at_run(Block& first, Bytes size, const Owner* own, Site& best) const {
  std::uintptr_t end = first.end();
  for (Block* b = first.neighbours.next; usable(b, own); b = b->neighbours.next) end = b->end();
  const std::uint64_t run = end - first.begin();
  if (run < size.count) return;
  const auto consider = [&](std::uintptr_t at) {
    if (at < first.begin() || at + size.count > end) return;
    const std::size_t new_pages = new_pages_at(first, at, size);
    const auto key = std::tuple(new_pages, run, at);
    if (best.first == nullptr || key < std::tuple(best.new_pages, best.run, best.at)) {
      best = {.first = &first, .at = at, .new_pages = new_pages, .run = run};
    }
  };
  // The fewest pages are new where the block begins or ends with what is mapped.
  for (const Block* b = &first; b != nullptr && b->begin() < end; b = b->neighbours.next) {
    consider(b->begin());
    consider(b->end() - size.count);
  }
}

std::size_t PagedIndex::new_pages_at(const Block& first, std::uintptr_t at, Bytes size) const {
  std::size_t pages = 0;
  const Range range{page_down(at), page_up(at + size.count)};
  for (const Block* b = &first; b != nullptr && b->begin() < range.end; b = b->neighbours.next) {
    if (b->state != BlockState::kVoid) continue;
    pages += pages_in({std::max(range.begin, b->begin()), std::min(range.end, b->end())});
  }
  return pages;
}

std::size_t PagedIndex::find_victims(Range kept, std::vector<Block*>& pieces) const {
  std::size_t count = 0;
  for (const Owner& owner : common_) {
    owner.bins.for_each_from(page_, [&](Block& piece) {
      const Range whole = whole_pages(piece);
      const std::size_t free = pages_in({whole.begin, std::min(whole.end, page_down(kept.begin))}) +
                               pages_in({std::max(whole.begin, page_up(kept.end)), whole.end});
      if (free == 0) return;
      count += free;
      pieces.push_back(&piece);
    });
  }
  std::ranges::sort(pieces, {}, [](const Block* p) { return std::uint64_t{p->moved_at}; });
  return count;
}

PagedIndex::Plan PagedIndex::plan(Bytes size, StreamId stream, NewPages allowed, PageMove& move) {
  const Area area = area_of(size);
  const Owner* own = find_owner(stream, area);
  const Site site = find_site(size, own, area);
  if (site.first == nullptr) return Plan::kNoAddresses;

  // What lies in voids is mapped by whole pages.
  Range range{site.at, site.at + size.count};
  for (const Block* b = site.first; b != nullptr && b->begin() < site.at + size.count;
       b = b->neighbours.next) {
    if (b->state != BlockState::kVoid) continue;
    if (b->begin() <= site.at && site.at < b->end()) range.begin = page_down(site.at);
    if (b->end() >= site.at + size.count) range.end = page_up(site.at + size.count);
  }
  std::vector<Block*> pieces;
  const std::size_t movable = find_victims(range, pieces);
  if (site.new_pages > spare_.size() + movable + allowed.most) return Plan::kNoPages;

  // All memory that any step from here to the end of `finish` needs.
  const std::size_t count = site.new_pages;
  move.places.reserve(count);
  move.unmap.reserve(count);
  move.pages.reserve(count);
  move.victims.reserve(pieces.size() + 2);
  std::vector<Block*> left;
  left.reserve(pieces.size() + 2);
  promise_for(move, count, pieces.size() + 2, std::min(count, allowed.most));

  claim_target(site, range, move);
  move.at = site.at;
  move.size = size;
  while (move.pages.size() < count && !spare_.empty()) {
    move.pages.push_back(spare_.back());
    spare_.pop_back();
  }
  const std::size_t lacking = count - move.pages.size();
  const std::size_t rather_new = std::min({lacking, allowed.rather, allowed.most});
  find_victims({}, left);  // again: some were cut
  claim_victims(left, lacking - rather_new, move);
  move.create = count - move.pages.size() - move.unmap.size();
  return Plan::kMade;
}

void PagedIndex::promise_for(PageMove& move, std::size_t places, std::size_t victims,
                             std::size_t create) {
  const std::size_t claiming = 2 * victims + 2;  // either end of each, and of the target
  const std::size_t finishing = places + 2 * victims + 4;
  spare_.reserve(pages_ + create);  // every page there is
  blocks_.promise(claiming + finishing);
  blocks_.redeem(claiming);
  move.promised = finishing;
  pages_ += create;
  move.promised_pages = create;
}

void PagedIndex::claim_target(const Site& site, Range range, PageMove& move) {
  Block* piece = site.first;
  while (piece->end() <= range.begin) piece = piece->neighbours.next;
  // What is cut off at either end stays what it was.
  const auto put_back = [this](Block& rest, bool was_void) {
    was_void ? place_void(rest) : insert(rest);
  };
  Block* target = nullptr;
  for (bool is_last = false; !is_last;) {
    take_any(*piece);
    const bool was_void = piece->state == BlockState::kVoid;
    piece->state = BlockState::kMoving;
    if (piece->begin() < range.begin) {
      Block& rest = cut(*piece, range.begin);
      put_back(*piece, was_void);
      piece = &rest;
    }
    if (piece->end() > range.end) put_back(cut(*piece, range.end), was_void);
    if (was_void) {
      for (std::uintptr_t at = piece->begin(); at < piece->end(); at += page_.count) {
        move.places.push_back(reinterpret_cast<void*>(at));
      }
    }
    is_last = piece->end() == range.end;
    if (target == nullptr) {
      target = piece;
    } else {
      absorb_next(*target, *piece);
    }
    piece = target->neighbours.next;
  }
  move.target = target;
}

void PagedIndex::claim_victims(const std::vector<Block*>& pieces, std::size_t count,
                               PageMove& move) {
  for (Block* piece : pieces) {
    if (count == 0) return;
    const Range whole = whole_pages(*piece);
    const std::size_t taken = std::min(count, pages_in(whole));
    count -= taken;
    // From the end that lies next to a void, so that voids grow together.
    const Block* previous = piece->neighbours.previous;
    const bool from_front = previous != nullptr && previous->state == BlockState::kVoid;
    const std::uintptr_t begin = from_front ? whole.begin : whole.end - taken * page_.count;
    const std::uintptr_t end = begin + taken * page_.count;
    take_out(*piece);
    Block* victim = piece;
    if (piece->begin() < begin) {
      victim = &cut(*piece, begin);
      insert(*piece);
    }
    if (victim->end() > end) insert(cut(*victim, end));
    victim->state = BlockState::kMoving;
    move.victims.push_back(victim);
    for (std::uintptr_t at = begin; at < end; at += page_.count) {
      move.unmap.push_back({reinterpret_cast<void*>(at), page_at(at)});
    }
  }
}

void PagedIndex::plan_release(std::size_t most, PageMove& move) {
  std::vector<Block*> pieces;
  const std::size_t spare = std::min(most, spare_.size());
  const std::size_t count = std::min(most - spare, find_victims({}, pieces));
  if (spare + count == 0) return;
  move.unmap.reserve(count);
  move.pages.reserve(spare + count);
  move.victims.reserve(pieces.size());
  promise_for(move, 0, pieces.size(), 0);
  for (std::size_t i = 0; i < spare; ++i) {
    move.pages.push_back(spare_.back());
    spare_.pop_back();
  }
  claim_victims(pieces, count, move);
}

Block* PagedIndex::finish(PageMove& move) {
  blocks_.redeem(move.promised);
  pages_ -= move.promised_pages - move.created + move.destroyed;
  std::size_t done = 0;
  for (Block* victim : move.victims) {
    const std::uintptr_t end = victim->end();
    const std::size_t pages = victim->size.count / page_.count;
    const std::size_t unmapped = std::min(pages, move.unmapped - done);
    for (std::size_t i = 0; i < unmapped; ++i) {
      page_at(victim->begin() + i * page_.count) = {};
    }
    done += unmapped;
    Block* kept = victim;
    if (unmapped != 0 && unmapped != pages) {
      kept = &cut(*victim, end - (pages - unmapped) * page_.count);
    }
    if (unmapped != pages) place_piece(*kept);
    if (unmapped != 0) place_void(*victim);
  }
  for (std::size_t i = 0; i < move.mapped; ++i) {
    page_at(reinterpret_cast<std::uintptr_t>(move.places[i])) = move.pages[i];
  }
  spare_.insert(spare_.end(), move.pages.begin() + static_cast<std::ptrdiff_t>(move.mapped),
                move.pages.end());
  if (move.target == nullptr) return nullptr;
  if (move.mapped == move.places.size()) return finish_target(move);
  give_up_target(*move.target);
  return nullptr;
}

Block* PagedIndex::finish_target(PageMove& move) {
  Block* block = move.target;
  if (block->begin() < move.at) {
    Block& rest = cut(*block, move.at);
    place_piece(*block);
    block = &rest;
  }
  if (block->size > move.size) place_piece(cut(*block, move.at + move.size.count));
  block->state = BlockState::kAllocated;
  return block;
}

void PagedIndex::give_up_target(Block& target) {
  const auto is_mapped = [this](std::uintptr_t at) { return page_at(at).id != 0; };
  for (Block* piece = &target; piece != nullptr;) {
    const std::uintptr_t end = piece->end();
    const bool mapped = is_mapped(piece->begin());
    std::uintptr_t at = page_down(piece->begin()) + page_.count;
    while (at < end && is_mapped(at) == mapped) at += page_.count;
    Block* rest = at < end ? &cut(*piece, at) : nullptr;
    mapped ? place_piece(*piece) : place_void(*piece);
    piece = rest;
  }
}

Bytes PagedIndex::releasable() const {
  std::size_t pages = spare_.size();
  for (const Owner& owner : common_) {
    owner.bins.for_each_from(page_, [&](const Block& b) { pages += pages_in(whole_pages(b)); });
  }
  return {pages * page_.count};
}

void PagedIndex::for_each_mapping(const std::function<void(Mapping)>& visit) const {
  for (const Region& region : regions_) {
    for (std::size_t i = 0; i < region.pages.size(); ++i) {
      if (region.pages[i].id == 0) continue;
      visit({reinterpret_cast<void*>(region.begin + i * page_.count), region.pages[i]});
    }
  }
}

void PagedIndex::for_each_region(const std::function<void(Segment)>& visit) const {
  for (const Region& region : regions_) {
    visit({reinterpret_cast<void*>(region.begin), region.size});
  }
}

}  // namespace weir
