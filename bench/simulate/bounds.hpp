#pragma once

// What weir's own policy has to reach in the simulation, as a pure function of runs.

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
  const RunResult& filling;    ///< backstop in the same budget
};

/// A policy's run, to compare with.
struct Named {
  std::string_view policy;
  const RunResult& run;
};

/// Returns in words each bound that the run of `throttled` misses; empty: it keeps all.
[[nodiscard]] std::vector<std::string> missed_bounds(const RunResult& throttled,
                                                     const Reference& reference);
/// Returns in words which other policy is better by more than 1% in throughput and by more than 10%
/// in memory at once.
[[nodiscard]] std::vector<std::string> better_policies(const RunResult& throttled,
                                                       const std::vector<Named>& others);

}  // namespace weir::simulate
