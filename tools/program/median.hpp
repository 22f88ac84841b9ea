#pragma once

// Quantiles of repeated measurements.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace weir {

/// Returns the value below which `share` (0 to 1) of the values lie, interpolated between the two
/// nearest ones; 0 for no values.
[[nodiscard]] inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double place = static_cast<double>(values.size() - 1) * share;
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

/// Returns the middle value, or the mean of the two middle ones; 0 for no values.
[[nodiscard]] inline double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

}  // namespace weir
