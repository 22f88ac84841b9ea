#include "allocator/index/paged/page_site.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace weir {
namespace {

/// Blocks to look at on either side of a run's largest void.
constexpr std::size_t kReach = 16;

class SiteSearch {
 public:
  SiteSearch(Bytes size, PageGrid grid, SiteOwners owners, SiteOrder order)
      : size_(size), grid_(grid), owners_(owners), order_(order) {}

  /// Looks at the run around a void. False: the search is over.
  bool look_around(Block& piece) {
    if (looked_at_ >= kSiteSteps) return false;
    ++looked_at_;
    Block* first = &piece;
    for (std::size_t i = 0; i < kReach && usable(first->neighbours.previous); ++i) {
      first = first->neighbours.previous;
      if (comes_before(*first, piece)) return true;
    }
    const Block* last = &piece;
    for (std::size_t i = 0; i < kReach && usable(last->neighbours.next); ++i) {
      last = last->neighbours.next;
      if (comes_before(*last, piece)) return true;
    }
    look_at({first->begin(), last->end()}, *first);
    return true;
  }
  /// If `piece` is the first void of a long enough run, of any number of blocks, takes the run's
  /// beginning. False: the search is over, with a place or without.
  bool take_any_around(Block& piece) {
    Block* first = &piece;
    while (usable(first->neighbours.previous)) {
      if (!look_once_more()) return false;
      first = first->neighbours.previous;
      if (first->state == BlockState::kVoid) return true;
    }
    const Block* last = &piece;
    while (last->end() - first->begin() < size_.count && usable(last->neighbours.next)) {
      if (!look_once_more()) return false;
      last = last->neighbours.next;
    }
    const std::uint64_t length = last->end() - first->begin();
    if (length < size_.count) return look_once_more();
    consider(*first, {first->begin(), first->begin() + size_.count}, *first, length);
    return false;
  }
  /// Counts a block. False: the search is over.
  [[nodiscard]] bool look_once_more() noexcept {
    return ++looked_at_ < kSiteSteps + kLastSiteSteps;
  }
  [[nodiscard]] PageSite best() const noexcept {
    PageSite best = best_;
    best.looked_at = looked_at_;
    return best;
  }

 private:
  /// A run's largest void stands for all.
  static bool comes_before(const Block& piece, const Block& than) noexcept {
    if (piece.state != BlockState::kVoid) return false;
    return std::pair(than.size, piece.begin()) < std::pair(piece.size, than.begin());
  }
  [[nodiscard]] bool usable(const Block* piece) const noexcept {
    if (piece == nullptr) return false;
    if (piece->state == BlockState::kVoid) return true;
    return piece->state == BlockState::kCached &&
           (piece->owner == owners_.own || piece->owner == owners_.common);
  }

  void look_at(PageRange run, Block& first) {
    const std::uint64_t length = run.end - run.begin;
    if (length < size_.count) return;
    // A block that begins or ends with mapped pages needs the fewest new.
    for (const Block* b = &first; b != nullptr && b->begin() < run.end; b = b->neighbours.next) {
      if (b->begin() + size_.count <= run.end) {
        consider(first, {b->begin(), b->begin() + size_.count}, *b, length);
      }
      if (b->end() >= run.begin + size_.count) {
        consider(first, {b->end() - size_.count, b->end()}, *b, length);
      }
    }
  }

  /// `place` begins or ends with the block `within`.
  void consider(Block& first, PageRange place, const Block& within, std::uint64_t length) {
    const PageRange touched{grid_.down(place.begin), grid_.up(place.end)};
    const PageSite site{
        .first = &first,
        .at = place.begin,
        .new_pages = new_pages(place, within),
        .pinned_pages = grid_.pages_in({std::max(touched.begin, grid_.up(first.begin())),
                                        std::min(touched.end, grid_.down(first.begin() + length))}),
        .run = length};
    if (best_.first == nullptr || key(site) < key(best_)) best_ = site;
  }

  [[nodiscard]] std::tuple<std::size_t, std::uint64_t, std::uintptr_t> key(
      const PageSite& site) const noexcept {
    const bool fewest_new = order_ == SiteOrder::kFewestNew;
    return {fewest_new ? site.new_pages : site.pinned_pages, site.run, site.at};
  }

  [[nodiscard]] std::size_t new_pages(PageRange place, const Block& within) {
    const PageRange mapped{grid_.down(place.begin), grid_.up(place.end)};
    const Block* b = &within;
    while (b->begin() > place.begin) b = b->neighbours.previous;
    std::size_t pages = 0;
    for (; b != nullptr && b->begin() < place.end; b = b->neighbours.next) {
      ++looked_at_;
      if (b->state != BlockState::kVoid) continue;
      pages += grid_.pages_in({std::max(mapped.begin, b->begin()), std::min(mapped.end, b->end())});
    }
    return pages;
  }

  const Bytes size_;
  const PageGrid grid_;
  const SiteOwners owners_;
  const SiteOrder order_;
  std::size_t looked_at_ = 0;  ///< blocks; candidate places count theirs again
  PageSite best_;
};

}  // namespace

PageSite find_page_site(const FreeBins& voids, Bytes size, PageGrid grid, SiteOwners owners,
                        SiteOrder order) {
  SiteSearch search(size, grid, owners, order);
  voids.for_each_largest([&](Block& piece) { return search.look_around(piece); });
  if (search.best().first == nullptr) {
    voids.for_each_largest([&](Block& piece) { return search.take_any_around(piece); });
  }
  return search.best();
}

}  // namespace weir
