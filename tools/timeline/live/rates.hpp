#pragma once

// Computes recent rates from a block's history. Pure.

#include <chrono>
#include <optional>
#include <span>

#include "tools/timeline/live/block.hpp"

namespace weir::timeline {

/// Rates over the last samples. A counter goes back when a pool, scheduler or device ends; its rate
/// then covers the time since. Empty if there are too few samples since.
struct LiveRates {
  std::optional<double> batches;  ///< settled batches per second
  std::optional<double> stalls;   ///< per second
  std::optional<double> stalled;  ///< share of the time; above 1 if several frontends wait
  std::optional<double> idle;     ///< idle share of the compute stream, since a device reports it
};

/// `samples` are oldest first. Covers at most `window` before the last.
[[nodiscard]] LiveRates rates_of(std::span<const LiveSample> samples,
                                 std::chrono::nanoseconds window = std::chrono::seconds(5));

}  // namespace weir::timeline
