#pragma once

// The main experiment: one training job under each policy at a budget that unbounded run-ahead
// cannot live in, against the same job unbounded with enough memory.

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/run/settings.hpp"
#include "trainer/run/train.hpp"

namespace weir {

struct CompareSettings {
  TrainSettings train;  ///< policy is set per run; budget is the tight one
  Setting<std::uint64_t> rounds = Setting<std::uint64_t>::by_default(4);  ///< pairs to run
  std::uint64_t short_batches = 4;  ///< of a run that only asks whether a budget is enough
  Bytes step{};                     ///< how finely budgets are searched
  bool search = true;               ///< for each policy's smallest budget

  /// Widens the model by its factor, and a default budget by what that takes, and by the workspace
  /// that the device's maths needs: to be called once. What is left for run-ahead stays.
  void fit_to_model();

  /// The d2l experiment at its own size: 512 → 2048 → 512 → 1, batches of 1024 made on the way.
  [[nodiscard]] static CompareSettings d2l(TrainSettings base);
  /// 512 → 256 → 128 → 1, batches of 32 made beforehand: dispatch and waiting are a visible share.
  [[nodiscard]] static CompareSettings small(TrainSettings base);
};

/// Ratios of runs that were made side by side.
struct Ratio {
  double median = 0;
  double low = 0;   ///< the smallest
  double high = 0;  ///< the largest
};

/// One line of the table: the median over the rounds.
struct PolicyFigures {
  std::string name;
  std::uint64_t runs = 0;
  double batches_per_second = 0;
  double ratio = 0;      ///< to the reference run of the same pair, median
  double ratio_low = 0;  ///< smallest and largest of those ratios: the spread
  double ratio_high = 0;
  std::optional<Ratio> to_plain{};  ///< of throttled, to the plain run of the same round
  double idle_share = 0;
  double host_seconds = 0;  ///< of a batch, as in TrainResult
  TrainResult last;         ///< peaks, stalls and outcome; the largest peaks of all runs
  std::optional<Bytes> smallest_budget;
  bool searched = false;  ///< the search for it came to its end
};

struct Comparison {
  PolicyFigures reference;
  /// The training loop without Weir (plain.hpp), in the rounds of throttled. Of it the pool's peak
  /// is what it took of the device, and the idle share is not known.
  std::optional<PolicyFigures> plain;
  std::string why_no_plain;             ///< when there is none
  std::vector<PolicyFigures> policies;  ///< unbounded, backstop, throttled, barrier
  bool identical = true;                ///< weights of every run that finished
  std::uint64_t finished_runs = 0;
  bool interrupted = false;
};

struct CompareHooks {
  std::stop_token stop{};
  std::function<void(const std::string& label, std::uint64_t done, std::uint64_t all)> progress{};
};

[[nodiscard]] Comparison compare(const CompareSettings& settings, const CompareHooks& hooks = {});

/// Out of memory when every policy ran out; interrupted when it was; finished otherwise.
[[nodiscard]] Outcome outcome_of(const Comparison& comparison);

/// Whether training diverged. All runs compute the same, so the runs that are kept tell it.
[[nodiscard]] bool diverged(const Comparison& comparison);

/// The smallest budget, a multiple of `step`, at which `policy` finishes `batches` batches: above
/// it runs finish, below it they fail with the report. Nothing if the settings' budget is not
/// enough, or when stopped. `hooks` are those of each run.
[[nodiscard]] std::optional<Bytes> smallest_budget(const TrainSettings& settings, Policy policy,
                                                   std::uint64_t batches, Bytes step,
                                                   const TrainHooks& hooks = {});

}  // namespace weir
