#include "allocator/index/paged/paged_index.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace weir {

Block& PagedIndex::add(Segment /*segment*/, Bytes /*size*/) {
  throw std::logic_error("paged: grows by pages, not by segments");
}

void PagedIndex::add_region(void* address, Bytes size, Bytes for_block) {
  const Area area = area_of(for_block);
  reserve_bins(area, size);
  voids_.at(area).reserve(size);
  regions_.push_back({.begin = reinterpret_cast<std::uintptr_t>(address), .size = size});
  Block* piece = nullptr;
  try {
    piece = &blocks_.insert(address);
  } catch (...) {
    regions_.pop_back();
    throw;
  }
  piece->size = size;
  give_to(*piece, &common_.at(area));
  place_void(*piece);
}

void PagedIndex::place_void(Block& piece) noexcept {
  FreeBins& voids = voids_.at(owner_of(piece).area);
  piece.state = BlockState::kVoid;
  give_to(piece, &common_.at(owner_of(piece).area));
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

Block* PagedIndex::pick(const FreeBins& bins, Bytes size) const {
  Block* best = bins.best(size);
  if (best == nullptr) return nullptr;
  std::size_t least = pins(*best, size);
  if (least == 0) return best;
  std::size_t left = kFits;
  bins.for_each_fit(size, [&](Block& piece) {
    const std::size_t pages = pins(piece, size);
    if (std::pair(pages, piece.size) < std::pair(least, best->size)) {
      best = &piece;
      least = pages;
    }
    return --left != 0 && least != 0;
  });
  return best;
}

std::size_t PagedIndex::movable_pages(const PageSite& site, PageRange range) const {
  std::size_t pages = releasable_.count / page().count;
  for (const Block* b = site.first; b != nullptr && b->begin() < range.end;
       b = b->neighbours.next) {
    if (b->state == BlockState::kVoid || !is_common(*b)) continue;
    pages -= pages_under(*b);
    pages += grid_.pages_outside(*b, range);
  }
  return pages;
}

PagedIndex::Plan PagedIndex::plan(Bytes size, StreamId stream, NewPages allowed, PageMove& move) {
  if (pages_ < kSmallHeap) {
    // The place that pins the fewest pages may need too many new ones.
    const Plan made = plan_by(SiteOrder::kFewestPinned, size, stream, allowed, move);
    if (made != Plan::kNoPages) return made;
  }
  return plan_by(SiteOrder::kFewestNew, size, stream, allowed, move);
}

PagedIndex::Plan PagedIndex::plan_by(SiteOrder order, Bytes size, StreamId stream, NewPages allowed,
                                     PageMove& move) {
  const Area area = area_of(size);
  const Owner* own = find_owner(stream, area);
  const PageSite site = find_page_site(voids_.at(area), size, grid_,
                                       {.own = own, .common = &common_.at(area)}, order);
  if (site.first == nullptr) return Plan::kNoAddresses;

  // Voids are mapped by whole pages.
  PageRange range{site.at, site.at + size.count};
  for (const Block* b = site.first; b != nullptr && b->begin() < site.at + size.count;
       b = b->neighbours.next) {
    if (b->state != BlockState::kVoid) continue;
    if (b->begin() <= site.at && site.at < b->end()) range.begin = grid_.down(site.at);
    if (b->end() >= site.at + size.count) range.end = grid_.up(site.at + size.count);
  }
  const std::size_t movable = movable_pages(site, range);
  const auto owners = owners_.find(stream);
  Owners* const lending = owners == owners_.end() ? nullptr : owners->second.get();
  // A sum first: a search costs time for each page of the request.
  Bytes own_free;
  for (const Area each : {kSmallArea, kLargeArea}) {
    if (lending != nullptr) own_free += lending->at(each).bins.bytes();
  }
  const std::size_t most_lent = own_free.count / page().count;
  if (site.new_pages > spare_.size() + movable + most_lent + allowed.most) return Plan::kNoPages;
  std::vector<Block*> lenders;
  if (lending != nullptr) lenders = lenders_of(*lending, range, site.new_pages);
  std::size_t lendable = 0;
  for (const Block* piece : lenders) lendable += pages_under(*piece);
  // No more stale places than pages: addresses must suffice however late the device is.
  const std::size_t lent = std::min(lendable, pages_ - std::min(pages_, stale_.pages()));
  if (site.new_pages > spare_.size() + movable + lent + allowed.most) return Plan::kNoPages;

  // All memory needed until the end of `finish`.
  const std::size_t count = site.new_pages;
  table_.make_room(grid_.down(range.begin), grid_.up(range.end));
  move.places.reserve(count);
  move.unmap.reserve(count);
  move.pages.reserve(count);
  const std::size_t victims = std::min(count, movable);  // each gives at least one page
  const std::size_t most_lenders = std::min(count, lent);
  move.victims.reserve(victims);
  move.lenders.reserve(most_lenders);
  move.retired.reserve(stale_.pages());
  move.retire.reserve(stale_.pages());
  if (most_lenders != 0) stale_.make_room(stream);
  promise_for(move, count, victims + most_lenders, std::min(count, allowed.most));

  claim_retired(move);
  claim_target(site, range, move);
  move.at = site.at;
  move.size = size;
  while (move.pages.size() < count && !spare_.empty()) {
    move.pages.push_back(spare_.back());
    spare_.pop_back();
  }
  const std::size_t lacking = count - move.pages.size();
  const std::size_t rather_new = std::min({lacking, allowed.rather, allowed.most});
  claim_victims(std::min(lacking - rather_new, movable), move);
  const std::size_t borrowed = std::min(lacking - rather_new - move.unmap.size(), lent);
  if (borrowed != 0) claim_lenders(*lending, lenders, borrowed, move);
  move.create = count - move.pages.size() - move.unmap.size();
  return Plan::kMade;
}

void PagedIndex::promise_for(PageMove& move, std::size_t places, std::size_t victims,
                             std::size_t create) {
  const std::size_t claiming = 2 * victims + 2;  // both ends of each and of the target
  // A failed move may separate every page, and cuts one piece of each kind that gave pages.
  const std::size_t finishing = 2 * places + 5;
  spare_.reserve(pages_ + create);  // all pages
  blocks_.promise(claiming + finishing);
  blocks_.redeem(claiming);
  move.promised = finishing;
  pages_ += create;
  move.promised_pages = create;
}

void PagedIndex::claim_target(const PageSite& site, PageRange range, PageMove& move) {
  Block* piece = site.first;
  while (piece->end() <= range.begin) piece = piece->neighbours.next;
  // The cut-off ends keep their state.
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
      for (std::uintptr_t at = piece->begin(); at < piece->end(); at += page().count) {
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

Block& PagedIndex::claim_pages(Block& piece, std::size_t most) {
  const PageRange whole = grid_.whole(piece);
  const std::size_t taken = std::min(most, grid_.pages_in(whole));
  // From the end next to a void: voids grow together.
  const Block* previous = piece.neighbours.previous;
  const bool from_front = previous != nullptr && previous->state == BlockState::kVoid;
  const std::uintptr_t begin = from_front ? whole.begin : whole.end - taken * page().count;
  const std::uintptr_t end = begin + taken * page().count;
  take_out(piece);
  Block* claimed = &piece;
  if (piece.begin() < begin) {
    claimed = &cut(piece, begin);
    insert(piece);
  }
  if (claimed->end() > end) insert(cut(*claimed, end));
  claimed->state = BlockState::kMoving;
  return *claimed;
}

void PagedIndex::claim_victims(std::size_t count, PageMove& move) {
  while (count != 0) {
    Block& victim = claim_pages(*releasable_blocks_.front(), count);
    count -= victim.size.count / page().count;
    move.victims.push_back(&victim);
    for (std::uintptr_t at = victim.begin(); at < victim.end(); at += page().count) {
      move.unmap.push_back({reinterpret_cast<void*>(at), page_at(at)});
    }
  }
}

std::vector<Block*> PagedIndex::lenders_of(const Owners& owners, PageRange kept,
                                           std::size_t pages) const {
  std::vector<Block*> lenders;
  for (const Owner& owner : owners) {
    std::size_t looked_at = 0;
    owner.bins.for_each_largest([&](Block& piece) {
      if (piece.size < page() || ++looked_at > kLenders + pages) return false;
      const bool apart = piece.end() <= kept.begin || piece.begin() >= kept.end;
      if (apart && pages_under(piece) != 0) lenders.push_back(&piece);
      return true;
    });
  }
  std::ranges::sort(lenders, {}, [](const Block* piece) {
    return std::pair(piece->home_sequence, piece->begin());
  });
  return lenders;
}

void PagedIndex::claim_lenders(Owners& owners, const std::vector<Block*>& lenders,
                               std::size_t count, PageMove& move) {
  const std::size_t before = move.pages.size();
  for (Block* piece : lenders) {
    if (count == 0) break;
    Block& lender = claim_pages(*piece, count);
    count -= lender.size.count / page().count;
    move.lenders.push_back(&lender);
    keep_behind(*move.target, lender, owners);
    for (std::uintptr_t at = lender.begin(); at < lender.end(); at += page().count) {
      move.pages.push_back(page_at(at));
    }
  }
  move.lent = move.pages.size() - before;
  std::rotate(move.pages.begin(), move.pages.begin() + static_cast<std::ptrdiff_t>(before),
              move.pages.end());
  move.borrower = owners.front().home;
  stale_.begin_move(move.borrower);
}

void PagedIndex::keep_behind(Block& target, const Block& lender, Owners& owners) {
  const bool was_common = is_common(target);
  if (was_common) give_to(target, &owners.at(owner_of(target).area));
  if (was_common || target.home_sequence < lender.home_sequence) {
    target.home_sequence = lender.home_sequence;
  }
  target.home = lender.home;
  if (target.moved_at < lender.moved_at) target.moved_at = lender.moved_at;
}

void PagedIndex::claim_retired(PageMove& move) {
  while (Block* piece = stale_.take_retired()) {
    piece->state = BlockState::kMoving;
    move.retired.push_back(piece);
    for (std::uintptr_t at = piece->begin(); at < piece->end(); at += page().count) {
      move.retire.push_back({reinterpret_cast<void*>(at), page_at(at)});
    }
  }
}

void PagedIndex::plan_release(std::size_t most, PageMove& move) {
  const std::size_t spare = std::min(most, spare_.size());
  const std::size_t count = std::min<std::size_t>(most - spare, releasable_.count / page().count);
  if (spare + count == 0) return;
  move.unmap.reserve(count);
  move.pages.reserve(spare + count);
  move.victims.reserve(count);
  move.retired.reserve(stale_.pages());
  move.retire.reserve(stale_.pages());
  move.kept.reserve(stale_.pages());
  promise_for(move, 0, count, 0);
  const auto keep = [&](const Block& piece) {
    for (std::uintptr_t at = piece.begin(); at < piece.end(); at += page().count) {
      move.kept.push_back(page_at(at).id);
    }
  };
  stale_.for_each_waiting(keep);  // before this move takes some
  claim_retired(move);
  for (std::size_t i = 0; i < spare; ++i) {
    move.pages.push_back(spare_.back());
    spare_.pop_back();
  }
  claim_victims(count, move);
}

bool PagedIndex::end_stale(const std::function<bool(Mapping)>& unmap) {
  bool all = true;
  for_each([&](const Block& piece) {
    if (piece.state != BlockState::kStale) return;
    for (std::uintptr_t at = piece.begin(); at < piece.end(); at += page().count) {
      Page& page = page_at(at);
      if (!unmap({reinterpret_cast<void*>(at), page})) all = false;
      page = {};
    }
  });
  return all;
}

void PagedIndex::for_each_mapping(const std::function<void(Mapping)>& visit) const {
  table_.for_each(visit);
}

void PagedIndex::for_each_region(const std::function<void(Segment)>& visit) const {
  for (const Region& region : regions_) {
    visit({reinterpret_cast<void*>(region.begin), region.size});
  }
}

}  // namespace weir
