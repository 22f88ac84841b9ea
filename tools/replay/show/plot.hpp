#pragma once

// Bytes over operations, as the bands and the map of a picture have them; and the looks of it all.

#include <span>
#include <string_view>

#include "tools/replay/measure/timeline.hpp"
#include "tools/replay/show/address_map.hpp"
#include "tools/replay/show/svg.hpp"

namespace weir::replay::look {

// In points of the picture.
inline constexpr double kWidth = 1000;
inline constexpr double kLeft = 88;   ///< room for the numbers
inline constexpr double kPlot = 840;  ///< as wide as a plot is
inline constexpr double kBand = 96;   ///< as high as a band's plot is

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

/// Where a plot lies, and what its scales are.
class Plot {
 public:
  Plot(Svg& svg, double top, double height, double operations, double bytes)
      : svg_(svg), top_(top), height_(height), operations_(operations), bytes_(bytes) {}

  /// Lines and numbers of the bytes, about so many, behind what is drawn later.
  void grid(double parts);
  /// The axes; the operations are numbered where `numbered`.
  void frame(bool numbered);
  /// The steps of one level, down to zero at both ends, and no higher than the plot.
  void area(const Timeline& timeline, Bytes Levels::*level, std::string_view look);

 private:
  [[nodiscard]] double x(double operation) const {
    return look::kLeft + look::kPlot * operation / operations_;
  }
  [[nodiscard]] double y(double bytes) const { return top_ + height_ * (1 - bytes / bytes_); }
  [[nodiscard]] double bottom() const { return top_ + height_; }

  Svg& svg_;
  const double top_, height_, operations_, bytes_;
};

/// What a colour stands for.
struct LegendEntry {
  const char* look;
  const char* words;
  double width;  ///< up to where the next one begins
};
/// From the left of the plots, on the line at `y`.
void draw_legend(Svg& svg, double y, std::span<const LegendEntry> entries);

/// The map of what lay where, from `top` on; kMapHeight high.
void draw_map(Svg& svg, std::string_view name, const AddressMap& map, double top);
inline constexpr double kMapHeight = 400;

}  // namespace weir::replay
