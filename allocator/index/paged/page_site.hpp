#pragma once

// Places a block of `paged` that no piece with pages holds, where it needs the fewest new pages or
// pins the fewest. A pure function.

#include <cstddef>
#include <cstdint>

#include "allocator/index/free_bins.hpp"
#include "allocator/index/free_owner.hpp"
#include "allocator/index/paged/page_range.hpp"

namespace weir {

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
