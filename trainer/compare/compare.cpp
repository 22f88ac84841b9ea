#include "trainer/compare/compare.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "allocator/base/log.hpp"
#include "scheduler/device/device_kind.hpp"
#include "scheduler/tensor.hpp"
#include "tools/program/median.hpp"
#include "trainer/model/maths.hpp"
#include "trainer/plain/plain.hpp"

namespace weir {
namespace {

TrainSettings with_policy(TrainSettings settings, Policy policy) {
  settings.policy.policy = {policy, "compare"};
  return settings;
}

/// One line of the table: a policy, with or without static memory.
struct Variant {
  std::string name;
  Policy policy;
  StaticMemory memory = StaticMemory::kNone;

  [[nodiscard]] TrainSettings applied_to(TrainSettings settings) const {
    settings.memory = {memory, "compare"};
    return with_policy(std::move(settings), policy);
  }
};

/// In the order of the policies, static memory behind throttled.
std::vector<Variant> compared_variants(const CompareSettings& settings) {
  std::vector<Variant> variants;
  for (const Policy policy : settings.policies) {
    variants.push_back({.name = std::string(to_string(policy)), .policy = policy});
    if (policy != Policy::kThrottled || !settings.with_static) continue;
    variants.push_back({.name = "static-alloc", .policy = policy, .memory = StaticMemory::kAlloc});
    variants.push_back({.name = "static-shape", .policy = policy, .memory = StaticMemory::kShape});
  }
  return variants;
}

/// Returns nothing if there are no ratios.
std::optional<Ratio> ratio_of(const std::vector<double>& ratios) {
  if (ratios.empty()) return std::nullopt;
  return Ratio{median(ratios), *std::ranges::min_element(ratios),
               *std::ranges::max_element(ratios)};
}

/// Uses the experiment's own budget unless the environment has one.
void use_default_budget(TrainSettings& settings, Bytes budget) {
  settings.every_policy = true;
  if (settings.pool.budget.source != "default") return;
  settings.pool.budget = Setting<BudgetRequest>::by_default({.bytes = budget});
}

/// Returns what a matrix takes of the pool.
Bytes block(const TrainSettings& settings, std::size_t rows, std::size_t columns) {
  const Bytes bytes = Shape{rows, columns}.bytes();
  return settings.pool.block_size(bytes).value_or(bytes);
}

/// Returns what the model and one batch take of the pool: parameters, gradients and velocities,
/// each activation and its gradient, and the inputs. Ignores anything smaller than a row.
Bytes footprint(const TrainSettings& settings) {
  const std::uint64_t copies = settings.momentum.value > 0 ? 3 : 2;
  const std::size_t rows = settings.batch_size.value;
  Bytes sum = block(settings, rows, settings.widths.front());
  for (std::size_t l = 0; l + 1 < settings.widths.size(); ++l) {
    sum += block(settings, settings.widths[l], settings.widths[l + 1]) * copies;
    sum += block(settings, rows, settings.widths[l + 1]) * 2;
  }
  return sum;
}

/// Logs only errors during its lifetime: the search for the smallest budget would warn about every
/// small budget.
class OnlyErrors {
 public:
  OnlyErrors() : before_(log_level()) { set_log_level(LogLevel::kError); }
  ~OnlyErrors() { set_log_level(before_); }
  OnlyErrors(const OnlyErrors&) = delete;
  OnlyErrors& operator=(const OnlyErrors&) = delete;

 private:
  const LogLevel before_;
};

/// The runs of one policy and their figures.
struct Runs {
  std::vector<double> speeds;
  std::vector<double> idles;
  std::vector<double> hosts;
  std::vector<double> ratios;
  std::vector<double> to_plain;
  PolicyFigures figures;

  void add(TrainResult result) {
    speeds.push_back(result.batches_per_second());
    idles.push_back(result.idle_share);
    hosts.push_back(result.host_seconds);
    Statistics peaks = figures.last.pool;
    const Bytes staging = std::max(figures.last.staging, result.staging);
    figures.last = std::move(result);
    const auto keep = [](Gauge& now, const Gauge& before) {
      now.peak = std::max(now.peak, before.peak);
    };
    keep(figures.last.pool.reserved, peaks.reserved);
    keep(figures.last.pool.held, peaks.held);
    figures.last.staging = staging;
    ++figures.runs;
  }

  PolicyFigures finish() {
    figures.batches_per_second = median(speeds);
    figures.idle_share = median(idles);
    figures.host_seconds = median(hosts);
    const Ratio ratio = ratio_of(ratios).value_or(Ratio{});
    figures.ratio = ratio.median;
    figures.ratio_low = ratio.low;
    figures.ratio_high = ratio.high;
    figures.to_plain = ratio_of(to_plain);
    return std::move(figures);
  }
};

/// Compares bits, because NaN is unequal to itself.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Adds the ratio of speeds if both runs finished.
void add_ratio(std::vector<double>& ratios, const TrainResult& ours, const TrainResult& theirs) {
  if (ours.outcome != Outcome::kFinished || theirs.outcome != Outcome::kFinished) return;
  ratios.push_back(ours.batches_per_second() / theirs.batches_per_second());
}

/// Runs the experiment and keeps what its runs share.
class Experiment {
 public:
  Experiment(const CompareSettings& settings, const CompareHooks& hooks)
      : settings_(settings), hooks_(hooks) {}

