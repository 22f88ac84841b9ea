#include "tools/program/picture/plot.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
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

namespace {

constexpr std::string_view kMiddle = R"(text-anchor="middle")";
constexpr std::string_view kEnd = R"(text-anchor="end")";
constexpr std::string_view kAxis = R"(stroke="#999")";
constexpr std::string_view kGrid = R"(stroke="#e6e6e6")";

std::string corner(std::size_t column, double y) {
  return std::to_string(static_cast<std::size_t>(kPlotLeft) + column) + "," + Svg::number(y) + " ";
}

}  // namespace

Svg titled(int height, std::string_view title) {
  Svg svg(kWidth, height, title, 13);
  svg.text({kPlotLeft, 26}, title, R"(font-size="16" font-weight="600")");
  return svg;
}

Place key_place(std::size_t number, double top) {
  const std::size_t row = number / 2;
  const std::size_t column = number % 2;
  return {kPlotLeft + static_cast<double>(column) * kPlotWidth / 2,
          top + static_cast<double>(row) * kKeyHeight};
}

void draw_key(Svg& svg, Place at, std::string_view colour, std::string_view words) {
  svg.line({at.x, at.y - 4}, {at.x + 22, at.y - 4},
           R"(stroke-width="4" stroke=")" + std::string(colour) + "\"");
  svg.text({at.x + 30, at.y}, words);
}

Plot::Plot(Svg& svg, int top, int height, Axis x, Axis y)
    : svg_(svg), top_(top), height_(height), x_(std::move(x)), y_(std::move(y)) {}

double Plot::x(double time) const { return kPlotLeft + time / x_.unit / x_.most * kPlotWidth; }

double Plot::y(double value) const { return top_ + height_ - value / y_.unit / y_.most * height_; }

void Plot::axes(std::string_view title, bool time) {
  const double bottom = top_ + height_;
  for (int i = 0; i * x_.step <= x_.most * 1.0001; ++i) {
    const double at = x(i * x_.step * x_.unit);
    svg_.line({at, bottom}, {at, bottom + 5}, kAxis);
    if (time) svg_.text({at, bottom + 20}, x_.label(i * x_.step), kMiddle);
  }
  for (int i = 0; i * y_.step <= y_.most * 1.0001; ++i) {
    const double at = y(i * y_.step * y_.unit);
    svg_.line({kPlotLeft, at}, {kPlotLeft + kPlotWidth, at}, i == 0 ? kAxis : kGrid);
    svg_.text({kPlotLeft - 8, at + 4}, y_.label(i * y_.step), kEnd);
  }
  if (time) {
    svg_.text({kPlotLeft + kPlotWidth / 2.0, bottom + 40}, "time (" + x_.name + ")", kMiddle);
  }
  svg_.text_upwards({22, top_ + height_ / 2.0}, std::string(title) + " (" + y_.name + ")");
}

Plot::Columns Plot::columns(std::span<const Point> points) const {
  Columns all;
  if (points.empty()) return all;
  const double end = x(points.back().time);
  double last = 0;
  std::size_t next = 0;
  for (int column = kPlotLeft; column < end + 0.5; ++column) {
    double most = next < points.size() && x(points[next].time) <= column ? 0 : last;
    while (next < points.size() && x(points[next].time) <= column) {
      last = points[next++].value;
      most = std::max(most, last);
    }
    all.push_back(most);
  }
  return all;
}

std::string Plot::corners(const Columns& values) const {
  std::string all;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool within = i > 0 && i + 1 < values.size();
    if (within && values[i] == values[i - 1] && values[i] == values[i + 1]) continue;
    all += corner(i, y(values[i]));
  }
  return all;
}

void Plot::line(const Columns& values, std::string_view colour) {
  if (values.empty()) return;
  svg_.path("M" + corners(values),
            R"(fill="none" stroke-width="1.8" stroke-linejoin="round" stroke=")" +
                std::string(colour) + "\"");
}

void Plot::area(const Columns& values, const Columns& ground, std::string_view colour,
                double opacity) {
  if (values.empty()) return;
  std::string all = "M" + corners(values);
  if (ground.empty()) all += corner(values.size() - 1, y(0)) + corner(0, y(0));
  for (std::size_t i = ground.size(); i-- > 0;) all += corner(i, y(ground[i]));
  svg_.path(all + "Z", "fill=\"" + std::string(colour) + R"(" fill-opacity=")" +
                           format_number(opacity, 2) + "\"");
}

void Plot::mark(double value, std::string_view word) {
  if (value / y_.unit > y_.most) return;
  svg_.line({kPlotLeft, y(value)}, {kPlotLeft + kPlotWidth, y(value)},
            R"(stroke="#555" stroke-dasharray="6 4")");
  svg_.text({kPlotLeft + kPlotWidth, y(value) - 6}, word, kEnd);
}

void Plot::cross(const Columns& values, std::string_view colour) {
  if (values.empty()) return;
  constexpr double kArm = 6;
  const double at = kPlotLeft + static_cast<double>(values.size() - 1);
  const double height = y(values.back());
  const std::string look = R"(stroke-width="3" stroke=")" + std::string(colour) + "\"";
  svg_.line({at - kArm, height - kArm}, {at + kArm, height + kArm}, look);
  svg_.line({at - kArm, height + kArm}, {at + kArm, height - kArm}, look);
}

}  // namespace weir::picture
