#include "tools/program/units.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
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

/// The smallest number that shows two digits.
constexpr double kLeastShown = 0.1;

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

/// Four digits before the point, and for compared sizes, which differ more, five.
constexpr double kMostShown = 9'999.5;
constexpr double kMostCompared = 99'999.5;

const Unit& unit_for(const Range& range, std::span<const Unit> units, double most_shown) {
  std::size_t at = units.size() - 1;
  while (at > 0 && range.most < 0.9995 * units[at].size) --at;
  while (at > 0 && range.least < kLeastShown * units[at].size &&
         range.most / units[at - 1].size < most_shown) {
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

/// Returns whether not even the column's largest value would show a digit in this unit, and there
/// is a smaller one.
bool is_too_small(std::span<const std::optional<double>> column, const Scale& scale) {
  constexpr double kOneDigit = 0.01;
  const double most = range_of(column).most;
  return scale.size > 1 && most > 0 && most < kOneDigit * scale.size;
}

Scale scale_with(Measure measure, std::span<const std::optional<double>> values,
                 double most_shown) {
  const std::span<const Unit> units =
      measure == Measure::kBytes ? std::span<const Unit>(kSizes) : std::span<const Unit>(kTimes);
  const Range range = range_of(values);
  const Unit& unit = unit_for(range, units, most_shown);
  const bool known = std::ranges::any_of(values, [](const auto& v) { return v.has_value(); });
  return {.unit = known ? std::string(unit.name) : std::string(),
          .size = unit.size,
          .digits = digits_for(values, range, unit.size)};
}

UnitColumn column_of(Measure measure, std::span<const std::optional<double>> values) {
  const Scale scale = scale_of(measure, values);
  UnitColumn column{.unit = scale.unit, .cells = {}};
  for (const std::optional<double>& value : values) column.cells.push_back(scale.format(value));
  return column;
}

}  // namespace

std::string Scale::format(const std::optional<double>& value) const {
  if (!value) return "-";
  const double number = *value / size;
  constexpr double kShown = 0.005;
  if (number > 0 && number < kShown) return "<0.01";
  return format_number(number, digits);
}

Scale scale_of(Measure measure, std::span<const std::optional<double>> values) {
  return scale_with(measure, values, kMostShown);
}

std::vector<Scale> scales_of(Measure measure,
                             std::span<const std::vector<std::optional<double>>> columns) {
  const bool more_digits = measure == Measure::kBytes;
  std::vector<Scale> scales(columns.size());
  std::vector<std::size_t> open(columns.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  while (!open.empty()) {
    std::vector<std::size_t> group = open;
    Scale scale;
    for (std::size_t before = 0; before != group.size();) {
      before = group.size();
      std::vector<std::optional<double>> values;
      for (const std::size_t c : group) {
        values.insert(values.end(), columns[c].begin(), columns[c].end());
      }
      scale =
          scale_with(measure, values, more_digits && group.size() > 1 ? kMostCompared : kMostShown);
      std::erase_if(group, [&](std::size_t c) { return is_too_small(columns[c], scale); });
    }
    for (const std::size_t c : group) scales[c] = scale;
    std::erase_if(open, [&](std::size_t c) { return std::ranges::count(group, c) != 0; });
  }
  return scales;
}

UnitColumn in_one_unit(std::span<const std::optional<Bytes>> sizes) {
  std::vector<std::optional<double>> values;
  for (const std::optional<Bytes>& size : sizes) {
    values.push_back(size ? std::optional(static_cast<double>(size->count)) : std::nullopt);
  }
  return column_of(Measure::kBytes, values);
}

UnitColumn times_in_one_unit(std::span<const std::optional<double>> nanoseconds) {
  return column_of(Measure::kNanoseconds, nanoseconds);
}

}  // namespace weir
