#include "tools/replay/show/plot.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tools/program/table.hpp"

namespace weir::replay {
namespace {

constexpr const char* kAxis = R"(stroke="#444" stroke-width="1")";
constexpr const char* kGrid = R"(stroke="#ddd" stroke-width="0.5")";

/// Returns 1, 2 or 5 times a power of ten, so that about `parts` steps make `whole`.
double decimal_step(double whole, double parts) {
  const double least = std::max(whole / parts, 1.0);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor >= least) return power * factor;
  }
  return power * 10;
}

/// Returns a power of two, so that about `parts` steps make `whole`.
double binary_step(double whole, double parts) {
  return std::exp2(std::ceil(std::log2(std::max(whole / parts, 1.0))));
}

}  // namespace

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
  const double step = decimal_step(operations_, 8);
  for (unsigned i = 0; i * step <= operations_; ++i) {
    const double at = i * step;
    svg_.line({x(at), bottom()}, {x(at), bottom() + 4}, kAxis);
    svg_.text({x(at), bottom() + 16}, format_number(at, 0), look::kMiddle);
  }
  svg_.text({(look::kLeft + kRight) / 2, bottom() + 32}, "operation", look::kMiddle);
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
