#pragma once

// Numbers of sizes and times in one unit, so that a reader compares digits and not units. Pure.

#include <cstdint>
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

/// The unit of some numbers, and how many digits they have after the point.
struct Scale {
  std::string unit;  ///< `MiB`, `us`; empty if no value is known
  double size = 1;   ///< of the unit, in bytes or nanoseconds
  int digits = 0;    ///< after the point

  /// Returns the number without its unit: `-` for a value that is not known, `<0.01` for one that
  /// would round to zero.
  [[nodiscard]] std::string format(const std::optional<double>& value) const;
};

/// What numbers count.
enum class Measure : std::uint8_t {
  kBytes,
  kNanoseconds,
};

/// Returns the largest unit in which the largest value is at least 1 and the smallest one above
/// zero still shows two digits, unless the largest then had more than four. All values get the same
/// number of digits after the point: none if all are whole or at least 100.
[[nodiscard]] Scale scale_of(Measure measure, std::span<const std::optional<double>> values);

/// Returns the scales of columns that a reader compares: the same one for all. The largest size may
/// have five digits then. Columns that would show no digit in that unit get another one together.
[[nodiscard]] std::vector<Scale> scales_of(
    Measure measure, std::span<const std::vector<std::optional<double>>> columns);

/// Writes sizes in one unit, as scale_of chooses it.
[[nodiscard]] UnitColumn in_one_unit(std::span<const std::optional<Bytes>> sizes);

/// Writes times, in nanoseconds, in ns, us, ms or s by the same rule.
[[nodiscard]] UnitColumn times_in_one_unit(std::span<const std::optional<double>> nanoseconds);

}  // namespace weir
