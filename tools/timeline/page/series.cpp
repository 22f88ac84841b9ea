#include "tools/timeline/page/series.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::timeline {

std::uint64_t Columns::width() const noexcept {
  return std::max<std::uint64_t>(1, duration / std::max<std::uint32_t>(1, count));
}

std::uint32_t Columns::of(std::uint64_t time) const noexcept {
  const std::uint64_t column = time / width();
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(column, count == 0 ? 0 : count - 1));
}

SeriesThinner::SeriesThinner(std::size_t width, Columns columns)
    : columns_(columns), out_{width, {}} {}

void SeriesThinner::keep(Kept& kept, std::span<const std::int64_t> row) const {
  kept.order = arrived_;
  kept.row.assign(row.begin(), row.end());
}

void SeriesThinner::add(std::span<const std::int64_t> row) {
  const std::uint32_t column = columns_.of(static_cast<std::uint64_t>(row[0]));
  if (!empty_ && column != column_) {
    end_column();
  }
  ++arrived_;
  if (empty_) {
    empty_ = false;
    column_ = column;
    keep(largest_, row);
    keep(smallest_, row);
    keep(largest_third_, row);
  } else {
    if (row[1] > largest_.row[1]) {
      keep(largest_, row);
    }
    if (row[1] < smallest_.row[1]) {
      keep(smallest_, row);
    }
    if (row[2] > largest_third_.row[2]) {
      keep(largest_third_, row);
    }
  }
  keep(last_, row);
}

void SeriesThinner::end_column() {
  std::array<const Kept*, 4> kept{&largest_, &smallest_, &largest_third_, &last_};
  std::sort(kept.begin(), kept.end(),
            [](const Kept* a, const Kept* b) { return a->order < b->order; });
  std::uint64_t before = 0;
  for (const Kept* one : kept) {
    if (one->order == before) {
      continue;
    }
    before = one->order;
    out_.values.insert(out_.values.end(), one->row.begin(), one->row.end());
  }
  empty_ = true;
}

Series SeriesThinner::take() {
  if (!empty_) {
    end_column();
  }
  return std::exchange(out_, Series{out_.width, {}});
}

Series thin(const Series& series, Columns columns) {
  SeriesThinner thinner(series.width, columns);
  for (std::size_t i = 0; i < series.rows(); ++i) {
    thinner.add(series.row(i));
  }
  return thinner.take();
}

void add_to_row(std::vector<Run>& row, const Run& run, Columns columns) {
  Run next = run;
  next.end = std::max(next.begin, next.end);
  const auto is_short = [&](const Run& one) { return one.end - one.begin < columns.width(); };
  if (row.empty() || !is_short(row.back()) || !is_short(next) ||
      columns.of(row.back().begin) != columns.of(next.begin)) {
    row.push_back(next);
    return;
  }
  Run& last = row.back();
  last.end = std::max(last.end, next.end);
  last.busy += next.busy;
  last.count += next.count;
  last.bytes += next.bytes;
  if (next.longest > last.longest) {
    last.longest = next.longest;
    last.name = next.name;
    last.batch = next.batch;
    last.category = next.category;
  }
}

std::vector<Run> thin(const std::vector<Run>& runs, Columns columns) {
  std::vector<Run> row;
  for (const Run& run : runs) add_to_row(row, run, columns);
  return row;
}

}  // namespace weir::timeline
