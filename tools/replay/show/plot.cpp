#include "tools/replay/show/plot.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tools/program/numbers.hpp"
#include "tools/program/picture/plot.hpp"

namespace weir::replay {
namespace {

constexpr const char* kAxis = R"(stroke="#444" stroke-width="1")";
constexpr const char* kGrid = R"(stroke="#ddd" stroke-width="0.5")";

/// Returns a power of two, so that about `parts` steps make `whole`.
double binary_step(double whole, double parts) {
  return std::exp2(std::ceil(std::log2(std::max(whole / parts, 1.0))));
}

}  // namespace

LevelColumns::LevelColumns(std::uint64_t operations, std::size_t most)
    : operations_(operations), width_(std::min<std::uint64_t>(operations, most)) {}

void LevelColumns::add(const Step& step) {
  const std::size_t column = step.operation * width_ / operations_;
  if (column >= columns_.size()) columns_.resize(column + 1);
  Levels& levels = columns_[column];
  levels.requested = std::max(levels.requested, step.requested);
  levels.allocated = std::max(levels.allocated, step.footprint.allocated);
  levels.reserved = std::max(levels.reserved, step.footprint.reserved);
}

void Plot::grid(double parts) {
  const double step = binary_step(bytes_, parts);
  for (unsigned i = 0; i * step <= bytes_; ++i) {
    const double at = i * step;
    svg_.line({look::kLeft, y(at)}, {look::kLeft + look::kPlot, y(at)}, kGrid);
    svg_.text({look::kLeft - 6, y(at) + 4}, format_bytes({static_cast<std::uint64_t>(at)}),
              look::kEnd);
  }
}

void Plot::frame(bool numbered) {
  constexpr double kRight = look::kLeft + look::kPlot;
  svg_.line({look::kLeft, top_}, {look::kLeft, bottom()}, kAxis);
  svg_.line({look::kLeft, bottom()}, {kRight, bottom()}, kAxis);
  if (!numbered) return;
  const double step = picture::decimal_step(std::max(operations_, 8.0), 8);
  for (unsigned i = 0; i * step <= operations_; ++i) {
    const double at = i * step;
    svg_.line({x(at), bottom()}, {x(at), bottom() + 4}, kAxis);
    svg_.text({x(at), bottom() + 16}, format_number(at, 0), look::kMiddle);
  }
  svg_.text({(look::kLeft + kRight) / 2, bottom() + 32}, "operation", look::kMiddle);
}

void Plot::hover(const LevelColumns& columns) {
  constexpr std::size_t kParts = 100;
  const std::vector<Levels>& levels = columns.columns();
  const std::size_t each = std::max<std::size_t>((columns.width() + kParts - 1) / kParts, 1);
  const double width = operations_ / static_cast<double>(columns.width());
  for (std::size_t begin = 0; begin < levels.size(); begin += each) {
    const std::size_t end = std::min(begin + each, levels.size());
    Levels most;
    for (std::size_t i = begin; i < end; ++i) {
      most.requested = std::max(most.requested, levels[i].requested);
      most.allocated = std::max(most.allocated, levels[i].allocated);
      most.reserved = std::max(most.reserved, levels[i].reserved);
    }
    const double from = width * static_cast<double>(begin);
    const double to = width * static_cast<double>(end);
    svg_.begin_group("operations " + format_number(from, 0) + " to " + format_number(to, 0) +
                     ": requested " + format_bytes(most.requested) + ", allocated " +
                     format_bytes(most.allocated) + ", reserved " + format_bytes(most.reserved));
    svg_.rectangle({x(from), top_}, x(to) - x(from), height_, R"(fill="#fff" fill-opacity="0")");
    svg_.end_group();
  }
}

void Plot::area(const LevelColumns& columns, Bytes Levels::*level, std::string_view look) {
  const double width = operations_ / static_cast<double>(columns.width());
  std::string path = "M" + Svg::number(x(0)) + " " + Svg::number(bottom());
  std::optional<Bytes> last;
  double end = 0;
  for (const Levels& levels : columns.columns()) {
    if (levels.*level != last) {
      last = levels.*level;
      path += "H" + Svg::number(x(end)) + "V" +
              Svg::number(y(std::min(static_cast<double>(last->count), bytes_)));
    }
    end += width;
  }
  path += "H" + Svg::number(x(end)) + "V" + Svg::number(bottom()) + "Z";
  svg_.path(path, look);
}

void draw_legend(Svg& svg, double y, std::span<const LegendEntry> entries) {
  double x = look::kLeft;
  for (const LegendEntry& entry : entries) {
    svg.rectangle({x, y - 9}, 10, 10, entry.look);
    svg.text({x + 15, y}, entry.words);
    x += entry.width;
  }
}

}  // namespace weir::replay
