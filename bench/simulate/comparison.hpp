#pragma once

// Runs workloads under policies and budgets, each beside its references.

#include <functional>
#include <string>
#include <vector>

#include "bench/simulate/bounds.hpp"
#include "bench/simulate/simulation.hpp"

namespace weir::simulate {

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
