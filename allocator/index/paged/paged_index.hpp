#pragma once

// The blocks of `paged`: the pieces of heap_index.hpp in reserved addresses, with pages behind
// those where something lives or lived. Between them lie voids: whole pages' worth of addresses
// with nothing behind them. A request that no piece with pages holds is placed where it needs the
// fewest new pages, next to what is mapped there, and takes them from under pieces that are free
// (least recently freed first) and only then from the source. So memory is never stranded in holes,
// but for what is less than a page at either end of each.
//
// A page on which a byte lives stays where it is: it is pinned. Of the next few pieces that fit,
// bin after bin, a request gets the one where it pins the fewest pages. A block of a small heap
// that needs new pages goes where it pins the fewest.
//
// A page leaves its place only when the device is known to have passed every free on it. From under
// a piece that only the requesting stream may have, which the device has not passed, it is mapped
// at its new place at once, beside the old one (page_source.hpp says when that is allowed). Work on
// that stream is in its order, so what still uses the old place is over when the block is used. The
// old place is stale: in no bins, joined with nothing, handed out to nobody. It is unmapped once
// the device has passed the free, and is a void then. So a page has one live place, and any number
// of stale ones. A page with stale places is not destroyed.

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "allocator/index/heap_index.hpp"
#include "allocator/index/paged/page_move.hpp"
#include "allocator/index/paged/page_range.hpp"
#include "allocator/index/paged/page_site.hpp"
#include "allocator/index/paged/page_table.hpp"
#include "allocator/index/paged/stale_places.hpp"
#include "allocator/memory/page_source.hpp"

namespace weir {

class PagedIndex final : public HeapIndex {
 public:
  /// Requests of up to three quarters of a usual page are kept apart. Of borders from 128 KiB to 4
  /// MiB this one leaves the fewest small traces above 1.03 times their peak and two pages
  /// (docs/fragmentation.md).
  static constexpr Bytes kApart = kib(1536);

  explicit PagedIndex(Bytes page) : HeapIndex(kApart), grid_(page), table_(page), stale_(page) {}

  enum class Plan {
    kMade,
    kNoPages,      ///< more are needed than can be moved and, besides, be had
    kNoAddresses,  ///< no run of free addresses that is long enough was found
  };
  /// How many new pages a plan may ask for.
  struct NewPages {
    std::size_t rather = 0;  ///< before it takes any from under free pieces
    std::size_t most = 0;    ///< at all
  };
  /// Plans a block of `size` for `stream`. What the plan names is nobody else's until it is
  /// finished. May throw, and has changed nothing then.
  [[nodiscard]] Plan plan(Bytes size, StreamId stream, NewPages allowed, PageMove& move);
  /// Plans to destroy up to `most` pages, spare ones first.
  void plan_release(std::size_t most, PageMove& move);
  /// Takes over what was carried out. The block, marked as handed out to nobody yet; null where not
  /// every page was mapped. Those of `pages` that are left over are spare ones from now on.
  Block* finish(PageMove& move);

  /// Which area a region for a block of `size` would serve.
  void add_region(void* address, Bytes size, Bytes for_block);
  [[nodiscard]] Bytes page() const noexcept { return grid_.page(); }
  /// Addresses that are stale, in pages.
  [[nodiscard]] std::size_t stale_pages() const noexcept { return stale_.pages(); }
  /// At the end of the pool: calls `unmap` for every stale mapping. False if any of them failed.
  [[nodiscard]] bool end_stale(const std::function<bool(Mapping)>& unmap);
  /// Every page that is mapped, and every spare one and region, for the last time.
  void for_each_mapping(const std::function<void(Mapping)>& visit) const;
  void for_each_region(const std::function<void(Segment)>& visit) const;
  [[nodiscard]] const std::vector<Page>& spare() const noexcept { return spare_; }

  // Growth is by pages: there is no segment to add or to give back.
  [[nodiscard]] Bytes segment_size(Bytes size, Bytes /*room*/) const override { return size; }
  [[nodiscard]] Block& add(Segment segment, Bytes size) override;
  [[nodiscard]] Bytes releasable() const override { return releasable_ + page() * spare_.size(); }
  Bytes take_releasable(Bytes /*need*/, std::vector<Segment>& /*taken*/) override { return {}; }
  /// A block is a part of a region, always.
  [[nodiscard]] bool remove_allocated(Block& /*block*/) override { return false; }
  void for_each_segment(const std::function<void(Segment)>& /*visit*/) const override {}

