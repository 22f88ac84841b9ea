#pragma once

// Which pool and which settings to use for what was replayed. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/measure/measure.hpp"

namespace weir::replay {

/// What is known of one candidate from all traces together.
struct Score {
  std::size_t candidate = 0;  ///< its index
  double reserved = 0;        ///< peak reserved over peak requested, of the trace where it is most
  double driver_calls = 0;    ///< of all traces, for each operation
  double ns_per_operation = 0;  ///< of all traces; what the pool takes itself
  bool by_default = false;      ///< its pool as it is where nothing but the pool is set

  /// With what its driver calls take.
  [[nodiscard]] double total_ns() const noexcept;
};

/// What one driver call is taken to cost: a cudaMalloc and its cudaFree take some tens of
/// microseconds, and so does mapping a page and unmapping it (docs/replay.md).
inline constexpr double kDriverCallNs = 20'000;
/// Those that reserve by no more than this share more are as good.
inline constexpr double kSameNeed = 0.03;
inline constexpr double kAnyNeed = 1e18;
/// Two timings of one replay may differ by this share, so no choice is made of less. What driver
/// calls cost is counted and has no noise.
inline constexpr double kNoise = 0.25;

struct Recommendation {
  Score best;
  std::vector<Score> equal;     ///< that are as good, in their order
  std::optional<Score> second;  ///< of those that are not
};

/// The score of each candidate that completed every trace. `by_default` says of each candidate
/// whether its settings are its pool's default.
[[nodiscard]] std::vector<Score> scores_of(std::span<const TraceResults> results,
                                           const std::vector<bool>& by_default);

/// Of those that reserve the least memory, give or take `same_need`, the one that takes the least
/// time; then the same among the others. Of those whose times are equal, give or take kNoise, the
/// first whose settings are the default, or else the first. Nothing where there is no score. Where
/// the device's memory is given, all that complete in it are as good: kAnyNeed.
[[nodiscard]] std::optional<Recommendation> recommend(std::span<const Score> scores,
                                                      double same_need = kSameNeed);

}  // namespace weir::replay
