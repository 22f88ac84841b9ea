#pragma once

// Draws memory over time as SVG.

#include <string>
#include <vector>

#include "bench/simulate/comparison.hpp"

namespace weir::simulate {

/// Returns an SVG with a line for each outcome, which need series and the same workload and budget.
[[nodiscard]] std::string picture_svg(const std::vector<Outcome>& outcomes);

}  // namespace weir::simulate
