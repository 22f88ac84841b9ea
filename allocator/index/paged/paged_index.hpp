#pragma once

// The blocks of `paged`: the pieces of heap_index.hpp in reserved addresses, with pages behind
// those that are or were in use. Between them are voids: whole pages of addresses without pages. A
// request that no piece with pages holds goes next to mapped pages, where it needs the fewest new
// ones. It takes them from under free pieces, least recently freed first, then from the source. So
// holes waste less than a page at either end.
//
// A page with a live byte is pinned: it stays in place. Of the next few pieces that fit, a request
// gets the one where it pins the fewest pages. In a small heap, a block that needs new pages goes
// where it pins the fewest.
//
// A page leaves its place only when the device is known to have passed every free on it. The
// exception is a free piece that only the requesting stream may reuse: its pages are mapped at the
// new place at once, beside the old one (page_source.hpp says when that is allowed). The stream's
// order ensures that work on the old place is over when the block is used. The old place is stale:
// in no bins, never joined or handed out. Once the device has passed the free, it is unmapped and
// becomes a void. So a page has one live place and any number of stale ones. With stale places it
// is not destroyed.

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "allocator/index/heap_index.hpp"
#include "allocator/index/paged/page_places.hpp"
#include "allocator/index/paged/page_site.hpp"
#include "allocator/memory/page_source.hpp"

namespace weir {

class PagedIndex final : public HeapIndex {
 public:
  /// Separates requests up to three quarters of a usual page. Of borders from 128 KiB to 4 MiB,
  /// this leaves the fewest small traces above 1.03 times their peak and two pages
  /// (docs/fragmentation.md).
  static constexpr Bytes kApart = kib(1536);

  explicit PagedIndex(Bytes page) : HeapIndex(kApart), grid_(page), table_(page), stale_(page) {}

  enum class Plan {
    kMade,
    kNoPages,      ///< needs more pages than can be moved or created
    kNoAddresses,  ///< found no long enough run of free addresses
  };
  /// New pages that a plan may request.
  struct NewPages {
    std::size_t rather = 0;  ///< before taking pages from under free pieces
    std::size_t most = 0;    ///< in all
  };
  /// Plans a block of `size` for `stream`, and claims what it names until `finish`. May throw, and
  /// then changes nothing.
  [[nodiscard]] Plan plan(Bytes size, StreamId stream, NewPages allowed, PageMove& move);
  /// Plans to destroy up to `most` pages, spare ones first.
  void plan_release(std::size_t most, PageMove& move);
  /// Applies an executed move. Returns the block, not handed out yet; null if a page is not mapped.
  /// Left-over `pages` become spare.
  Block* finish(PageMove& move);

  /// Adds reserved addresses to the area of `for_block`.
  void add_region(void* address, Bytes size, Bytes for_block);
  [[nodiscard]] Bytes page() const noexcept { return grid_.page(); }
  /// How many pages of addresses are stale.
  [[nodiscard]] std::size_t stale_pages() const noexcept { return stale_.pages(); }
  /// Calls `unmap` for every stale mapping, at the pool's end. False if any failed.
  [[nodiscard]] bool end_stale(const std::function<bool(Mapping)>& unmap);
  /// For all mapped pages, spare ones and regions, at the pool's end.
  void for_each_mapping(const std::function<void(Mapping)>& visit) const;
  void for_each_region(const std::function<void(Segment)>& visit) const;
  [[nodiscard]] const std::vector<Page>& spare() const noexcept { return spare_; }

  // No segment is added or released.
  [[nodiscard]] Bytes segment_size(Bytes size, Bytes /*room*/) const override { return size; }
  [[nodiscard]] Block& add(Segment segment, Bytes size) override;
  [[nodiscard]] Bytes releasable() const override { return releasable_ + page() * spare_.size(); }
  Bytes take_releasable(Bytes /*need*/, std::vector<Segment>& /*taken*/) override { return {}; }
  /// A block is always part of a region.
  [[nodiscard]] bool remove_allocated(Block& /*block*/) override { return false; }
  void for_each_segment(const std::function<void(Segment)>& /*visit*/) const override {}

