#pragma once

// The blocks of `paged`: the pieces of heap_index.hpp in reserved addresses, with pages behind
// those where something lives or lived. Between them lie voids: whole pages' worth of addresses
// with nothing behind them. A request that no piece with pages holds is placed where it needs the
// fewest new pages, next to what is mapped there, and takes them from under pieces that are free
// (least recently freed first) and only then from the source. So memory is never stranded in holes,
// but for what is less than a page at either end of each.
//
// A page moves only when the device is known to have passed every free on it: it is taken from the
// common pieces alone.

#include <span>
#include <vector>

#include "allocator/heap_index.hpp"
#include "allocator/page_source.hpp"

namespace weir {

/// Pages on their way. Planned under the pool's lock, carried out without it, finished under it.
struct PageMove {
  std::vector<Block*> victims;  ///< pieces whose pages are to be unmapped
  std::vector<Mapping> unmap;   ///< those pages, piece by piece
  std::vector<Page> pages;      ///< to be had: spare ones; then, as carried out, unmapped and new
  std::size_t create = 0;       ///< how many new ones are needed beside those

  Block* target = nullptr;    ///< where the block will be; null where pages are only given back
  std::uintptr_t at = 0;      ///< the block's address, within target
  Bytes size;                 ///< the block's
  std::vector<void*> places;  ///< where pages are to be mapped, ascending

  std::size_t promised = 0;        ///< blocks that finishing may need
  std::size_t promised_pages = 0;  ///< room for so many more pages

  // As carried out:
  std::size_t unmapped = 0;  ///< of `unmap`, from the front
  std::size_t created = 0;
  std::size_t destroyed = 0;  ///< of those that were unmapped or spare
  std::size_t mapped = 0;     ///< of `places`, from the front, with the first of `pages`
};

class PagedIndex final : public HeapIndex {
 public:
  explicit PagedIndex(Bytes page) : page_(page) {}

  enum class Plan {
    kMade,
    kNoPages,      ///< more are needed than can be moved and, besides, be had
    kNoAddresses,  ///< no run of free addresses is long enough
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
  [[nodiscard]] Bytes page() const noexcept { return page_; }
  /// Every page that is mapped, and every spare one and region, for the last time.
  void for_each_mapping(const std::function<void(Mapping)>& visit) const;
  void for_each_region(const std::function<void(Segment)>& visit) const;
  [[nodiscard]] const std::vector<Page>& spare() const noexcept { return spare_; }

  // Growth is by pages: there is no segment to add or to give back.
  [[nodiscard]] Bytes segment_size(Bytes size, Bytes /*room*/) const override { return size; }
  [[nodiscard]] Block& add(Segment segment, Bytes size) override;
  [[nodiscard]] Bytes releasable() const override;
  Bytes take_releasable(Bytes /*need*/, std::vector<Segment>& /*taken*/) override { return {}; }
  /// A block is a part of a region, always.
  [[nodiscard]] bool remove_allocated(Block& /*block*/) override { return false; }
  void for_each_segment(const std::function<void(Segment)>& /*visit*/) const override {}

 private:
  struct Region {
    std::uintptr_t begin = 0;
    Bytes size;
    std::vector<Page> pages;  ///< by place; none where nothing is mapped
  };
  /// A run of free pieces and voids, and where in it a block would go.
  struct Site {
    Block* first = nullptr;
    std::uintptr_t at = 0;
    std::size_t new_pages = 0;
    std::uint64_t run = 0;  ///< bytes of it
  };
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };

  [[nodiscard]] std::uintptr_t page_down(std::uintptr_t address) const {
    return address & ~(std::uintptr_t{page_.count} - 1);
  }
  [[nodiscard]] std::uintptr_t page_up(std::uintptr_t address) const {
    return page_down(address + page_.count - 1);
  }
  [[nodiscard]] std::size_t pages_in(Range range) const {
    return range.end > range.begin ? (range.end - range.begin) / page_.count : 0;
  }
  /// The whole pages of a piece.
  [[nodiscard]] Range whole_pages(const Block& piece) const {
    return {page_up(piece.begin()), page_down(piece.end())};
  }
  [[nodiscard]] Page& page_at(std::uintptr_t address);
  [[nodiscard]] bool usable(const Block* piece, const Owner* own) const;

  [[nodiscard]] Site find_site(Bytes size, const Owner* own, Area area) const;
  void look_at_run(Block& first, Bytes size, const Owner* own, Site& best) const;
  [[nodiscard]] std::size_t new_pages_at(const Block& first, std::uintptr_t at, Bytes size) const;
  /// Whole pages under free pieces outside of `kept`, least recently freed pieces first.
  std::size_t find_victims(Range kept, std::vector<Block*>& pieces) const;
  void claim_target(const Site& site, Range range, PageMove& move);
  void claim_victims(const std::vector<Block*>& pieces, std::size_t count, PageMove& move);

  /// Makes sure that neither the claims, which follow at once, nor finishing can fail; may fail
  /// itself, and has changed nothing then.
  void promise_for(PageMove& move, std::size_t places, std::size_t victims, std::size_t create);
  void take_any(Block& piece) noexcept;
  void place_void(Block& piece) noexcept;
  /// The piece from `address` on, cut off the one that it is in, which is in no list and keeps its
  /// state.
  Block& cut(Block& piece, std::uintptr_t address);
  Block* finish_target(PageMove& move);
  void give_up_target(Block& target);

  const Bytes page_;
  std::array<FreeBins, kAreas> voids_;
  std::vector<Region> regions_;
  std::vector<Page> spare_;  ///< mapped nowhere
  std::size_t pages_ = 0;    ///< all that there are or may be soon, on their way as well
};

}  // namespace weir