  [[nodiscard]] bool stopped() const { return hooks_.stop.stop_requested(); }

  /// Returns the hooks of one run, with its label.
  [[nodiscard]] TrainHooks hooks_for(const std::string& label) const {
    TrainHooks hooks{.stop = hooks_.stop};
    if (hooks_.on_done) {
      hooks.on_done = [this, label](std::uint64_t done, std::uint64_t all) {
        hooks_.on_done(label, done, all);
      };
    }
    return hooks;
  }

  TrainResult run(const TrainSettings& settings, const std::string& label) {
    return checked(train(settings, hooks_for(label)));
  }

  /// Compares the weights with those of earlier runs and returns the result without them.
  TrainResult checked(TrainResult result) {
    if (result.outcome == Outcome::kFinished) {
      if (weights_.empty()) weights_ = result.weights;
      identical = identical && std::ranges::equal(weights_, result.weights, same_bits);
      result.weights.clear();  // a wide model has gigabytes, once per policy
      ++finished;
    }
    return result;
  }

  /// Runs the first variant, the reference and, if there is `plain`, a run without Weir. That one
  /// comes between the two, whose order alternates. The other variants follow the first.
  void round_of(Runs& reference, Runs* plain, std::span<std::pair<Variant, Runs>> variants,
                std::uint64_t round) {
    const std::string suffix =
        ", round " + std::to_string(round + 1) + " of " + std::to_string(settings_.rounds.value);
    const std::string label = variants.front().first.name + suffix;
    TrainResult theirs;
    TrainResult bare;
    const auto run_reference = [&] {
      theirs = run(reference_settings(settings_.train), "reference for " + label);
    };
    const auto run_plain = [&] {
      if (plain == nullptr) return;
      bare = checked(train_plain(settings_.train, hooks_for("without Weir for " + label)));
    };
    round % 2 == 0 ? run_reference() : run_plain();
    std::vector<TrainResult> ours;
    for (const auto& [variant, runs] : variants) {
      TrainSettings one = variant.applied_to(settings_.train);
      // Static memory shows the host's time. An arena beside what the first batch took would need
      // another budget than the policies.
      if (variant.memory != StaticMemory::kNone) {
        one.pool.budget = reference_settings(settings_.train).pool.budget;
      }
      ours.push_back(run(one, variant.name + suffix));
    }
    round % 2 == 0 ? run_plain() : run_reference();
    if (stopped()) return;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      Runs& runs = variants[i].second;
      add_ratio(runs.ratios, ours[i], theirs);
      if (plain != nullptr) add_ratio(runs.to_plain, ours[i], bare);
      runs.add(std::move(ours[i]));
    }
    if (plain != nullptr) {
      add_ratio(plain->ratios, bare, theirs);
      plain->add(std::move(bare));
    }
    reference.add(std::move(theirs));
  }

  bool identical = true;
  std::uint64_t finished = 0;

 private:
  const CompareSettings& settings_;
  const CompareHooks& hooks_;
  std::vector<std::vector<float>> weights_;
};

}  // namespace

TrainSettings reference_settings(TrainSettings settings) {
  // The cpu device has all of its memory to itself. A GPU also holds memory of its driver and other
  // programs, so its default is what is free.
  settings.pool.budget = PoolOptions{}.budget;
  if (kind_of(parse_device_id(settings.device.value)).on_host) {
    settings.pool.budget = {{.percent = 100}, "compare"};
  }
  return with_policy(std::move(settings), Policy::kUnbounded);
}

CompareSettings CompareSettings::d2l(TrainSettings base) {
  base.widths = {512, 2048, 512, 1};
  base.batch_size = Setting<std::uint64_t>::by_default(1024);
  base.batches = Setting<std::uint64_t>::by_default(20);
  // Parameters and gradients take 16 MiB and a batch 22: room for two, while unbounded needs
  // twenty.
  use_default_budget(base, mib(64));
  return {.train = std::move(base), .short_batches = 4, .step = kib(256)};
}

CompareSettings CompareSettings::small(TrainSettings base) {
  base.widths = {512, 256, 128, 1};
  base.batch_size = Setting<std::uint64_t>::by_default(32);
  base.batches = Setting<std::uint64_t>::by_default(2000);
  base.inputs = Setting<InputKind>::by_default(InputKind::kRing);
  base.ring = Setting<std::uint64_t>::by_default(64);
  use_default_budget(base, mib(4));
  return {.train = std::move(base),
          .rounds = Setting<std::uint64_t>::by_default(6),
          .short_batches = 100,
          .step = kib(16)};
}

std::vector<SettingLine> CompareSettings::lines() const {
  std::vector<SettingLine> lines = train.lines();
  lines.push_back(setting_line("rounds", std::to_string(rounds.value), rounds));
  lines.push_back({"no-search", search ? "0" : "1", search ? "default" : "--no-search"});
  lines.push_back({"static", with_static ? "1" : "0", with_static ? "--static" : "default"});
  return lines;
}

