#include "tools/replay/show/address_map.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weir::replay {
namespace {

/// The covered share of each cell, from 0 to 1.
class Coverage {
 public:
  Coverage(std::size_t columns, std::size_t rows) : columns_(columns), cells_(columns * rows) {}

  /// Adds a rectangle, in cells.
  void add(double left, double right, double bottom, double top) {
    for (auto row = static_cast<std::size_t>(bottom); row < rows() && above(row, top); ++row) {
      const double height = overlap(row, bottom, top);
      for (auto column = static_cast<std::size_t>(left); column < columns_ && above(column, right);
           ++column) {
        cells_[row * columns_ + column] += height * overlap(column, left, right);
      }
    }
  }
  [[nodiscard]] double at(std::size_t cell) const { return cells_[cell]; }

 private:
  [[nodiscard]] std::size_t rows() const { return cells_.size() / columns_; }
  static bool above(std::size_t index, double end) { return static_cast<double>(index) < end; }
  static double overlap(std::size_t index, double begin, double end) {
    const auto low = static_cast<double>(index);
    return std::max(0.0, std::min(low + 1, end) - std::max(low, begin));
  }

  std::size_t columns_;
  std::vector<double> cells_;
};

Cell cell_of(double live, double held) {
  constexpr double kMost = 2.0 / 3;
  constexpr double kSome = 1.0 / 4;
  if (live >= kMost) return Cell::kLive;
  if (live >= kSome) return Cell::kPartLive;
  return std::max(live, held) >= 0.5 ? Cell::kHole : Cell::kNothing;
}

}  // namespace

void AddressMap::close(Open& open, Open::iterator area, std::uint64_t now,
                       std::vector<Area>& closed) {
  area->second.to = now;
  closed.push_back(area->second);
  open.erase(area);
}

void AddressMap::add(const Step& step) {
  const auto address = reinterpret_cast<std::uintptr_t>(step.pointer);
  if (step.what.action == Action::kAllocate) {
    live_[address] = {.begin = address,
                      .end = address + step.what.bytes.count,
                      .from = step.operation,
                      .to = step.operation};
  } else if (step.what.action == Action::kFree) {
    const auto area = live_.find(address);
    if (area != live_.end()) close(live_, area, step.operation, was_live_);
  }
  now_ = step.operation + 1;
}

void AddressMap::add(const DriverEvent& event) {
  if (event.obtained) {
    held_[event.address] = {
        .begin = event.address, .end = event.address + event.size.count, .from = now_, .to = now_};
    return;
  }
  const auto area = held_.find(event.address);
  if (area != held_.end()) close(held_, area, now_, was_held_);
}

void AddressMap::finish(std::uint64_t end) {
  while (!live_.empty()) close(live_, live_.begin(), end, was_live_);
  while (!held_.empty()) close(held_, held_.begin(), end, was_held_);
  shown_ = runs_of(was_held_);
  std::vector<Run> used = runs_of(was_live_);
  if (!dwarfs(sum_of(shown_), sum_of(used))) return;
  left_out_ = minus_or_zero(sum_of(shown_), sum_of(used));
  shown_ = std::move(used);
}

std::vector<AddressMap::Run> AddressMap::runs_of(const std::vector<Area>& areas) {
  std::vector<Run> sorted;
  sorted.reserve(areas.size());
  for (const Area& area : areas) sorted.push_back({.begin = area.begin, .end = area.end});
  std::ranges::sort(sorted, {}, &Run::begin);
  std::vector<Run> joined;
  for (const Run& run : sorted) {
    if (!joined.empty() && run.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, run.end);
    } else {
      joined.push_back(run);
    }
  }
  std::uint64_t below = 0;
  for (Run& run : joined) {
    run.below = below;
    below += run.end - run.begin;
  }
  return joined;
}

Bytes AddressMap::sum_of(const std::vector<Run>& runs) {
  return runs.empty() ? Bytes{} : Bytes{runs.back().below + runs.back().end - runs.back().begin};
}

Bytes AddressMap::height() const { return sum_of(shown_); }

Bytes AddressMap::left_out() const { return left_out_; }

Raster AddressMap::raster(std::size_t columns, std::size_t rows) const {
  const double row = static_cast<double>(height().count) / static_cast<double>(rows);
  const double column = static_cast<double>(operations_) / static_cast<double>(columns);
  const auto place = [&](std::uint64_t address) {
    const auto next = std::ranges::upper_bound(shown_, address, {}, &Run::begin);
    if (next == shown_.begin()) return 0.0;
    const Run& run = *std::prev(next);
    return static_cast<double>(run.below + std::min(address, run.end) - run.begin) / row;
  };
  const auto cover = [&](const std::vector<Area>& areas) {
    Coverage coverage(columns, rows);
    for (const Area& area : areas) {
      coverage.add(static_cast<double>(area.from) / column, static_cast<double>(area.to) / column,
                   place(area.begin), place(area.end));
    }
    return coverage;
  };
  Raster raster{.columns = columns, .rows = rows, .cells = std::vector<Cell>(columns * rows)};
  if (shown_.empty()) return raster;
  const Coverage live = cover(was_live_);
  const Coverage held = cover(was_held_);
  for (std::size_t i = 0; i < raster.cells.size(); ++i) {
    raster.cells[i] = cell_of(live.at(i), held.at(i));
  }
  return raster;
}

}  // namespace weir::replay
