#include "bench/simulate/comparison.hpp"

#include <algorithm>
#include <optional>

#include "allocator/base/setting.hpp"

namespace weir::simulate {
namespace {

constexpr Bytes kDevice{141'000'000'000};

const PolicyChoice& policy_named(std::string_view name) {
  return *std::ranges::find(policies(), name, &PolicyChoice::name);
}

/// Runs every policy of one workload and budget, and keeps the runs: some are each other's
/// references.
class Cell {
 public:
  Cell(const Workload& workload, const RunOptions& options)
      : workload_(workload), options_(options) {}

  [[nodiscard]] const RunResult& of(const PolicyChoice& policy) {
    const auto found =
        std::ranges::find(runs_, &policy, &std::pair<const PolicyChoice*, RunResult>::first);
    if (found != runs_.end()) return found->second;
    return runs_.emplace_back(&policy, simulate(workload_, policy, options_)).second;
  }
  /// Returns the fastest run that fills the budget: `backstop`, whether or not it hands memory
  /// over. A copy into such memory waits for the computes that use it, and then no copy overlaps.
  [[nodiscard]] RunResult filling() {
    const PolicyChoice& backstop = policy_named("backstop");
    RunOptions waiting = options_;
    waiting.hand_over = HandOver::kNever;
    RunResult waited = simulate(workload_, backstop, waiting);
    const RunResult& handed = of(backstop);
    if (handed.throughput() >= waited.throughput()) return handed;
    return waited;
  }
  void set(const PolicyChoice& policy, const RunResult& run) { runs_.emplace_back(&policy, run); }
  /// Returns the runs of policies that are not weir's and have the budget.
  [[nodiscard]] std::vector<Named> others() const {
    std::vector<Named> named;
    for (const auto& [policy, run] : runs_) {
      const bool is_other = policy->rule != PolicyChoice::Rule::kWeir && policy->has_budget;
      if (is_other) named.push_back({policy->name, run});
    }
    return named;
  }
  /// References stay where they are.
  void reserve(std::size_t count) { runs_.reserve(count); }

 private:
  const Workload& workload_;
  const RunOptions& options_;
  std::vector<std::pair<const PolicyChoice*, RunResult>> runs_;
};

void compare_cell(const ComparisonOptions& options, const Outcome& common, Cell& cell,
                  const std::function<void(Outcome&&)>& done) {
  const PolicyChoice& throttled = policies().front();
  const RunResult& unbounded = cell.of(policy_named("unbounded"));
  const RunResult& backstop = cell.of(policy_named("backstop"));
  const RunResult filling = cell.filling();
  for (const PolicyChoice* policy : options.policies) (void)cell.of(*policy);
  for (const PolicyChoice* policy : options.policies) {
    Outcome outcome = common;
    outcome.policy = policy;
    outcome.run = cell.of(*policy);
    outcome.of_unbounded = outcome.run.throughput() / unbounded.throughput();
    outcome.of_filling = outcome.run.throughput() / filling.throughput();
    if (policy == &throttled) {
      outcome.missed = missed_bounds(outcome.run, {.workload = *common.workload,
                                                   .needs = common.needs,
                                                   .budget = common.budget_bytes,
                                                   .unbounded = unbounded,
                                                   .backstop = backstop,
                                                   .filling = filling});
      outcome.better = better_policies(outcome.run, cell.others());
    }
    done(std::move(outcome));
  }
}

}  // namespace

BudgetChoice parse_budget(const std::string& text) {
  if (text == "device") return {.name = text, .bytes = kDevice};
  if (text == "devices") return {.name = text, .bytes = kDevice * 8};
  if (const auto least = parse_decimal(text); least && *least >= 1 && *least <= 1e6) {
    return {.name = text, .least = *least};
  }
  if (const auto bytes = parse_bytes(text); bytes && *bytes > Bytes{}) {
    return {.name = text, .bytes = *bytes};
  }
  refuse("--budget", text,
         "a number of least budgets from 1 to 1000000, a size such as 24GiB, device or devices");
}

Bytes bytes_of(const BudgetChoice& budget, const Needs& needs) noexcept {
  if (budget.least == 0) return budget.bytes;
  return {static_cast<std::uint64_t>(budget.least * static_cast<double>(needs.one.count))};
}

void compare(const ComparisonOptions& options, const std::function<void(Outcome&&)>& done) {
  for (const Workload* workload : options.workloads) {
    const Needs needs = needs_of(*workload, options.run.batches, options.run.seed);
    std::optional<RunResult> unbounded;
    for (const BudgetChoice& budget : options.budgets) {
      RunOptions run = options.run;
      run.budget = bytes_of(budget, needs);
      if (run.budget < needs.one) continue;
      Cell cell(*workload, run);
      cell.reserve(policies().size());
      // Only batches that are too large for the budget depend on it.
      if (unbounded && workload->too_large == 0) cell.set(policy_named("unbounded"), *unbounded);
      unbounded = cell.of(policy_named("unbounded"));
      compare_cell(
          options,
          {.workload = workload, .budget = budget.name, .budget_bytes = run.budget, .needs = needs},
          cell, done);
    }
  }
}

}  // namespace weir::simulate
