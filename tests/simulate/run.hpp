#pragma once

// Runs a workload of the table under a policy of the table.

#include <algorithm>

#include "bench/simulate/comparison.hpp"

namespace weir::simulate {

inline const Workload& workload(std::string_view name) {
  return *std::ranges::find(workloads(), name, &Workload::name);
}
inline const PolicyChoice& policy(std::string_view name) {
  return *std::ranges::find(policies(), name, &PolicyChoice::name);
}

/// `least`: the budget, in least budgets.
inline RunResult run(const Workload& of, std::string_view policy_name, double least,
                     RunOptions options = {.batches = 1000}) {
  const Needs needs = needs_of(of, options.batches, options.seed);
  options.budget = {static_cast<std::uint64_t>(least * static_cast<double>(needs.one.count))};
  return simulate(of, policy(policy_name), options);
}
inline RunResult run(std::string_view of, std::string_view policy_name, double least,
                     const RunOptions& options = {.batches = 1000}) {
  return run(workload(of), policy_name, least, options);
}

}  // namespace weir::simulate