void CompareSettings::fit_to_model() {
  const Bytes before = footprint(train);
  train.widen();
  Setting<BudgetRequest>& budget = train.pool.budget;
  if (budget.source != "default" || budget.value.percent != 0) return;
  if (kind_of(parse_device_id(train.device.value)).on_host) {
    budget.value.bytes += footprint(train) - before;
    return;
  }
  // A GPU's own queue ends after some thousand operations, so that unbounded is at most some thirty
  // batches ahead.
  constexpr std::uint64_t kMoreBatches = 2;
  constexpr Bytes kLeast = mib(1);  // of each, for what is smaller than a row
  const Bytes inputs = block(train, train.batch_size.value, train.widths.front());
  budget.value.bytes =
      footprint(train) + workspace_of(train.device.value) + std::max(inputs, kLeast) * kMoreBatches;
}

std::optional<Bytes> smallest_budget(const TrainSettings& settings, Policy policy,
                                     std::uint64_t batches, Bytes step, const TrainHooks& hooks) {
  const auto finishes = [&](std::uint64_t steps) {
    TrainSettings tried = with_policy(settings, policy);
    tried.batches.value = batches;
    tried.pool.budget = {{.bytes = step * steps}, "compare"};
    return train(tried, hooks).outcome == Outcome::kFinished;
  };
  const OnlyErrors quiet;
  const Bytes start = resolve_budget(settings.pool.budget.value, settings.total_memory(), "budget");
  std::uint64_t enough = start.count / step.count;
  std::uint64_t too_little = 0;
  if (enough == 0 || !finishes(enough)) return std::nullopt;
  while (enough - too_little > 1) {
    const std::uint64_t middle = too_little + (enough - too_little) / 2;
    const bool finished = finishes(middle);
    if (hooks.stop.stop_requested()) return std::nullopt;  // an interrupted run has no result
    (finished ? enough : too_little) = middle;
  }
  return step * enough;
}

Comparison compare(const CompareSettings& settings, const CompareHooks& hooks) {
  Experiment experiment(settings, hooks);
  Runs reference;
  reference.figures.name = "reference";
  Comparison comparison;
  comparison.why_no_plain = why_no_plain_run(settings.train);
  Runs plain;
  plain.figures.name = "plain";
  std::vector<std::pair<Variant, Runs>> policies;
  for (Variant& variant : compared_variants(settings)) {
    const std::string name = variant.name;
    policies.emplace_back(std::move(variant), Runs{}).second.figures.name = name;
  }
  // Unbounded runs out of memory, each time the same way, so once is enough. It also warms up the
  // machine.
  policies.front().second.add(
      experiment.run(with_policy(settings.train, Policy::kUnbounded), "unbounded"));
  for (std::uint64_t round = 0; round < settings.rounds.value && !experiment.stopped(); ++round) {
    // One round for each policy: variants of the same policy share its reference.
    const std::span all(policies);
    for (std::size_t i = 1; i < all.size() && !experiment.stopped();) {
      std::size_t end = i + 1;
      while (end < all.size() && all[end].first.policy == all[i].first.policy) ++end;
      const bool beside_plain =
          all[i].first.policy == Policy::kThrottled && comparison.why_no_plain.empty();
      experiment.round_of(reference, beside_plain ? &plain : nullptr, all.subspan(i, end - i),
                          round);
      i = end;
    }
  }
  if (comparison.why_no_plain.empty()) comparison.plain = plain.finish();
  comparison.reference = reference.finish();
  if (comparison.reference.runs != 0 && comparison.reference.last.outcome == Outcome::kFinished) {
    comparison.reference.smallest_budget = comparison.reference.last.pool.reserved.peak;
  }
  for (auto& [variant, runs] : policies) {
    PolicyFigures figures = runs.finish();
    if (variant.policy == Policy::kUnbounded) {
      figures.smallest_budget = comparison.reference.smallest_budget;
      figures.searched = comparison.reference.runs != 0;
    } else if (settings.search && !experiment.stopped()) {
      figures.smallest_budget = smallest_budget(
          variant.applied_to(settings.train), variant.policy, settings.short_batches, settings.step,
          experiment.hooks_for("smallest budget of " + figures.name));
      figures.searched = !experiment.stopped();
    }
    comparison.policies.push_back(std::move(figures));
  }
  comparison.identical = experiment.identical;
  comparison.finished_runs = experiment.finished;
  comparison.interrupted = experiment.stopped();
  return comparison;
}

Outcome outcome_of(const Comparison& comparison) {
  if (comparison.interrupted) return Outcome::kInterrupted;
  const bool all_ran_out = std::ranges::all_of(
      comparison.policies,
      [](const PolicyFigures& figures) { return figures.last.outcome == Outcome::kOutOfMemory; });
  return all_ran_out ? Outcome::kOutOfMemory : Outcome::kFinished;
}

bool diverged(const Comparison& comparison) {
  return diverged(comparison.reference.last) ||
         std::ranges::any_of(comparison.policies,
                             [](const PolicyFigures& figures) { return diverged(figures.last); });
}

}  // namespace weir
