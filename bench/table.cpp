#include "table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace weir::bench {
namespace {

struct Spread {
  double least = 0;
  double median = 0;
  double most = 0;
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values.at(half) : (values.at(half - 1) + values.at(half)) / 2;
  return {values.front(), median, values.back()};
}

/// Formats with three significant digits.
std::string digits(double value) {
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

std::string time(double ns) {
  if (ns < 1e3) return digits(ns) + " ns";
  if (ns < 1e6) return digits(ns / 1e3) + " us";
  return digits(ns / 1e6) + " ms";
}

/// What the figures of a benchmark's time, or of one of its counters, are kept under.
std::string key_of(const std::string& benchmark, const std::string& counter) {
  return counter.empty() ? benchmark : benchmark + " " + counter;
}

std::string value(const Row& row, double ns) {
  if (!row.counter.empty()) return digits(ns) + " " + row.counter;
  return row.rate.empty() ? time(ns) : digits(1e9 / ns) + " " + row.rate;
}

/// Returns the name of the row's peer without the figure's own name: `jemalloc`.
std::string against_of(const Row& row) {
  const std::string own = row.figure + "/";
  return row.against.starts_with(own) ? row.against.substr(own.size()) : row.against;
}

/// `+12.3 ns`.
std::string more(double ns) { return (ns < 0 ? "-" : "+") + time(std::abs(ns)); }

/// Returns the targets in words, and whether all are met; both empty if there are none. `other` is
/// 0 if the other benchmark did not run.
std::array<std::string, 2> verdict(const Row& row, double ns, double other) {
  const double ratio = other > 0 ? ns / other : 0;
  std::string targets;
  std::string difference;
  bool met = true;
  if (row.most_ns > 0) {
    targets = "<= " + time(row.most_ns);
    met = ns <= row.most_ns;
  }
  if (row.most_ratio > 0 && ratio > 0) {
    targets += (targets.empty() ? "<= " : ", <= ") + digits(row.most_ratio) + "x";
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
  const std::string spread = !row.counter.empty() ? digits(own.least) + " - " + digits(own.most)
                             : row.rate.empty()
                                 ? time(own.least) + " - " + time(own.most)
                                 : digits(1e9 / own.most) + " - " + digits(1e9 / own.least);
  std::vector<std::string> cells{row.figure, value(row, own.median), spread};
  double others = 0;
  const auto other = times_.find(key_of(row.against, row.counter));
  if (other != times_.end()) {
    others = spread_of(other->second).median;
    cells.insert(cells.end(),
                 {against_of(row), value(row, others), digits(own.median / others) + "x"});
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
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string space(widths[i] - line[i].size(), ' ');
      const bool number = i == 1 || i == 2 || i == 4 || i == 5;
      text += (i == 0 ? "" : "  ") + (number ? space + line[i] : line[i] + space);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    std::puts(text.c_str());
  }
  for (const auto& [topic, line] : notes_) {
    const auto ran = times_.lower_bound(topic + "/");
    if (ran != times_.end() && ran->first.starts_with(topic + "/")) std::puts(line.c_str());
  }
}

}  // namespace weir::bench