 private:
  /// A plan looks at so many pieces of a stream for pages that may come early, and at one more for
  /// each page that it wants.
  static constexpr std::size_t kLenders = 256;

  /// Of the first so many pieces that fit, bin after bin, the one that pins the fewest pages is
  /// taken. More gained nothing on any trace.
  static constexpr std::size_t kFits = 4;

  /// Up to so many pages a block is placed where it pins the fewest. Above, one page is a small
  /// part of the heap, and the moves that this costs are more than it is worth.
  static constexpr std::size_t kSmallHeap = 256;

  struct Region {
    std::uintptr_t begin = 0;
    Bytes size;
  };
  /// Pages under `piece` on which something would live, if its first `size` bytes were handed out.
  [[nodiscard]] std::size_t pins(const Block& piece, Bytes size) const noexcept {
    const auto [begin, end] = grid_.whole(piece);
    return grid_.pages_in({begin, std::min(end, grid_.up(piece.begin() + size.count))});
  }
  [[nodiscard]] Block* pick(const FreeBins& bins, Bytes size) const override;
  /// The page there, or none; of addresses that a plan was about.
  [[nodiscard]] Page& page_at(std::uintptr_t address) { return table_.at(address); }
  [[nodiscard]] std::size_t pages_under(const Block& piece) const noexcept {
    return grid_.pages_in(grid_.whole(piece));
  }
  /// Whole pages under free pieces, without those that a block in `range` of `site` touches.
  [[nodiscard]] std::size_t movable_pages(const PageSite& site, PageRange range) const;
  [[nodiscard]] Bytes releasable_of(const Block& piece) const noexcept override {
    return page() * pages_under(piece);
  }
  [[nodiscard]] Plan plan_by(SiteOrder order, Bytes size, StreamId stream, NewPages allowed,
                             PageMove& move);
  void claim_target(const PageSite& site, PageRange range, PageMove& move);
  /// `count` pages, which there are, from under the least recently freed pieces.
  void claim_victims(std::size_t count, PageMove& move);
  /// Takes up to `most` whole pages out of a cached piece, at least one; what is left stays cached.
  Block& claim_pages(Block& piece, std::size_t most);
  /// Pieces that only their stream may have, with whole pages and apart from `kept`, in the order
  /// of their points: of the largest ones in each area, for `pages` pages.
  [[nodiscard]] std::vector<Block*> lenders_of(const Owners& owners, PageRange kept,
                                               std::size_t pages) const;
  void claim_lenders(Owners& owners, const std::vector<Block*>& lenders, std::size_t count,
                     PageMove& move);
  /// What is left of `target` beside the block is no other stream's before the point of the lender:
  /// work on the old place of its pages may still write there.
  void keep_behind(Block& target, const Block& lender, Owners& owners);
  void claim_retired(PageMove& move);
  /// Makes sure that neither the claims, which follow at once, nor finishing can fail; may fail
  /// itself, and has changed nothing then.
  void promise_for(PageMove& move, std::size_t places, std::size_t victims, std::size_t create);
  void take_any(Block& piece) noexcept;
  void place_void(Block& piece) noexcept;
  /// Places a piece that a plan had claimed and did not use. Its point can have been passed
  /// meanwhile, and nobody tells of that again.
  void place_again(Block& piece);
  void place_stale(Block& piece) noexcept;
  void finish_retired(PageMove& move);
  void finish_lenders(PageMove& move);
  void passed_more(StreamId stream) override {
    stale_.note_passed(stream, state_of(stream).passed);
  }
  /// The piece from `address` on, cut off the one that it is in, which is in no list and keeps its
  /// state.
  Block& cut(Block& piece, std::uintptr_t address);
  Block* finish_target(PageMove& move);
  void give_up_target(Block& target);

  const PageGrid grid_;
  PageTable table_;  ///< of what is mapped, by address
  std::array<FreeBins, kAreas> voids_;
  std::vector<Region> regions_;
  std::vector<Page> spare_;  ///< without a live place
  StalePlaces stale_;
  std::size_t pages_ = 0;  ///< all that there are or may be soon, on their way as well
};

}  // namespace weir
