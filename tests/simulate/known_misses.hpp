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
      // Once in 2,000 batches the host is late by half a millisecond, which is five of them. The
      // margin learns that, and a longer queue holds more memory. With seed 3 no constant limit
      // from 2 to 4 batches reaches 0.995 of unbounded either.
      {"steady-0.1ms", "1.5", "of unbounded", 0.004},
      {"steady-0.1ms", "2", "of unbounded", 0.004},
      {"steady-0.1ms", "2", "memory, of two batches'", 0.351},
      {"steady-0.1ms", "4", "of unbounded", 0.004},
      {"steady-0.1ms", "4", "memory, of two batches'", 1.951},
      {"steady-0.1ms", "16", "of unbounded", 0.004},
      {"steady-0.1ms", "16", "memory, of two batches'", 3.151},
      {"steady-0.1ms", "devices", "of unbounded", 0.004},
      {"steady-0.1ms", "devices", "memory, of two batches'", 3.151},
      // As fast as filling the budget. Part of what the large batches drain is counted as ours.
      {"too-large-0.9", "1.5", "throttle-caused idle", 0.01},
      {"too-large-0.9", "2", "throttle-caused idle", 0.01},
      // Turns by bytes: while the large batch has the whole budget, the small ones wait their turn.
      {"producers-1:10", "1", "of filling", 0.049},
      {"producers-1:10", "1", "behind backstop by", 0.054},
  };
}

}  // namespace weir::simulate
