#pragma once

// The median of what was measured several times.

#include <algorithm>
#include <vector>

namespace weir {

/// The one in the middle, or the mean of the two there; 0 of none.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace weir
