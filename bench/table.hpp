#pragma once

// The benchmarks' short table: the median of the repetitions, their spread, and how it stands to a
// peer of the same run and to a target. Every topic adds its benchmarks and its rows.

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir::bench {

/// One line of the table. Times are wall time; with several threads, that of the run over the
/// operations of all threads.
struct Row {
  std::string figure{};     ///< the benchmark, by the name that it was registered under
  std::string against{};    ///< another benchmark of the same run; empty: none
  double most_ns = 0;       ///< target: at most this time; 0: none
  double most_ratio = 0;    ///< target: at most this many times the other's time; 0: none
  double most_more_ns = 0;  ///< target: at most this much more than the other; 0: none
  bool shows_more = false;  ///< says how much more than the other, without a target for it
  std::string rate{};       ///< shown as so many of these per second instead of as a time
};

/// Collects what Google Benchmark measures and prints the rows whose benchmarks ran.
class Table final : public benchmark::BenchmarkReporter {
 public:
  void add(Row row) { rows_.push_back(std::move(row)); }
  /// A line under the table when a benchmark of `topic` ran.
  void note(std::string topic, std::string line) {
    notes_.emplace_back(std::move(topic), std::move(line));
  }

  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  [[nodiscard]] std::vector<std::string> cells(const Row& row) const;

  std::vector<Row> rows_;
  std::vector<std::pair<std::string, std::string>> notes_;  ///< topic and line
  std::map<std::string, std::vector<double>> times_;        ///< ns of each repetition
};

// The topics. Each is measured by the file of its name, `pool_bench.cpp` and so on, and the names
// of its benchmarks begin with its own.
void add_admission(Table& table);
void add_handover(Table& table);
void add_index(Table& table);
void add_log(Table& table);
void add_peers(Table& table);
void add_policy(Table& table);
void add_pool(Table& table);
void add_submit(Table& table);
void add_swap_in(Table& table);
void add_timeline(Table& table);

}  // namespace weir::bench
