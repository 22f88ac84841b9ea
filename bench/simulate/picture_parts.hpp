#pragma once

// Parts of the pictures: SVG texts and lines, and a plot of values over time.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/simulate/simulation.hpp"

namespace weir::simulate {

/// An axis: the unit of its labels, its end and the step between two labels, in that unit.
struct Axis {
  double unit = 1;
  std::string name;
  double most = 1;
  double step = 1;
};

/// The time until the end of the series.
[[nodiscard]] Axis time_axis(const std::vector<Sample>& series);
/// Up to `most`, in nanoseconds.
[[nodiscard]] Axis duration_axis(double most, int count);
/// Up to `most`, in bytes.
[[nodiscard]] Axis bytes_axis(double most, int count);

/// A style of lines and fills, as SVG attributes.
using Style = std::string_view;

[[nodiscard]] std::string text_at(double x, double y, const std::string& text, Style style = {});
[[nodiscard]] std::string line_from(double x1, double y1, double x2, double y2, Style style);
/// Returns the key of a curve: a short line of its colour and the words.
[[nodiscard]] std::string key_at(double x, double y, std::string_view colour,
                                 const std::string& words);
/// Returns a whole SVG document of kPictureWidth with this body and the title at its top.
[[nodiscard]] std::string picture_of(int height, const std::string& title, const std::string& body);

inline constexpr int kPictureWidth = 960;
inline constexpr int kPlotLeft = 84;
inline constexpr int kPlotWidth = kPictureWidth - kPlotLeft - 24;

/// A rectangle with axes, as wide as the picture.
class Plot {
 public:
  /// The largest value of each pixel column, from the left on.
  using Columns = std::vector<double>;

  Plot(int top, int height, Axis x, Axis y);

  /// Returns ticks, grid lines and labels. `time`: also those of the time axis.
  [[nodiscard]] std::string axes(const std::string& title, bool time) const;
  /// Takes the largest of each column, so that no peak is lost.
  template <typename ValueOf>
  [[nodiscard]] Columns columns(const std::vector<Sample>& series, const ValueOf& value_of) const {
    Columns all;
    if (series.empty()) return all;
    const double end = x(series.back().time);
    double last = 0;
    std::size_t next = 0;
    for (int column = kPlotLeft; column < end + 0.5; ++column) {
      double most = next < series.size() && x(series[next].time) <= column ? 0 : last;
      while (next < series.size() && x(series[next].time) <= column) {
        last = value_of(series[next++]);
        most = std::max(most, last);
      }
      all.push_back(most);
    }
    return all;
  }
  /// Returns a line through the values.
  [[nodiscard]] std::string line(const Columns& values, std::string_view colour) const;
  /// Returns the area between the values and those of `ground`, or zero if that is empty.
  [[nodiscard]] std::string area(const Columns& values, const Columns& ground,
                                 std::string_view colour, double opacity) const;
  /// Returns a dashed line with a word above its right end; nothing if it lies outside.
  [[nodiscard]] std::string mark(double value, const std::string& word) const;

 private:
  [[nodiscard]] double x(Time time) const;
  [[nodiscard]] double y(double value) const;
  [[nodiscard]] std::string points(const Columns& values) const;

  int top_;
  int height_;
  Axis x_;
  Axis y_;
};

}  // namespace weir::simulate
