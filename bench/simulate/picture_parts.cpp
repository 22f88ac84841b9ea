#include "bench/simulate/picture_parts.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "tools/program/numbers.hpp"

namespace weir::simulate {
namespace {

std::string number(double value) { return format_number(value, 1); }

/// Returns 1, 2 or 5 times a power of ten, so that about `count` steps reach `most`.
double step_of(double most, int count) {
  const double rough = most / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

Axis axis_of(double most, int count, std::initializer_list<std::pair<double, const char*>> units) {
  Axis axis;
  for (const auto& [unit, name] : units) {
    axis.unit = unit;
    axis.name = name;
    if (most >= unit) break;
  }
  axis.most = std::max(most / axis.unit, 1e-9);
  axis.step = step_of(axis.most, count);
  return axis;
}

std::string point(std::size_t column, double y) {
  return std::to_string(static_cast<std::size_t>(kPlotLeft) + column) + "," + number(y) + " ";
}

}  // namespace

Axis time_axis(const std::vector<Sample>& series) {
  const Time end = series.empty() ? Time{1} : std::max(series.back().time, Time{1});
  return duration_axis(static_cast<double>(end.count()), 8);
}

Axis duration_axis(double most, int count) {
  return axis_of(most, count, {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}});
}

Axis bytes_axis(double most, int count) {
  return axis_of(most, count, {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}});
}

std::string text_at(double x, double y, const std::string& text, Style style) {
  return "<text x='" + number(x) + "' y='" + number(y) + "' " + std::string(style) + ">" + text +
         "</text>\n";
}

std::string line_from(double x1, double y1, double x2, double y2, Style style) {
  return "<line x1='" + number(x1) + "' y1='" + number(y1) + "' x2='" + number(x2) + "' y2='" +
         number(y2) + "' " + std::string(style) + "/>\n";
}

std::string key_at(double x, double y, std::string_view colour, const std::string& words) {
  return line_from(x, y - 4, x + 22, y - 4,
                   "stroke-width='4' stroke='" + std::string(colour) + "'") +
         text_at(x + 30, y, words);
}

std::string picture_of(int height, const std::string& title, const std::string& body) {
  const std::string wide = std::to_string(kPictureWidth);
  const std::string high = std::to_string(height);
  return "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " + wide + " " + high + "' width='" +
         wide + "' height='" + high +
         "' font-family='system-ui, sans-serif' font-size='13' fill='#333' role='img'>\n"
         "<rect width='100%' height='100%' fill='#fff'/>\n" +
         text_at(kPlotLeft, 26, title, "font-size='16' font-weight='600'") + body + "</svg>\n";
}

Plot::Plot(int top, int height, Axis x, Axis y)
    : top_(top), height_(height), x_(std::move(x)), y_(std::move(y)) {}

double Plot::x(Time time) const {
  return kPlotLeft + static_cast<double>(time.count()) / x_.unit / x_.most * kPlotWidth;
}

double Plot::y(double value) const { return top_ + height_ - value / y_.unit / y_.most * height_; }

std::string Plot::axes(const std::string& title, bool time) const {
  std::string svg;
  const int bottom = top_ + height_;
  const int digits_x = x_.step < 1 ? 1 : 0;
  for (int i = 0; i * x_.step <= x_.most * 1.0001; ++i) {
    const double at = kPlotLeft + i * x_.step / x_.most * kPlotWidth;
    svg += line_from(at, bottom, at, bottom + 5, "stroke='#999'");
    if (!time) continue;
    svg += text_at(at, bottom + 20, format_number(i * x_.step, digits_x), "text-anchor='middle'");
  }
  const int digits_y = y_.step < 1 ? 1 : 0;
  for (int i = 0; i * y_.step <= y_.most * 1.0001; ++i) {
    const double at = y(i * y_.step * y_.unit);
    svg += line_from(kPlotLeft, at, kPlotLeft + kPlotWidth, at,
                     i == 0 ? "stroke='#999'" : "stroke='#e6e6e6'");
    svg +=
        text_at(kPlotLeft - 8, at + 4, format_number(i * y_.step, digits_y), "text-anchor='end'");
  }
  if (time) {
    svg += text_at(kPlotLeft + kPlotWidth / 2.0, bottom + 40, "time (" + x_.name + ")",
                   "text-anchor='middle'");
  }
  const std::string middle = number(top_ + height_ / 2.0);
  return svg + text_at(0, 0, title + " (" + y_.name + ")",
                       "text-anchor='middle' transform='translate(22 " + middle + ") rotate(-90)'");
}

std::string Plot::points(const Columns& values) const {
  std::string all;
  for (std::size_t i = 0; i < values.size(); ++i) all += point(i, y(values[i]));
  return all;
}

std::string Plot::line(const Columns& values, std::string_view colour) const {
  return "<polyline points='" + points(values) +
         "' fill='none' stroke-width='1.8' stroke-linejoin='round' stroke='" + std::string(colour) +
         "'/>\n";
}

std::string Plot::area(const Columns& values, const Columns& ground, std::string_view colour,
                       double opacity) const {
  if (values.empty()) return "";
  std::string corners = ground.empty() ? point(0, y(0)) : "";
  corners += points(values);
  if (ground.empty()) corners += point(values.size() - 1, y(0));
  for (std::size_t i = ground.size(); i-- > 0;) corners += point(i, y(ground[i]));
  corners.pop_back();
  return "<polygon points='" + corners + "' fill='" + std::string(colour) + "' fill-opacity='" +
         format_number(opacity, 2) + "'/>\n";
}

std::string Plot::mark(double value, const std::string& word) const {
  if (value / y_.unit > y_.most) return "";
  return line_from(kPlotLeft, y(value), kPlotLeft + kPlotWidth, y(value),
                   "stroke='#555' stroke-dasharray='6 4'") +
         text_at(kPlotLeft + kPlotWidth, y(value) - 6, word, "text-anchor='end'");
}

}  // namespace weir::simulate
