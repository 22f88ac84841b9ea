#pragma once

// Which pool and which settings to use for what was replayed. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/measure.hpp"

namespace weir::replay {

/// What is known of one candidate from all traces together.
struct Score {
  std::size_t candidate = 0;  ///< its index
  double reserved = 0;        ///< peak reserved over peak requested, of the trace where it is most
  double driver_calls = 0;    ///< of all traces, for each operation
  double ns_per_operation = 0;  ///< of all traces; what the pool takes itself

  /// With what its driver calls take.
  [[nodiscard]] double total_ns() const noexcept;
};

/// What one driver call is taken to cost: a cudaMalloc and its cudaFree take some tens of
/// microseconds, and so does mapping a page and unmapping it (docs/replay.md).
inline constexpr double kDriverCallNs = 20'000;
/// Those that reserve by no more than this share more are as good.
inline constexpr double kSameNeed = 0.03;
inline constexpr double kAnyNeed = 1e18;

struct Recommendation {
  Score best;
  std::optional<Score> second;
};

/// The score of each candidate that completed every trace.
[[nodiscard]] std::vector<Score> scores_of(std::span<const TraceResults> results);

/// Of those that reserve the least memory, give or take `same_need`, the one that takes the least
/// time; then the same among the others. At equal time, the first. Nothing where there is no score.
/// Where the device's memory is given, all that complete in it are as good: kAnyNeed.
[[nodiscard]] std::optional<Recommendation> recommend(std::span<const Score> scores,
                                                      double same_need = kSameNeed);

}  // namespace weir::replay
