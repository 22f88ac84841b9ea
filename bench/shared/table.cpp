#include "bench/shared/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/program/median.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/units.hpp"

namespace weir::bench {
namespace {

struct Spread {
  double least = 0;
  double median = 0;
  double most = 0;
};

Spread spread_of(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {least, median(values), most};
}

/// What the figures of a benchmark's time, or of one of its counters, are kept under.
std::string key_of(const std::string& benchmark, const std::string& counter) {
  return counter.empty() ? benchmark : benchmark + " " + counter;
}

/// Returns a benchmark's name as shown: one thread goes without saying.
std::string shown(std::string name) {
  constexpr std::string_view kAlone = "/threads:1";
  if (name.ends_with(kAlone)) name.resize(name.size() - kAlone.size());
  return name;
}

/// Returns the name of the row's peer without the parts that it shares with the figure's own name:
/// `jemalloc`, `live:10`.
std::string against_of(const Row& row) {
  std::size_t begin = row.against.starts_with(row.figure + "/") ? row.figure.size() + 1 : 0;
  const std::string own = shown(row.figure);
  const std::string other = shown(row.against);
  for (std::size_t at = 0; at < own.size() && at < other.size() && own[at] == other[at]; ++at) {
    if (own[at] == '/') begin = std::max(begin, at + 1);
  }
  return other.substr(begin);
}

/// `+12.3 ns`.
std::string more(double ns) { return (ns < 0 ? "-" : "+") + format_nanoseconds(std::abs(ns)); }

/// Returns the targets in words, and whether all are met; both empty if there are none. `other` is
/// 0 if the other benchmark did not run.
std::array<std::string, 2> verdict(const Row& row, double ns, double other) {
  const double ratio = other > 0 ? ns / other : 0;
  std::string targets;
  bool met = true;
  const auto add = [&](const std::string& target, bool is_met) {
    targets += (targets.empty() ? "" : ", ") + target;
    met = met && is_met;
  };
  if (row.most_ns > 0) {
    add(row.counter.empty() ? format_nanoseconds(row.most_ns)
                            : format_three_digits(row.most_ns) + " " + row.counter,
        ns <= row.most_ns);
  }
  if (row.most_ratio > 0 && ratio > 0) {
    add(format_three_digits(row.most_ratio) + "x", ratio <= row.most_ratio);
  }
  if (row.most_more_ns > 0 && other > 0) {
    add(more(row.most_more_ns), ns - other <= row.most_more_ns);
  }
  return {targets, targets.empty() ? "" : met ? "met" : "MISSED"};
}

/// Returns the ratio to the other, or how much more it is, if that is what the row shows.
std::string to_peer(const Row& row, double ns, double other) {
  if (row.most_more_ns > 0 || row.shows_more) return more(ns - other);
  return format_three_digits(ns / other) + "x";
}

/// Returns the figures of a row in one unit: median, least, most, and the peer's median.
UnitColumn figures_of(const Row& row, const Spread& own, std::optional<double> other) {
  const std::array<std::optional<double>, 4> values{own.median, own.least, own.most, other};
  if (row.counter.empty()) return times_in_one_unit(values);
  UnitColumn figures{.unit = row.counter, .cells = {}};
  for (const std::optional<double>& value : values) {
    figures.cells.push_back(value ? format_three_digits(*value) : std::string("-"));
  }
  return figures;
}

}  // namespace

void Table::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration || run.iterations == 0) continue;
    // In the benchmark's own unit, which is ns unless it asked for another.
    const std::string& name = run.run_name.function_name;
    times_[name].push_back(run.GetAdjustedRealTime());
    for (const auto& [counter, value] : run.counters) {
      times_[key_of(name, counter)].push_back(value.value);
    }
  }
}

/// The cells of one line.
struct Table::Line {
  const Row* row;
  UnitColumn figures;
  std::string against{};
  std::string to_peer{};
  std::string targets;
  std::string met;
};

std::vector<Table::Line> Table::lines() const {
  std::vector<Line> lines;
  for (const Row& row : rows_) {
    if (times_.count(row.figure) == 0) continue;
    const Spread own = spread_of(times_.at(key_of(row.figure, row.counter)));
    const auto found = times_.find(key_of(row.against, row.counter));
    const std::optional<double> other =
        found == times_.end() ? std::nullopt : std::optional(spread_of(found->second).median);
    const auto [targets, met] = verdict(row, own.median, other.value_or(0));
    Line line{.row = &row, .figures = figures_of(row, own, other), .targets = targets, .met = met};
    if (other) {
      line.against = against_of(row);
      line.to_peer = to_peer(row, own.median, *other);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void Table::Finalize() {
  const std::vector<Line> lines = this->lines();
  const auto figure = [&](std::size_t which) {
    return cells_of(lines, [which](const Line& line) { return line.figures.cells.at(which); });
  };
  const auto texts = [&](std::string Line::*text) {
    return cells_of(lines, [text](const Line& line) { return line.*text; });
  };
  ReportTable table;
  table
      .words({"figure", "what is measured"},
             cells_of(lines, [](const Line& line) { return shown(line.row->figure); }), Long::kCut)
      .numbers({"median", "of the repetitions"}, figure(0))
      .words({"unit", "of it"}, cells_of(lines, [](const Line& line) { return line.figures.unit; }))
      .numbers({"least", "of them", Shown::kWide}, figure(1))
      .numbers({"most", "of them", Shown::kWide}, figure(2))
      .numbers({"to peer", "times the peer's time, or that much more"}, texts(&Line::to_peer))
      .words({"peer", "measured in the same run"}, texts(&Line::against), Long::kCut)
      .numbers({"its median", "the peer's", Shown::kWide}, figure(3))
      .words({"at most", "the target"}, texts(&Line::targets))
      .words({"verdict", "whether it is met"}, texts(&Line::met));
  std::fputs(table.format(wide_).c_str(), stdout);
  for (const auto& [topic, line] : notes_) {
    const auto ran = times_.lower_bound(topic + "/");
    if (ran != times_.end() && ran->first.starts_with(topic + "/")) std::puts(line.c_str());
  }
}

}  // namespace weir::bench
