// Updates of weights on one thread, beside a triad that moves as many bytes: a[i] = b[i] + s c[i].
// They take turns, and each update is compared with the triad right after it: memory that other
// programs use too is not equally fast for long.
//
// An update reads the weight, its two moments and the gradient, and writes the first three: 28
// bytes a weight. Summed up on the way, the gradient of rows takes next to nothing: 24 bytes. A
// triad's element is 16 bytes, since memory is read before it is written; 12 are named by the
// formula alone. All arrays are far larger than the caches.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/shared/table.hpp"
#include "kernels/optimizer/update.hpp"
#include "tools/program/median.hpp"

namespace weir::bench {
namespace {

/// The weights of a layer that has 16 entries in each of 128 rows: 8 Mi, 96 MiB with their moments.
constexpr DenseShape kLayer{.m = 128, .k = 8192, .n = 1024};
constexpr std::size_t kWeights = kLayer.k * kLayer.n;
constexpr std::size_t kEntriesOfRow = 16;

constexpr double kUpdateBytes = 28;
constexpr double kRowsBytes = 24;
constexpr double kTriadBytes = 16;
/// The share of a triad's bandwidth that an update must reach.
constexpr double kLeastShare = 0.8;
constexpr const char* kTriads = "triads";

/// Weights with all that an update takes.
class UpdateRig {
 public:
  explicit UpdateRig(Optimizer optimizer) : options_{.optimizer = optimizer} {
    StepState state;
    for (int t = 0; t < 10; ++t) state = begun(state, options_.beta1, options_.beta2);
    store_step_state(state, state_);
    // Column by column, each in one row: as many columns are touched as there are entries.
    for (std::uint32_t entry = 0; entry < kLayer.m * kEntriesOfRow; ++entry) {
      touched_.push_back(entry * 4);
      starts_.push_back(entry + 1);
      rows_.push_back(entry % kLayer.m);
    }
    values_.assign(rows_.size(), 0.5F);
  }
  void update_all() { update(options_, weights(), g_, state_); }
  void update_layer() {
    const CsrColumns x{touched_, starts_, rows_, values_};
    update_rows(options_, weights(), kLayer, x, std::span(g_).first(kLayer.m * kLayer.n), state_,
                UpdatedRows::kAll);
  }

 private:
  Weights weights() { return {.w = w_, .first = first_, .second = second_, .copy = {}}; }

  OptimizerOptions options_;
  std::vector<float> state_ = std::vector<float>(kStepStateWords);
  std::vector<float> w_ = std::vector<float>(kWeights, 0.5F);
  std::vector<float> first_ = std::vector<float>(kWeights, 0.01F);
  std::vector<float> second_ = std::vector<float>(kWeights, 0.01F);
  std::vector<float> g_ = std::vector<float>(kWeights, 0.02F);
  std::vector<std::uint32_t> touched_{};
  std::vector<std::uint32_t> starts_{0};
  std::vector<std::uint32_t> rows_{};
  std::vector<float> values_{};
};

/// Moves as many bytes as an update.
class Triad {
 public:
  explicit Triad(double bytes) : a_(static_cast<std::size_t>(bytes / kTriadBytes)) {}
  void run() {
    for (std::size_t i = 0; i < a_.size(); ++i) a_[i] = b_[i] + 0.5F * c_[i];
    benchmark::DoNotOptimize(a_.data());
    benchmark::ClobberMemory();
  }

 private:
  std::vector<float> a_;
  std::vector<float> b_ = std::vector<float>(a_.size(), 1.0F);
  std::vector<float> c_ = std::vector<float>(a_.size(), 2.0F);
};

template <typename Work>
double seconds_of(const Work& work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

/// Registers an update of all weights, with the time as its figure and, as a counter, the median of
/// the pairs' ratios.
void add_update(Table& table, const std::string& what, Optimizer optimizer, double bytes_of_weight,
                void (UpdateRig::*step)()) {
  const std::string name = "optimizer/" + what;
  const double bytes = bytes_of_weight * static_cast<double>(kWeights);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    UpdateRig rig(optimizer);
    Triad triad(bytes);
    triad.run();  // its pages are there, as the rig's are
    std::vector<double> ratios;
    for ([[maybe_unused]] auto _ : state) {
      const double time = seconds_of([&] { (rig.*step)(); });
      ratios.push_back(time / seconds_of([&] { triad.run(); }));
      state.SetIterationTime(time);
    }
    state.counters[kTriads] = median(ratios);
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  })->UseManualTime();
  table.add({.figure = name});
  table.add({.figure = name, .most_ns = 1 / kLeastShare, .counter = kTriads});
}

void add_updates_of(Table& table, const std::string& what, Optimizer optimizer) {
  add_update(table, what, optimizer, kUpdateBytes, &UpdateRig::update_all);
  add_update(table, what + "_rows", optimizer, kRowsBytes, &UpdateRig::update_layer);
}

}  // namespace

void add_optimizer(Table& table) {
  add_updates_of(table, "adam", Optimizer::kAdam);
  add_updates_of(table, "adamax", Optimizer::kAdamax);
}

}  // namespace weir::bench
