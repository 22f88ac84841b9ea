#pragma once

// Series for a screen: of each column of pixels the first, lowest, highest and last value stay, at
// their own times, so that a picture of the reduced series is the picture of the whole one.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

/// A value from here to the next point.
struct Point {
  std::uint64_t at = 0;
  std::uint64_t value = 0;

  friend constexpr bool operator==(Point, Point) noexcept = default;
};

/// Keeps at most four points for each of `columns` columns of a span. Points come by time. Of those
/// before the span the last counts as at its begin; those after it are dropped.
class Reducer {
 public:
  Reducer(Span span, std::uint32_t columns);
  void add(Point point);
  /// By time. Once, last.
  [[nodiscard]] std::vector<Point> finish();

 private:
  struct Numbered {
    Point point;
    std::uint64_t number = 0;  ///< in the order of their coming
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

/// The same of a series at hand. The value at the begin of `span` is the one before it, if any.
[[nodiscard]] std::vector<Point> reduce(std::span<const Point> points, Span span,
                                        std::uint32_t columns);

/// A part of a series in the detail of one step of zoom.
struct Tile {
  Span span{};
  std::uint32_t level = 0;  ///< 0: the whole span
  bool exact = false;       ///< nothing was left out: no finer tile is below it
  std::vector<Point> points{};
};
struct TileOptions {
  std::uint32_t columns = 2000;        ///< of each tile
  std::uint32_t split = 8;             ///< tiles below one
  std::uint64_t most_points = 100000;  ///< of all tiles but the first
};
/// The whole in `columns` columns first, then finer ones, level after level and of a level by time,
/// for as long as `most_points` allow. A tile is left out where the one above it shows everything
/// already.
[[nodiscard]] std::vector<Tile> tiles(std::span<const Point> points, Span span,
                                      const TileOptions& options = {});

}  // namespace weir::timeline
