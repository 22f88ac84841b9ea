#include "table.hpp"

#include <algorithm>
#include <array>
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

/// Three significant digits.
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

std::string value(const Row& row, double ns) {
  return row.rate.empty() ? time(ns) : digits(1e9 / ns) + " " + row.rate;
}

/// What a row is held against, without repeating the figure's own name: `jemalloc`.
std::string against_of(const Row& row) {
  const std::string own = row.figure + "/";
  return row.against.starts_with(own) ? row.against.substr(own.size()) : row.against;
}

/// The targets in words and whether all of them are met; two empty texts without one.
std::array<std::string, 2> verdict(const Row& row, double ns, double ratio) {
  std::string targets;
  bool met = true;
  if (row.most_ns > 0) {
    targets = "<= " + time(row.most_ns);
    met = ns <= row.most_ns;
  }
  if (row.most_ratio > 0) {
    targets += (targets.empty() ? "<= " : ", <= ") + digits(row.most_ratio) + "x";
    met = met && ratio <= row.most_ratio;
  }
  return {targets, targets.empty() ? "" : met ? "met" : "MISSED"};
}

}  // namespace

void Table::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration || run.iterations == 0) continue;
    // In the benchmark's own unit, which is ns unless it asked for another.
    times_[run.run_name.function_name].push_back(run.GetAdjustedRealTime());
  }
}

void Table::print(const Row& row, std::size_t figure_width, std::size_t against_width) {
  const Spread own = spread_of(times_.at(row.figure));
  const auto other = times_.find(row.against);
  double ratio = 0;
  std::string peer;
  std::string times;
  if (other != times_.end()) {
    const double median = spread_of(other->second).median;
    ratio = own.median / median;
    peer = value(row, median);
    times = digits(ratio) + "x";
  }
  const auto [targets, met] = verdict(row, own.median, ratio);
  const std::string spread = row.rate.empty()
                                 ? time(own.least) + " - " + time(own.most)
                                 : digits(1e9 / own.most) + " - " + digits(1e9 / own.least);
  std::printf("%-*s  %14s  %19s  %-*s  %14s  %6s  %-18s  %s\n", static_cast<int>(figure_width),
              row.figure.c_str(), value(row, own.median).c_str(), spread.c_str(),
              static_cast<int>(against_width), other != times_.end() ? against_of(row).c_str() : "",
              peer.c_str(), times.c_str(), targets.c_str(), met.c_str());
}

void Table::Finalize() {
  std::size_t figure_width = 6;
  std::size_t against_width = 7;
  for (const Row& row : rows_) {
    if (times_.count(row.figure) == 0) continue;
    figure_width = std::max(figure_width, row.figure.size());
    if (times_.count(row.against) != 0)
      against_width = std::max(against_width, against_of(row).size());
  }
  std::printf("%-*s  %14s  %19s  %-*s  %14s  %6s  %-18s\n", static_cast<int>(figure_width),
              "figure", "median", "spread", static_cast<int>(against_width), "against",
              "its median", "ratio", "target");
  for (const Row& row : rows_) {
    if (times_.count(row.figure) != 0) print(row, figure_width, against_width);
  }
}

}  // namespace weir::bench
