#pragma once

// Memory that is reserved but unused.

#include <cstdint>
#include <vector>

#include "tools/timeline/analysis/counters.hpp"

namespace weir::timeline {

struct Fragmentation {
  double at_peak = 0;             ///< 1 − peak allocated / peak reserved
  double held_at_peak = 0;        ///< 1 − peak allocated and awaiting / peak reserved
  double mean = 0;                ///< 1 − allocated / reserved, over time
  double waste = 0;               ///< 1 − requested / allocated, over time: lost to rounding
  std::uint64_t most_unused = 0;  ///< peak of reserved − allocated bytes
  std::vector<Point> unused{};    ///< reserved − allocated, bytes
  std::vector<Point> rounding{};  ///< allocated − requested, bytes
  std::vector<Point> permille{};  ///< 1000 × (1 − allocated / reserved)
};
/// Computes the figures, with series reduced to `columns` columns of `span`.
[[nodiscard]] Fragmentation fragmentation(const Index& index, const PoolInfo& pool, Span span,
                                          std::uint32_t columns);

}  // namespace weir::timeline
