#pragma once

// Curves over time, with axes whose units and steps suit the largest value.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/program/picture/svg.hpp"

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

inline constexpr int kWidth = 960;
inline constexpr int kPlotLeft = 84;
inline constexpr int kPlotWidth = kWidth - kPlotLeft - 24;

/// A value from this time on, in nanoseconds.
struct Point {
  double time = 0;
  double value = 0;
};

/// Returns a document of kWidth with the title at its top.
[[nodiscard]] Svg titled(int height, std::string_view title);

/// The place of a curve's key: two in a row, each kKeyHeight high, from `top` on.
inline constexpr int kKeyHeight = 18;
[[nodiscard]] Place key_place(std::size_t number, double top);

/// Draws the key of a curve: a short line of its colour and the words.
void draw_key(Svg& svg, Place at, std::string_view colour, std::string_view words);

/// A rectangle with axes, as wide as the picture, from `top` on.
class Plot {
 public:
  /// The largest value of each pixel column, from the left on.
  using Columns = std::vector<double>;

  Plot(Svg& svg, int top, int height, Axis x, Axis y);

  /// Draws ticks, grid lines and labels. `time`: also those of the time axis.
  void axes(std::string_view title, bool time);
  /// Takes the largest of each column, so that no peak is lost. Ends at the last point.
  [[nodiscard]] Columns columns(std::span<const Point> points) const;
  /// Draws a line through the values.
  void line(const Columns& values, std::string_view colour);
  /// Draws the area between the values and those of `ground`, or zero if that is empty.
  void area(const Columns& values, const Columns& ground, std::string_view colour, double opacity);
  /// Draws a dashed line with a word above its right end; nothing if it lies outside.
  void mark(double value, std::string_view word);
  /// Draws a cross at the end of the values.
  void cross(const Columns& values, std::string_view colour);

 private:
  [[nodiscard]] double x(double time) const;
  [[nodiscard]] double y(double value) const;
  [[nodiscard]] std::string corners(const Columns& values) const;

  Svg& svg_;
  int top_;
  int height_;
  Axis x_;
  Axis y_;
};

}  // namespace weir::picture
