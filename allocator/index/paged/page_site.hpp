#pragma once

// Places a block of `paged` that no piece with pages holds, where it needs the fewest new pages or
// pins the fewest. A pure function.

#include <cstddef>
#include <cstdint>

#include "allocator/base/bytes.hpp"
#include "allocator/index/block.hpp"
#include "allocator/index/free_bins.hpp"
#include "allocator/index/free_owner.hpp"

namespace weir {

/// Address ranges in pages.
struct PageRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// A page size, a power of two.
class PageGrid {
 public:
  explicit constexpr PageGrid(Bytes page) noexcept : page_(page) {}

  [[nodiscard]] constexpr Bytes page() const noexcept { return page_; }
  [[nodiscard]] constexpr std::uintptr_t down(std::uintptr_t address) const noexcept {
    return address & ~(std::uintptr_t{page_.count} - 1);
  }
  [[nodiscard]] constexpr std::uintptr_t up(std::uintptr_t address) const noexcept {
    return down(address + page_.count - 1);
  }
  /// The range must be page-aligned.
  [[nodiscard]] constexpr std::size_t pages_in(PageRange range) const noexcept {
    return range.end > range.begin ? (range.end - range.begin) / page_.count : 0;
  }
  /// The pages wholly in a piece.
  [[nodiscard]] PageRange whole(const Block& piece) const noexcept {
    return {up(piece.begin()), down(piece.end())};
  }
  /// How many of those a block in `kept` does not touch.
  [[nodiscard]] std::size_t pages_outside(const Block& piece, PageRange kept) const noexcept {
    const auto [begin, end] = whole(piece);
    const std::uintptr_t before = down(kept.begin);
    const std::uintptr_t behind = up(kept.end);
    return pages_in({begin, end < before ? end : before}) +
           pages_in({begin > behind ? begin : behind, end});
  }

 private:
  Bytes page_;
};

enum class SiteOrder : std::uint8_t {
  kFewestNew,     ///< new pages, so moves
  kFewestPinned,  ///< pages, new or free, without a live block
};

/// A place for a block in a run of free pieces and voids.
struct PageSite {
  Block* first = nullptr;  ///< of the run; null if there is no place
  std::uintptr_t at = 0;
  std::size_t new_pages = 0;
  std::size_t pinned_pages = 0;  ///< without a live block so far
  std::uint64_t run = 0;         ///< its bytes
  std::size_t looked_at = 0;     ///< blocks, by the search
};

/// The owners of pieces that the block may include.
struct SiteOwners {
  const FreeOwner* own = nullptr;  ///< the stream's; null if it has none
  const FreeOwner* common = nullptr;
};

/// About how many blocks a search looks at, around the largest voids first. No trace of
/// bench/traces needs more.
inline constexpr std::size_t kSiteSteps = 2048;

/// How many more if those give no place. A missed run then costs addresses, not memory.
inline constexpr std::size_t kLastSiteSteps = std::size_t{1} << 16U;

/// Returns the best place by `order` for a block of `size` in the runs around `voids`; among
/// equals, the one in the shortest run. If the search finds none, takes the first run that is long
/// enough, since the pool would reserve addresses next.
[[nodiscard]] PageSite find_page_site(const FreeBins& voids, Bytes size, PageGrid grid,
                                      SiteOwners owners, SiteOrder order);

}  // namespace weir
