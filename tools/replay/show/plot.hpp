#pragma once

// The plot of bytes over operations that bands and maps share, and the styles of a picture.

#include <span>
#include <string_view>
#include <vector>

#include "tools/program/picture/svg.hpp"
#include "tools/replay/measure/engine.hpp"
#include "tools/replay/show/address_map.hpp"

namespace weir::replay::look {

// Sizes in points.
inline constexpr double kWidth = 1000;
inline constexpr double kLeft = 88;   ///< space for the numbers
inline constexpr double kPlot = 840;  ///< width of a plot
inline constexpr double kBand = 96;   ///< height of a band's plot

inline constexpr const char* kReserved = R"(fill="#f6d8bf" stroke="#b85c1e" stroke-width="1")";
inline constexpr const char* kHole = R"(fill="#f6d8bf")";
inline constexpr const char* kAllocated = R"(fill="#8fb8de")";
inline constexpr const char* kPartLive = kAllocated;
inline constexpr const char* kLive = R"(fill="#1f5c99")";
inline constexpr const char* kNothing = R"(fill="#fff" stroke="#999")";
inline constexpr const char* kEnd = R"(text-anchor="end")";
inline constexpr const char* kMiddle = R"(text-anchor="middle")";
inline constexpr const char* kBold = R"(font-weight="bold")";

}  // namespace weir::replay::look

namespace weir::replay {

using picture::Place;
using picture::Svg;

/// The highest levels within one column.
struct Levels {
  Bytes requested, allocated, reserved;

  friend bool operator==(const Levels&, const Levels&) = default;
};

/// Records the memory levels of a replay over time, in a fixed number of columns.
class LevelColumns {
 public:
  /// Divides `operations` into at most `most` columns of about equal length.
  LevelColumns(std::uint64_t operations, std::size_t most);

  /// Steps must come in order.
  void add(const Step& step);

  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  /// Returns the columns that the replay reached; the list ends there.
  [[nodiscard]] const std::vector<Levels>& columns() const noexcept { return columns_; }
  /// Returns the number of all columns, also those that the replay did not reach.
  [[nodiscard]] std::size_t width() const noexcept { return width_; }

 private:
  std::uint64_t operations_;
  std::size_t width_;
  std::vector<Levels> columns_;
};

/// The position and the scales of a plot.
class Plot {
 public:
  Plot(Svg& svg, double top, double height, double operations, double bytes)
      : svg_(svg), top_(top), height_(height), operations_(operations), bytes_(bytes) {}

  /// Draws about `parts` lines of bytes and their numbers. Call it first, so that it lies behind.
  void grid(double parts);
  /// Draws the axes, and the numbers of the operations if `numbered`.
  void frame(bool numbered);
  /// Shows the levels of the columns where a mouse points at them, in some hundred parts. Call it
  /// last, so that it lies on top.
  void hover(const LevelColumns& columns);
  /// Draws one level as steps, down to zero at both ends, clipped to the plot.
  void area(const LevelColumns& columns, Bytes Levels::*level, std::string_view look);

 private:
  [[nodiscard]] double x(double operation) const {
    return look::kLeft + look::kPlot * operation / operations_;
  }
  [[nodiscard]] double y(double bytes) const { return top_ + height_ * (1 - bytes / bytes_); }
  [[nodiscard]] double bottom() const { return top_ + height_; }

  Svg& svg_;
  const double top_, height_, operations_, bytes_;
};

/// A colour's meaning.
struct LegendEntry {
  const char* look;
  const char* words;
  double width;  ///< distance to the next entry
};
/// Draws the entries on the line at `y`, from the left of the plots.
void draw_legend(Svg& svg, double y, std::span<const LegendEntry> entries);

/// Draws the address map from `top` on; it is kMapHeight high.
void draw_map(Svg& svg, std::string_view name, const AddressMap& map, double top);
inline constexpr double kMapHeight = 400;

}  // namespace weir::replay
