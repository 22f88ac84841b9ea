#pragma once

// Axes: the unit and the steps that suit a largest value.

#include <string>

namespace weir::picture {

/// The unit of an axis's labels, its end, and the step between two labels, both in that unit.
struct Axis {
  double unit = 1;
  std::string name;
  double most = 1;
  double step = 1;

  /// Formats a value as its labels are.
  [[nodiscard]] std::string label(double value_in_unit) const;
};

/// Returns 1, 2 or 5 times a power of ten, so that about `parts` steps make `whole`, which is
/// positive.
[[nodiscard]] double decimal_step(double whole, double parts);

/// Up to `most` nanoseconds, with about `count` labels.
[[nodiscard]] Axis duration_axis(double most, int count);
/// Up to `most` bytes, with about `count` labels.
[[nodiscard]] Axis bytes_axis(double most, int count);

}  // namespace weir::picture
