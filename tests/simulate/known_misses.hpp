#pragma once

// What `throttled` is known to miss in the simulation, with seeds 1 and 3. A list to shorten: an
// entry that is missed by more, or that no seed misses any more, fails the test.

#include <string_view>
#include <vector>

namespace weir::simulate {

/// A bound of missed_bounds, or a policy that is better, on one row.
struct Known {
  std::string_view workload;
  std::string_view budget;
  std::string_view what;  ///< Miss::what or Better::policy
  double most = 0;     ///< it misses the bound by no more; or the other's throughput over its own
  double memory = 0;   ///< the other's over its own, at least
  bool found = false;  ///< by the test
};

inline std::vector<Known> known_misses() {
  return {
      // Only with seed 3. Once in 2,000 delays the host is late by half a millisecond, which is
      // five
      // batches, and with this seed far more often. No constant limit from 2 to 4 batches reaches
      // 0.995 of unbounded then, and the margin learns to queue more.
      {"steady-0.1ms", "1.5", "of unbounded", 0.0041},
      {"steady-0.1ms", "2", "of unbounded", 0.0037},
      {"steady-0.1ms", "2", "memory, of two batches'", 0.351},
      {"steady-0.1ms", "4", "of unbounded", 0.0037},
      {"steady-0.1ms", "4", "memory, of two batches'", 1.951},
      {"steady-0.1ms", "16", "of unbounded", 0.0037},
      {"steady-0.1ms", "16", "memory, of two batches'", 3.151},
      {"steady-0.1ms", "devices", "of unbounded", 0.0037},
      {"steady-0.1ms", "devices", "memory, of two batches'", 3.151},
  };
}

}  // namespace weir::simulate
