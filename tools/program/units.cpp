#include "tools/program/units.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "tools/program/numbers.hpp"

namespace weir {
namespace {

struct Unit {
  std::string_view name;
  double size;
};
constexpr std::array<Unit, 5> kSizes{
    {{"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}}};
constexpr std::array<Unit, 4> kTimes{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

/// The smallest value above zero and the largest; both zero if there is none.
struct Range {
  double least = 0;
  double most = 0;
};

Range range_of(std::span<const std::optional<double>> values) {
  Range range;
  for (const std::optional<double>& value : values) {
    if (!value || !(*value > 0)) continue;
    range.most = std::max(range.most, *value);
    range.least = range.least > 0 ? std::min(range.least, *value) : *value;
  }
  return range;
}

const Unit& unit_for(const Range& range, std::span<const Unit> units) {
  constexpr double kLeastShown = 0.1;     // two digits after the point
  constexpr double kMostShown = 9'999.5;  // four digits before it
  std::size_t at = units.size() - 1;
  while (at > 0 && range.most < 0.9995 * units[at].size) --at;
  while (at > 0 && range.least < kLeastShown * units[at].size &&
         range.most / units[at - 1].size < kMostShown) {
    --at;
  }
  return units[at];
}

int digits_for(std::span<const std::optional<double>> values, const Range& range, double unit) {
  const bool whole = std::ranges::all_of(values, [unit](const std::optional<double>& value) {
    return !value || std::fmod(*value, unit) == 0;
  });
  const double least = range.least / unit;
  if (whole || least >= 99.95) return 0;
  return least >= 9.995 ? 1 : 2;
}

std::string cell(const std::optional<double>& value, double unit, int digits) {
  if (!value) return "-";
  const double number = *value / unit;
  constexpr double kShown = 0.005;
  if (number > 0 && number < kShown) return "<0.01";
  return format_number(number, digits);
}

UnitColumn column(std::span<const std::optional<double>> values, std::span<const Unit> units) {
  const Range range = range_of(values);
  const Unit& unit = unit_for(range, units);
  const int digits = digits_for(values, range, unit.size);
  const bool known = std::ranges::any_of(values, [](const auto& v) { return v.has_value(); });
  UnitColumn column{.unit = known ? std::string(unit.name) : std::string(), .cells = {}};
  for (const std::optional<double>& value : values) {
    column.cells.push_back(cell(value, unit.size, digits));
  }
  return column;
}

}  // namespace

UnitColumn in_one_unit(std::span<const std::optional<Bytes>> sizes) {
  std::vector<std::optional<double>> values;
  for (const std::optional<Bytes>& size : sizes) {
    values.push_back(size ? std::optional(static_cast<double>(size->count)) : std::nullopt);
  }
  return column(values, kSizes);
}

UnitColumn times_in_one_unit(std::span<const std::optional<double>> nanoseconds) {
  return column(nanoseconds, kTimes);
}

}  // namespace weir
