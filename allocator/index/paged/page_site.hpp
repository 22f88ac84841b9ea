#pragma once

// Where `paged` puts a block that no piece with pages holds: the place that needs the fewest new
// pages, or the fewest on which nothing lives yet. A pure function of the pieces.

#include <cstddef>
#include <cstdint>

#include "allocator/index/free_bins.hpp"
#include "allocator/index/free_owner.hpp"
#include "allocator/index/paged/page_range.hpp"

namespace weir {

/// What the best place is.
enum class SiteOrder : std::uint8_t {
  kFewestNew,     ///< fewest new pages: the fewest moves
  kFewestPinned,  ///< fewest pages, new or free, on which nothing lives yet
};

/// A run of free pieces and voids, and where in it a block would go.
struct PageSite {
  Block* first = nullptr;  ///< of the run; null where there is no place
  std::uintptr_t at = 0;
  std::size_t new_pages = 0;
  std::size_t pinned_pages = 0;  ///< on which nothing lives without the block
  std::uint64_t run = 0;         ///< bytes of it
  std::size_t looked_at = 0;     ///< how many blocks were, to find it
};

/// Whose pieces the block may take in.
struct SiteOwners {
  const FreeOwner* own = nullptr;  ///< of the stream; null if it has none
  const FreeOwner* common = nullptr;
};

/// A search looks at about so many blocks, at those around the largest voids first. On the traces
/// of bench/traces it never needs more.
inline constexpr std::size_t kSiteSteps = 2048;

/// Where those give no place it looks at so many more: a run that it then still has not found costs
/// addresses that it could have done without, and no memory.
inline constexpr std::size_t kLastSiteSteps = std::size_t{1} << 16U;

/// The place for a block of `size` in the runs around `voids`: of the best ones by `order` the one
/// in the shortest run. Where none of the blocks that it looks at gives a place, it takes the first
/// run that is long enough, since the pool would reserve addresses next.
[[nodiscard]] PageSite find_page_site(const FreeBins& voids, Bytes size, PageGrid grid,
                                      SiteOwners owners, SiteOrder order);

}  // namespace weir
