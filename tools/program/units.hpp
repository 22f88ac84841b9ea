#pragma once

// Columns of sizes and times in one unit, so that a reader compares digits and not units. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir {

/// A column of numbers that all have one unit.
struct UnitColumn {
  std::string unit;                ///< `MiB`, `us`: for the heading; empty if no value is known
  std::vector<std::string> cells;  ///< the numbers; `-` for a value that is not known
};

/// Writes sizes in one unit: the largest one in which the largest value is at least 1 and the
/// smallest one above zero still shows two digits, unless the largest then had more than four. All
/// have the same number of digits after the point: none if all are whole or at least 100. A value
/// that would round to zero is written as `<0.01`.
[[nodiscard]] UnitColumn in_one_unit(std::span<const std::optional<Bytes>> sizes);

/// Writes times, in nanoseconds, in ns, us, ms or s by the same rule.
[[nodiscard]] UnitColumn times_in_one_unit(std::span<const std::optional<double>> nanoseconds);

}  // namespace weir
