#pragma once

// Draws a run over time as SVG.

#include <string>
#include <vector>

#include "bench/simulate/comparison.hpp"

namespace weir::simulate {

/// Returns the memory, with a line for each outcome, of which there must be one. They need series,
/// and the same workload and budget.
[[nodiscard]] std::string picture_svg(const std::vector<Outcome>& outcomes);

/// Returns the run-ahead target, as the sum of its parts, and the memory below it. The
/// outcome needs a series.
[[nodiscard]] std::string target_picture_svg(const Outcome& outcome);

}  // namespace weir::simulate
