#pragma once

// Recommends a pool and its settings from replay results. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/measure/measure.hpp"

namespace weir::replay {

/// The results of one candidate over all traces.
struct Score {
  std::size_t candidate = 0;    ///< its index
  double reserved = 0;          ///< the highest peak reserved over peak requested of any trace
  double driver_calls = 0;      ///< per operation, over all traces
  double ns_per_operation = 0;  ///< over all traces; the pool's own time
  bool by_default = false;      ///< its settings are its pool's defaults

  /// Includes the assumed time of its driver calls.
  [[nodiscard]] double total_ns() const noexcept;
};

/// The assumed cost of a driver call: a cudaMalloc and its cudaFree take some tens of microseconds,
/// and so does mapping and unmapping a page (docs/replay.md).
inline constexpr double kDriverCallNs = 20'000;
/// Candidates that reserve up to this share more count as equal.
inline constexpr double kSameNeed = 0.03;
inline constexpr double kAnyNeed = 1e18;
/// Two timings of one replay may differ by this share, so a smaller difference decides nothing. The
/// cost of driver calls is counted, not timed, and has no noise.
inline constexpr double kNoise = 0.25;

struct Recommendation {
  Score best;
  std::vector<Score> equal;     ///< equally good, in their order
  std::optional<Score> second;  ///< the best of the others
};

/// Returns the score of each candidate that completed every trace. `by_default[i]` says whether
/// candidate i has its pool's default settings.
[[nodiscard]] std::vector<Score> scores_of(std::span<const TraceResults> results,
                                           const std::vector<bool>& by_default);

/// Returns the fastest of the candidates that reserve the least memory within `same_need`, and the
/// same among the rest. Prefers default settings among those whose times are equal within kNoise,
/// then the first. Returns nothing without scores. If the device's memory is given, every candidate
/// that completes in it counts as equal: kAnyNeed.
[[nodiscard]] std::optional<Recommendation> recommend(std::span<const Score> scores,
                                                      double same_need = kSameNeed);

}  // namespace weir::replay