 private:
  /// How many of a stream's pieces a plan looks at for pages to lend, besides one for each page
  /// needed.
  static constexpr std::size_t kLenders = 256;

  /// `pick` takes the one of so many fitting pieces that pins the fewest pages. More gained nothing
  /// on any trace.
  static constexpr std::size_t kFits = 4;

  /// Up to so many pages, a block goes where it pins the fewest. In a larger heap, a page is not
  /// worth the additional moves.
  static constexpr std::size_t kSmallHeap = 256;

  struct Region {
    std::uintptr_t begin = 0;
    Bytes size;
  };
  /// How many pages the first `size` bytes of `piece` would pin.
  [[nodiscard]] std::size_t pins(const Block& piece, Bytes size) const noexcept {
    const auto [begin, end] = grid_.whole(piece);
    return grid_.pages_in({begin, std::min(end, grid_.up(piece.begin() + size.count))});
  }
  [[nodiscard]] Block* pick(const FreeBins& bins, Bytes size) const override;
  /// The page at a plan's address, or none.
  [[nodiscard]] Page& page_at(std::uintptr_t address) { return table_.at(address); }
  [[nodiscard]] std::size_t pages_under(const Block& piece) const noexcept {
    return grid_.pages_in(grid_.whole(piece));
  }
  /// Whole pages under free pieces, except those that a block in `range` touches.
  [[nodiscard]] std::size_t movable_pages(const PageSite& site, PageRange range) const;
  [[nodiscard]] Bytes releasable_of(const Block& piece) const noexcept override {
    return page() * pages_under(piece);
  }
  [[nodiscard]] Plan plan_by(SiteOrder order, Bytes size, StreamId stream, NewPages allowed,
                             PageMove& move);
  void claim_target(const PageSite& site, PageRange range, PageMove& move);
  /// Claims `count` pages, which must exist, least recently freed first.
  void claim_victims(std::size_t count, PageMove& move);
  /// Takes 1 to `most` whole pages of a cached piece; the rest stays cached.
  Block& claim_pages(Block& piece, std::size_t most);
  /// Returns the stream's own pieces with whole pages outside `kept`, ordered by point: the largest
  /// of each area, for `pages` pages.
  [[nodiscard]] std::vector<Block*> lenders_of(const Owners& owners, PageRange kept,
                                               std::size_t pages) const;
  void claim_lenders(Owners& owners, const std::vector<Block*>& lenders, std::size_t count,
                     PageMove& move);
  /// Withholds the rest of `target` from other streams until the lender's point: work on the old
  /// place may still write there.
  void keep_behind(Block& target, const Block& lender, Owners& owners);
  void claim_retired(PageMove& move);
  /// Allocates memory so that the claims, which must follow at once, and finishing cannot fail. May
  /// fail, and then changes nothing.
  void promise_for(PageMove& move, std::size_t places, std::size_t victims, std::size_t create);
  void take_any(Block& piece) noexcept;
  void place_void(Block& piece) noexcept;
  /// Places a claimed piece that was not used. Its point may have been passed meanwhile; no poll
  /// reports that again.
  void place_again(Block& piece);
  void place_stale(Block& piece) noexcept;
  void finish_retired(PageMove& move);
  void finish_lenders(PageMove& move);
  void passed_more(StreamId stream) override {
    stale_.note_passed(stream, state_of(stream).passed);
  }
  /// Returns the part from `address` on, cut off. The piece is in no list; both keep its state.
  Block& cut(Block& piece, std::uintptr_t address);
  Block* finish_target(PageMove& move);
  void give_up_target(Block& target);

  const PageGrid grid_;
  PageTable table_;  ///< the mapped pages, by address
  std::array<FreeBins, kAreas> voids_;
  std::vector<Region> regions_;
  std::vector<Page> spare_;  ///< without a live place
  StalePlaces stale_;
  std::size_t pages_ = 0;  ///< all, planned and moving ones too
};

}  // namespace weir
