// Draws the address map: addresses over operations.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tools/replay/show/picture.hpp"
#include "tools/replay/show/plot.hpp"

namespace weir::replay {
namespace {

constexpr double kMap = 300;  // height of the plot
constexpr std::size_t kMostBytesOfMap = 250'000;

/// Merges cells of one kind into rectangles: full width first, then as high as possible.
class Rectangles {
 public:
  Rectangles(const Raster& raster, Place corner, double cell_width, double cell_height)
      : raster_(raster), corner_(corner), width_(cell_width), height_(cell_height) {}

  [[nodiscard]] std::string path_of(Cell kind) {
    path_.clear();
    std::vector<Run> open;
    for (std::size_t row = 0; row <= raster_.rows; ++row) {
      std::vector<Run> runs = row < raster_.rows ? runs_in(row, kind) : std::vector<Run>{};
      for (Run& run : runs) {
        const auto above = std::ranges::find_if(
            open, [&](const Run& o) { return o.begin == run.begin && o.end == run.end; });
        if (above == open.end()) continue;
        run.first_row = above->first_row;
        above->goes_on = true;
      }
      for (const Run& run : open) {
        if (!run.goes_on) close(run, row);
      }
      open = std::move(runs);
    }
    return path_;
  }

 private:
  struct Run {
    std::size_t begin = 0, end = 0;  ///< columns
    std::size_t first_row = 0;
    bool goes_on = false;
  };

  [[nodiscard]] std::vector<Run> runs_in(std::size_t row, Cell kind) const {
    std::vector<Run> runs;
    for (std::size_t column = 0; column < raster_.columns; ++column) {
      if (raster_.at(row, column) != kind) continue;
      if (runs.empty() || runs.back().end != column) {
        runs.push_back({.begin = column, .end = column, .first_row = row});
      }
      ++runs.back().end;
    }
    return runs;
  }
  /// Rows count from the lowest address, which is drawn at the bottom.
  void close(const Run& run, std::size_t end_row) {
    const double y = corner_.y + height_ * static_cast<double>(raster_.rows - end_row);
    const double wide = width_ * static_cast<double>(run.end - run.begin);
    path_ += "M" + Svg::number(corner_.x + width_ * static_cast<double>(run.begin)) + " " +
             Svg::number(y) + "h" + Svg::number(wide) + "v" +
             Svg::number(height_ * static_cast<double>(end_row - run.first_row)) + "h-" +
             Svg::number(wide) + "z";
  }

  const Raster& raster_;
  const Place corner_;
  const double width_, height_;
  std::string path_;
};

struct MapPaths {
  std::string hole, part, live;
  [[nodiscard]] std::size_t size() const { return hole.size() + part.size() + live.size(); }
};

/// Chooses the smallest cell size of 1, 2, 4 … points that keeps the picture small enough.
MapPaths map_paths(const AddressMap& map, double top) {
  for (std::size_t cell = 1;; cell *= 2) {
    const std::size_t columns = static_cast<std::size_t>(look::kPlot) / cell;
    const std::size_t rows = static_cast<std::size_t>(kMap) / cell;
    const Raster raster = map.raster(columns, rows);
    Rectangles rectangles(raster, {look::kLeft, top}, look::kPlot / static_cast<double>(columns),
                          kMap / static_cast<double>(rows));
    MapPaths paths{.hole = rectangles.path_of(Cell::kHole),
                   .part = rectangles.path_of(Cell::kPartLive),
                   .live = rectangles.path_of(Cell::kLive)};
    if (paths.size() <= kMostBytesOfMap || cell >= 16) return paths;
  }
}

constexpr std::array<LegendEntry, 4> kMapLegend{{
    {look::kLive, "in use", 75},
    {look::kPartLive, "partly in use", 105},
    {look::kHole, "a hole that holds memory", 170},
    {look::kNothing, "nothing held", 0},
}};

}  // namespace

void draw_map(Svg& svg, std::string_view name, const AddressMap& map, double top) {
  constexpr double kHeading = 44;
  constexpr const char* kCrisp = " shape-rendering=\"crispEdges\"";
  const double begin = top + kHeading;
  const auto height = static_cast<double>(std::max<std::uint64_t>(map.height().count, 1));
  const std::string left_out = map.left_out().count == 0
                                   ? "addresses that were never held are omitted"
                                   : "addresses that were never in use are omitted, and " +
                                         format_bytes(map.left_out()) + " that is held there";
  svg.text({look::kLeft, begin - 26}, std::string(name) + ": what lay where", look::kBold);
  svg.text({look::kLeft + look::kPlot, begin - 26}, left_out, look::kEnd);
  draw_legend(svg, begin - 8, kMapLegend);
  Plot plot(svg, begin, kMap, static_cast<double>(map.operations()), height);
  plot.grid(6);
  const MapPaths paths = map_paths(map, begin);
  const std::array<std::pair<const std::string*, const LegendEntry*>, 3> layers{
      {{&paths.hole, &kMapLegend[2]},
       {&paths.part, &kMapLegend[1]},
       {&paths.live, &kMapLegend[0]}}};
  for (const auto& [path, kind] : layers) {
    svg.begin_group(kind->words);
    svg.path(*path, std::string(kind->look) + kCrisp);
    svg.end_group();
  }
  plot.frame(true);
  svg.text_upwards({14, begin + kMap / 2}, "address");
}

}  // namespace weir::replay
