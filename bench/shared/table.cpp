#include "bench/shared/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "tools/program/median.hpp"
#include "tools/program/table.hpp"

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

std::string value(const Row& row, double ns) {
  if (!row.counter.empty()) return format_three_digits(ns) + " " + row.counter;
  return row.rate.empty() ? format_nanoseconds(ns) : format_three_digits(1e9 / ns) + " " + row.rate;
}

/// Returns the name of the row's peer without the figure's own name: `jemalloc`.
std::string against_of(const Row& row) {
  const std::string own = row.figure + "/";
  return row.against.starts_with(own) ? row.against.substr(own.size()) : row.against;
}

/// `+12.3 ns`.
std::string more(double ns) { return (ns < 0 ? "-" : "+") + format_nanoseconds(std::abs(ns)); }

/// Returns the targets in words, and whether all are met; both empty if there are none. `other` is
/// 0 if the other benchmark did not run.
std::array<std::string, 2> verdict(const Row& row, double ns, double other) {
  const double ratio = other > 0 ? ns / other : 0;
  std::string targets;
  std::string difference;
  bool met = true;
  if (row.most_ns > 0) {
    targets = "<= " + value({.counter = row.counter}, row.most_ns);
    met = ns <= row.most_ns;
  }
  if (row.most_ratio > 0 && ratio > 0) {
    targets += (targets.empty() ? "<= " : ", <= ") + format_three_digits(row.most_ratio) + "x";
    met = met && ratio <= row.most_ratio;
  }
  if (row.most_more_ns > 0 && other > 0) {
    targets += (targets.empty() ? "<= " : ", <= ") + more(row.most_more_ns);
    met = met && ns - other <= row.most_more_ns;
  }
  if (other > 0 && (row.most_more_ns > 0 || row.shows_more)) difference = more(ns - other);
  const std::string word = targets.empty() ? "" : met ? "met" : "MISSED";
  return {targets, word + (word.empty() || difference.empty() ? "" : ", ") + difference};
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

std::vector<std::string> Table::cells(const Row& row) const {
  const Spread own = spread_of(times_.at(key_of(row.figure, row.counter)));
  const std::string spread =
      !row.counter.empty() ? format_three_digits(own.least) + " - " + format_three_digits(own.most)
      : row.rate.empty()
          ? format_nanoseconds(own.least) + " - " + format_nanoseconds(own.most)
          : format_three_digits(1e9 / own.most) + " - " + format_three_digits(1e9 / own.least);
  std::vector<std::string> cells{row.figure, value(row, own.median), spread};
  double others = 0;
  const auto other = times_.find(key_of(row.against, row.counter));
  if (other != times_.end()) {
    others = spread_of(other->second).median;
    cells.insert(cells.end(), {against_of(row), value(row, others),
                               format_three_digits(own.median / others) + "x"});
  } else {
    cells.resize(cells.size() + 3);
  }
  const auto [targets, met] = verdict(row, own.median, others);
  cells.insert(cells.end(), {targets, met});
  return cells;
}

void Table::Finalize() {
  std::vector<std::vector<std::string>> lines{
      {"figure", "median", "spread", "against", "its median", "ratio", "target", ""}};
  for (const Row& row : rows_) {
    if (times_.count(row.figure) != 0) lines.push_back(cells(row));
  }
  std::fputs(format_table(lines, "lrrlrrll").c_str(), stdout);
  for (const auto& [topic, line] : notes_) {
    const auto ran = times_.lower_bound(topic + "/");
    if (ran != times_.end() && ran->first.starts_with(topic + "/")) std::puts(line.c_str());
  }
}

}  // namespace weir::bench
