#include "tools/replay/show/picture.hpp"

#include <algorithm>
#include <array>

#include "tools/program/table.hpp"
#include "tools/replay/show/plot.hpp"

namespace weir::replay {
namespace {

constexpr double kTitle = 86;    // space for the title and the legend
constexpr double kGap = 26;      // space between bands, for their names
constexpr double kNumbers = 36;  // space below the last band

constexpr std::array<LegendEntry, 3> kBandLegend{{
    {look::kLive, "requested", 90},
    {look::kAllocated, "allocated: waste above what was requested", 270},
    {look::kReserved, "reserved: held, and free", 0},
}};

std::string summary(const Figures& figures, Bytes scale) {
  std::string text = "peak reserved " + format_bytes(figures.peak_reserved);
  if (figures.peak_reserved > scale) text += " (cut off here)";
  if (const auto share = figures.fragmentation()) {
    text += ", fragmentation " + format_number(100 * *share, 1) + "%";
  }
  if (figures.refusal) {
    text += ", out of memory at operation " + std::to_string(figures.refusal->operation);
  }
  return text;
}

void draw_band(Svg& svg, const Band& band, double top, Bytes scale, bool last) {
  Plot plot(svg, top, look::kBand, static_cast<double>(band.levels.operations()),
            static_cast<double>(scale.count) * 1.03);
  plot.grid(4);
  plot.area(band.levels, &Levels::reserved, look::kReserved);
  plot.area(band.levels, &Levels::allocated, look::kAllocated);
  plot.area(band.levels, &Levels::requested, look::kLive);
  plot.frame(last);
  plot.hover(band.levels);
  svg.text_upwards({14, top + look::kBand / 2}, "memory");
  svg.text({look::kLeft, top - 6}, band.name, look::kBold);
  svg.text({look::kLeft + look::kPlot, top - 6}, summary(band.figures, scale), look::kEnd);
}

}  // namespace

Band record_band(const Trace& trace, const Candidate& candidate, Bytes capacity, AddressMap* map) {
  const std::unique_ptr<Subject> subject = candidate.make(capacity);
  Band band{.name = candidate.name,
            .levels = LevelColumns(trace.operations.size(), kMostColumns),
            .figures = {}};
  if (map != nullptr) {
    auto* const pool = dynamic_cast<PoolSubject*>(subject.get());
    if (pool != nullptr) pool->tell([map](const DriverEvent& event) { map->add(event); });
  }
  band.figures = replay(trace, *subject, [&](const Step& step) {
    band.levels.add(step);
    if (map == nullptr) return;
    map->add(step);
  });
  if (map != nullptr) map->finish(band.figures.operations);
  return band;
}

Bytes scale_of(std::span<const Band> bands) {
  Bytes used{1};
  for (const Band& band : bands) {
    used = std::max({used, band.figures.peak_requested, band.figures.peak_allocated});
  }
  Bytes scale = used;
  for (const Band& band : bands) {
    const Bytes reserved = band.figures.peak_reserved;
    if (!dwarfs(reserved, used)) scale = std::max(scale, reserved);
  }
  return scale;
}

std::string draw(const Picture& picture) {
  const auto bands = static_cast<double>(picture.bands.size());
  const double below = kTitle + bands * (look::kBand + kGap) + kNumbers;
  Svg svg(look::kWidth, below + (picture.map ? kMapHeight : 0), picture.title);
  svg.text({look::kLeft, 22}, picture.title, R"(font-size="14" font-weight="bold")");
  svg.text({look::kLeft, 39}, picture.subtitle, R"(fill="#555")");
  draw_legend(svg, 58, kBandLegend);

  const Bytes scale = scale_of(picture.bands);
  double top = kTitle;
  for (const Band& band : picture.bands) {
    const bool last = &band == &picture.bands.back();
    draw_band(svg, band, top, scale, last);
    top += look::kBand + kGap;
  }
  if (picture.map) draw_map(svg, picture.mapped, *picture.map, below);
  return svg.finish();
}

}  // namespace weir::replay
