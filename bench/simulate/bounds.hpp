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

}  // namespace weir::simulate
