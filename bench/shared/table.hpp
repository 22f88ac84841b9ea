#pragma once

// The short table of benchmarks: the median of the repetitions, their spread, and the comparison
// with a peer of the same run and with a target. Every topic adds its benchmarks and rows.

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir::bench {

/// One row. Times are wall time; with several threads, the run's time over the operations of all
/// threads.
struct Row {
  std::string figure{};     ///< registered name of the benchmark
  std::string against{};    ///< another benchmark of the same run; empty: none
  double most_ns = 0;       ///< target: at most this time, or this much of the counter; 0: none
  double most_ratio = 0;    ///< target: at most this many times the other's time; 0: none
  double most_more_ns = 0;  ///< target: at most this much more than the other; 0: none
  bool shows_more = false;  ///< says how much more than the other, without a target for it
  std::string counter{};    ///< shows this counter of the benchmark instead of its time
};

/// Collects Google Benchmark's measurements and prints the rows whose benchmarks ran.
class Table final : public benchmark::BenchmarkReporter {
 public:
  /// Prints all columns, and cuts nothing to fit 100 columns.
  void show_wide() { wide_ = true; }
  void add(Row row) { rows_.push_back(std::move(row)); }
  /// Registers `run` as the benchmark of the row, and adds the row.
  template <typename Run>
  benchmark::internal::Benchmark* add(const Row& row, const Run& run) {
    add(row);
    return benchmark::RegisterBenchmark(row.figure.c_str(), run);
  }
  /// Adds a line under the table if a benchmark of `topic` ran.
  void note(std::string topic, std::string line) {
    notes_.emplace_back(std::move(topic), std::move(line));
  }

  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  struct Line;
  [[nodiscard]] std::vector<Line> lines() const;

  bool wide_ = false;
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, std::string>> notes_;  ///< topic and line
  std::map<std::string, std::vector<double>> times_;  ///< ns of each repetition, and "NAME COUNTER"
};

// The topics. Each is in the file of its name, such as `pool_bench.cpp`, and its benchmarks' names
// begin with its name.
void add_admission(Table& table);
void add_checkpoint(Table& table);
void add_handover(Table& table);
void add_index(Table& table);
void add_log(Table& table);
void add_optimizer(Table& table);
void add_peers(Table& table);
void add_pool(Table& table);
void add_staging(Table& table);
void add_submit(Table& table);
void add_swap_in(Table& table);
void add_timeline(Table& table);

}  // namespace weir::bench
