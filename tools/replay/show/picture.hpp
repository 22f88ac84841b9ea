#pragma once

// Draws memory over time: a band for each pool, and an address map of one pool.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/measure/measure.hpp"
#include "tools/replay/show/address_map.hpp"
#include "tools/replay/show/plot.hpp"
#include "tools/replay/subject/pool_subject.hpp"

namespace weir::replay {

/// One pool's band.
struct Band {
  std::string name;
  LevelColumns levels;
  Figures figures;
};

struct Picture {
  std::string title;
  std::string subtitle;
  std::vector<Band> bands;
  std::string mapped;             ///< the pool shown in `map`
  std::optional<AddressMap> map;  ///< if available
};

/// The most columns that a band may have.
inline constexpr std::size_t kMostColumns = 420;

/// Replays `trace` for a band. Also records the map if `map` is set and `candidate` makes a
/// PoolSubject.
[[nodiscard]] Band record_band(const Trace& trace, const Candidate& candidate, Bytes capacity,
                               AddressMap* map = nullptr);

/// Returns the upper end of the bands' scale: the most that the pools reserve. Pools that reserve
/// many times what any pool allocates do not count and are clipped.
[[nodiscard]] Bytes scale_of(std::span<const Band> bands);

/// Draws the picture as SVG. It stays below half a megabyte for any trace with up to ten bands.
[[nodiscard]] std::string draw(const Picture& picture);

}  // namespace weir::replay
