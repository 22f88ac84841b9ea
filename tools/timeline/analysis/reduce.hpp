#pragma once

// Reduces series for a screen. Keeps the first, lowest, highest and last value of each pixel column
// at their own times, so that the reduced series draws the same picture.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

/// A value that holds until the next point.
struct Point {
  std::uint64_t at = 0;
  std::uint64_t value = 0;

  friend constexpr bool operator==(Point, Point) noexcept = default;
};

/// Keeps at most four points for each of `columns` columns of a span. Points must come by time. The
/// last point before the span counts as the value at its begin; points after it are dropped.
class Reducer {
 public:
  Reducer(Span span, std::uint32_t columns);
  void add(Point point);
  /// Returns the points by time. Call once, last.
  [[nodiscard]] std::vector<Point> finish();

 private:
  struct Numbered {
    Point point;
    std::uint64_t number = 0;  ///< in the order of arrival
  };
  void put(Point point);
  void close_column();
  void keep(Point point);

  Span span_;
  std::uint64_t column_ns_;
  std::uint64_t column_ = 0;
  std::uint64_t number_ = 0;
  bool any_ = false;
  std::optional<Point> before_;
  Numbered first_;
  Numbered lowest_;
  Numbered highest_;
  Numbered last_;
  std::vector<Point> kept_;
};

/// Reduces a complete series. The value at the begin of `span` is the one before it, if any.
[[nodiscard]] std::vector<Point> reduce(std::span<const Point> points, Span span,
                                        std::uint32_t columns);

/// A part of a series at one zoom level.
struct Tile {
  Span span{};
  std::uint32_t level = 0;  ///< 0: the whole span
  bool exact = false;       ///< nothing was left out, so there are no finer tiles
  std::vector<Point> points{};
};
struct TileOptions {
  std::uint32_t columns = 2000;        ///< per tile
  std::uint32_t split = 8;             ///< finer tiles per tile
  std::uint64_t most_points = 100000;  ///< of all tiles but the first
};
/// Returns the whole in `columns` columns, then finer tiles, level after level and by time within a
/// level, as far as `most_points` allows. Leaves out tiles whose coarser tile is already exact.
[[nodiscard]] std::vector<Tile> tiles(std::span<const Point> points, Span span,
                                      const TileOptions& options = {});

}  // namespace weir::timeline
