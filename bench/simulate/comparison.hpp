#pragma once

// Runs workloads under policies and budgets, each beside its references, and says what weir's own
// policy misses of its bounds.

#include <functional>
#include <string>
#include <vector>

#include "bench/simulate/simulation.hpp"

namespace weir::simulate {

/// The runs that a run is compared with, and what its workload needs.
struct Reference {
  const Workload& workload;
  Needs needs;
  Bytes budget;
  const RunResult& unbounded;  ///< memory without a limit
  const RunResult& backstop;   ///< in the same budget
  /// The same, with or without handing memory over, whichever is faster.
  const RunResult& filling;
};

/// A policy's run, to compare with.
struct Named {
  std::string_view policy;
  const RunResult& run;
};

/// A bound that a run misses.
struct Miss {
  std::string what;
  double is = 0;
  double bound = 0;
  bool is_least = false;  ///< `is` has to be at least the bound, else at most

  [[nodiscard]] double by() const { return is_least ? bound - is : is - bound; }
  [[nodiscard]] std::string text() const;
};

/// A policy that is better than `throttled`.
struct Better {
  std::string_view policy;
  double throughput = 1;  ///< its own, over that of `throttled`
  double memory = 1;

  [[nodiscard]] std::string text() const;
};

/// Returns each bound that the run of `throttled` misses; empty: it keeps all.
[[nodiscard]] std::vector<Miss> missed_bounds(const RunResult& throttled,
                                              const Reference& reference);
/// Returns each policy that is better by more than 1% in throughput and by more than 10% in memory
/// at once.
[[nodiscard]] std::vector<Better> better_policies(const RunResult& throttled,
                                                  const std::vector<Named>& others);

/// A budget: so many times the least one of each workload, or bytes.
struct BudgetChoice {
  std::string name;
  double least = 0;
  Bytes bytes{};
};

/// Parses a number of least budgets such as `1.5`, a size such as `24GiB`, `device` (141 GB) or
/// `devices` (8 × 141 GB). Throws UsageError.
[[nodiscard]] BudgetChoice parse_budget(const std::string& text);

/// Returns the budget for a workload with these needs.
[[nodiscard]] Bytes bytes_of(const BudgetChoice& budget, const Needs& needs) noexcept;

struct ComparisonOptions {
  std::vector<const Workload*> workloads;
  std::vector<const PolicyChoice*> policies;
  std::vector<BudgetChoice> budgets;
  RunOptions run;
};

/// One run and what it is compared with.
struct Outcome {
  const Workload* workload = nullptr;
  const PolicyChoice* policy = nullptr;
  std::string budget;
  Bytes budget_bytes{};
  Needs needs{};
  RunResult run{};
  double of_unbounded = 0;
  double of_filling = 0;
  /// Bounds that it misses, and policies that are better; only of `throttled`.
  std::vector<Miss> missed{};
  std::vector<Better> better{};
};

/// Calls `done` for each workload, budget and policy, in this order. Budgets below a workload's
/// least are left out.
void compare(const ComparisonOptions& options, const std::function<void(Outcome&&)>& done);

}  // namespace weir::simulate
