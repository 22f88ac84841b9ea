#include "tools/program/picture/axis.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "tools/program/numbers.hpp"

namespace weir::picture {
namespace {

Axis axis_of(double most, int count, std::initializer_list<std::pair<double, const char*>> units) {
  Axis axis;
  for (const auto& [unit, name] : units) {
    axis.unit = unit;
    axis.name = name;
    if (most >= unit) break;
  }
  axis.most = std::max(most / axis.unit, 1e-9);
  axis.step = decimal_step(axis.most, count);
  return axis;
}

}  // namespace

std::string Axis::label(double value_in_unit) const {
  return format_number(value_in_unit, step < 1 ? 1 : 0);
}

double decimal_step(double whole, double parts) {
  const double least = whole / parts;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor >= least) return power * factor;
  }
  return power * 10;
}

Axis duration_axis(double most, int count) {
  return axis_of(most, count, {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}});
}

Axis bytes_axis(double most, int count) {
  return axis_of(most, count, {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}});
}

}  // namespace weir::picture
