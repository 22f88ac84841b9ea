#pragma once

// A picture of memory over time: a band for each pool, and for one of them what lay where.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/measure/measure.hpp"
#include "tools/replay/measure/timeline.hpp"
#include "tools/replay/show/address_map.hpp"
#include "tools/replay/subject/pool_subject.hpp"

namespace weir::replay {

/// One pool's band.
struct Band {
  std::string name;
  Timeline timeline;
  Figures figures;
};

struct Picture {
  std::string title;
  std::string subtitle;
  std::vector<Band> bands;
  std::string mapped;             ///< the pool that `map` is of
  std::optional<AddressMap> map;  ///< where it can be told
};

/// How many columns a timeline may have to be drawn.
inline constexpr std::size_t kMostColumns = 420;

/// Replays `trace` for a band; also for the map, where `candidate` makes a PoolSubject and `map` is
/// given.
[[nodiscard]] Band record_band(const Trace& trace, const Candidate& candidate, Bytes capacity,
                               AddressMap* map = nullptr);

/// Up to where the bytes of all bands are drawn: what the pools reserve at most, but for those that
/// reserve many times what any of them hands out, which are cut off there.
[[nodiscard]] Bytes scale_of(std::span<const Band> bands);

/// As SVG, whatever the trace is less than half a megabyte of it, with up to ten bands.
[[nodiscard]] std::string draw(const Picture& picture);

}  // namespace weir::replay
