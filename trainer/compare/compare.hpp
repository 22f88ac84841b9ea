#pragma once

// The main experiment: one training job under each policy, at a budget too small for unbounded
// run-ahead, compared with the same job unbounded and with enough memory.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/run/settings.hpp"
#include "trainer/run/train.hpp"

namespace weir {

/// In the order of the comparison's table.
inline constexpr std::array kComparedPolicies{Policy::kUnbounded, Policy::kBackstop,
                                              Policy::kThrottled, Policy::kBarrier};

struct CompareSettings {
  TrainSettings train;  ///< policy is set per run; budget is the small one
  Setting<std::uint64_t> rounds = Setting<std::uint64_t>::by_default(4);  ///< pairs to run
  /// Those to compare, in the order of kComparedPolicies; unbounded is the first.
  std::vector<Policy> policies{kComparedPolicies.begin(), kComparedPolicies.end()};
  std::uint64_t short_batches = 4;  ///< of a run that only tests a budget
  Bytes step{};                     ///< resolution of the search for budgets
  bool search = true;               ///< searches each policy's smallest budget
  bool with_static = false;         ///< runs throttled with static memory too, both kinds

  /// Widens the model by its factor, and a default budget by what the wider model and the maths'
  /// workspace need. Call once. The room for run-ahead stays.
  void fit_to_model();

  /// The d2l experiment at its own size: 512 → 2048 → 512 → 1, batches of 1024 generated during the
  /// run.
  [[nodiscard]] static CompareSettings d2l(TrainSettings base);
  /// 512 → 256 → 128 → 1, batches of 32 generated beforehand: dispatch and waiting are a visible
  /// share.
  [[nodiscard]] static CompareSettings small(TrainSettings base);

  /// Returns all settings in force.
  [[nodiscard]] std::vector<SettingLine> lines() const;
};

/// Ratios of paired runs.
struct Ratio {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// One line of the table: medians over the rounds.
struct PolicyFigures {
  std::string name;
  std::uint64_t runs = 0;
  double batches_per_second = 0;
  double ratio = 0;      ///< to the reference run of the same pair; median
  double ratio_low = 0;  ///< smallest and largest of those ratios
  double ratio_high = 0;
  std::optional<Ratio> to_plain{};  ///< of throttled, to the plain run of the same round
  double idle_share = 0;
  double host_seconds = 0;  ///< per batch, as in TrainResult
  TrainResult last;         ///< peaks, stalls and outcome; peaks are the largest of all runs
  std::optional<Bytes> smallest_budget;
  bool searched = false;  ///< its search finished
};

struct Comparison {
  PolicyFigures reference;
  /// The training loop without Weir (plain.hpp), in each round of throttled. Its pool peak is the
  /// device memory that it took; its idle share is unknown.
  std::optional<PolicyFigures> plain;
  std::string why_no_plain;  ///< if there is none
  /// Those of the settings; behind throttled, if asked for, that with static
  /// memory: static-alloc, static-shape
  std::vector<PolicyFigures> policies;
  bool identical = true;  ///< weights of all finished runs are equal
  std::uint64_t finished_runs = 0;
  bool interrupted = false;
};

struct CompareHooks {
  std::stop_token stop{};
  std::function<void(const std::string& label, std::uint64_t done, std::uint64_t all)> on_done{};
};

/// Returns the settings of the reference: unbounded, with all of the device's memory.
[[nodiscard]] TrainSettings reference_settings(TrainSettings settings);

[[nodiscard]] Comparison compare(const CompareSettings& settings, const CompareHooks& hooks = {});

/// Out of memory if every policy ran out; interrupted if it was; otherwise finished.
[[nodiscard]] Outcome outcome_of(const Comparison& comparison);

/// Whether training diverged. All runs compute the same, so the kept runs suffice.
[[nodiscard]] bool diverged(const Comparison& comparison);

/// Returns the smallest budget, a multiple of `step`, at which `policy` finishes `batches` batches:
/// runs finish above it and fail with the report below it. Returns nothing if the settings' budget
/// is too small, or when stopped. Each run gets `hooks`.
[[nodiscard]] std::optional<Bytes> smallest_budget(const TrainSettings& settings, Policy policy,
                                                   std::uint64_t batches, Bytes step,
                                                   const TrainHooks& hooks = {});

}  // namespace weir
