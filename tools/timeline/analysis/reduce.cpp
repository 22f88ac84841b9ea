#include "tools/timeline/analysis/reduce.hpp"

#include <algorithm>
#include <array>

namespace weir::timeline {

Reducer::Reducer(Span span, std::uint32_t columns) : span_(span) {
  const std::uint64_t count = std::max<std::uint32_t>(columns, 1);
  column_ns_ = std::max<std::uint64_t>(span.length() / count + (span.length() % count != 0), 1);
}

void Reducer::add(Point point) {
  if (point.at <= span_.begin) {
    before_ = {span_.begin, point.value};
    return;
  }
  if (point.at > span_.end) return;
  if (before_) put(*std::exchange(before_, std::nullopt));
  put(point);
}

void Reducer::put(Point point) {
  const std::uint64_t column = (point.at - span_.begin) / column_ns_;
  if (any_ && column != column_) close_column();
  const Numbered numbered{point, number_++};
  if (!any_) {
    first_ = lowest_ = highest_ = numbered;
    column_ = column;
    any_ = true;
  }
  if (point.value < lowest_.point.value) lowest_ = numbered;
  if (point.value > highest_.point.value) highest_ = numbered;
  last_ = numbered;
}

void Reducer::keep(Point point) {
  if (kept_.empty() || kept_.back().value != point.value) kept_.push_back(point);
}

void Reducer::close_column() {
  std::array<Numbered, 4> of_column{first_, lowest_, highest_, last_};
  std::ranges::sort(of_column, {}, &Numbered::number);
  for (const Numbered& one : of_column) keep(one.point);
  any_ = false;
}

std::vector<Point> Reducer::finish() {
  if (before_) put(*std::exchange(before_, std::nullopt));
  if (any_) close_column();
  return std::move(kept_);
}

std::vector<Point> reduce(std::span<const Point> points, Span span, std::uint32_t columns) {
  auto from = std::upper_bound(points.begin(), points.end(), span.begin,
                               [](std::uint64_t at, Point point) { return at < point.at; });
  if (from != points.begin()) --from;
  Reducer reducer(span, columns);
  for (; from != points.end() && from->at <= span.end; ++from) reducer.add(*from);
  return reducer.finish();
}

namespace {

/// Counts the points in the span after its begin.
std::size_t count_in(std::span<const Point> points, Span span) {
  const auto behind = [](std::uint64_t at, Point point) { return at < point.at; };
  const auto from = std::upper_bound(points.begin(), points.end(), span.begin, behind);
  return static_cast<std::size_t>(std::upper_bound(from, points.end(), span.end, behind) - from);
}

/// Returns the points at which the value changes.
std::vector<Point> changes(std::span<const Point> points) {
  std::vector<Point> changed;
  for (const Point& point : points) {
    if (changed.empty() || changed.back().value != point.value) changed.push_back(point);
  }
  return changed;
}

Tile make_tile(std::span<const Point> points, Span span, std::uint32_t level,
               const TileOptions& options) {
  Tile tile{.span = span, .level = level, .points = reduce(points, span, options.columns)};
  tile.exact = count_in(tile.points, span) == count_in(points, span);
  return tile;
}

/// Returns the `part`-th of `parts` pieces.
Span piece(Span span, std::uint64_t part, std::uint64_t parts) {
  const std::uint64_t step = span.length() / parts;
  return {span.begin + part * step, part + 1 == parts ? span.end : span.begin + (part + 1) * step};
}

}  // namespace

std::vector<Tile> tiles(std::span<const Point> all, Span span, const TileOptions& options) {
  const std::vector<Point> points = changes(all);
  std::vector<Tile> made{make_tile(points, span, 0, options)};
  const std::uint64_t parts = std::max<std::uint32_t>(options.split, 2);
  std::uint64_t room = options.most_points;
  for (std::size_t above = 0; above < made.size(); ++above) {
    const Span whole = made[above].span;
    if (made[above].exact || whole.length() < parts) continue;
    for (std::uint64_t part = 0; part < parts; ++part) {
      const Span below = piece(whole, part, parts);
      Tile tile = make_tile(points, below, made[above].level + 1, options);
      const bool adds = count_in(tile.points, below) > count_in(made[above].points, below);
      if (tile.exact && !adds) continue;
      if (tile.points.size() > room) return made;
      room -= tile.points.size();
      made.push_back(std::move(tile));
    }
  }
  return made;
}

}  // namespace weir::timeline
