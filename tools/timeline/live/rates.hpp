#pragma once

// What changed lately, from a block's history. Pure.

#include <chrono>
#include <optional>
#include <span>

#include "tools/timeline/live/block.hpp"

namespace weir::timeline {

/// Over the last samples. A counter goes back when a pool, scheduler or device ends: its rate is
/// then of the time since. Nothing where it is not known: too few samples since.
struct LiveRates {
  std::optional<double> batches;  ///< settled, a second
  std::optional<double> stalls;   ///< a second
  std::optional<double> stalled;  ///< share of the time; above 1 where several frontends wait
  std::optional<double>
      idle;  ///< share of the time; of the compute stream, since a device reports it
};

/// `samples` are oldest first. Looks back as far as `window` from the last.
[[nodiscard]] LiveRates rates_of(std::span<const LiveSample> samples,
                                 std::chrono::nanoseconds window = std::chrono::seconds(5));

}  // namespace weir::timeline
