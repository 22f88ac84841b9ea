#pragma once

// The median of repeated measurements.

#include <algorithm>
#include <vector>

namespace weir {

/// Returns the middle value, or the mean of the two middle ones; 0 for no values.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace weir
