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
      // margin learns that. In a tight budget the queue then fills it, and copies into memory that
      // was handed over no longer overlap. `--hand-over last` keeps 0.989 of unbounded there.
      {"steady-0.1ms", "1.5", "of unbounded", 0.153},
      {"steady-0.1ms", "1.5", "batches-2", 1.175, 0.82},
      {"steady-0.1ms", "2", "of unbounded", 0.153},
      {"steady-0.1ms", "2", "memory, of two batches'", 0.351},
      {"steady-0.1ms", "2", "batches-2", 1.175, 0.61},
      {"steady-0.1ms", "2", "batches-3", 1.177, 0.74},
      {"steady-0.1ms", "2", "batches-4", 1.178, 0.87},
      {"steady-0.1ms", "2", "bql", 1.177, 0.74},
      {"steady-0.1ms", "4", "of unbounded", 0.152},
      {"steady-0.1ms", "4", "memory, of two batches'", 1.951},
      {"steady-0.1ms", "4", "batches-2", 1.174, 0.30},
      {"steady-0.1ms", "4", "batches-3", 1.176, 0.37},
      {"steady-0.1ms", "4", "batches-4", 1.177, 0.43},
      {"steady-0.1ms", "4", "tasks-10", 1.177, 0.87},
      {"steady-0.1ms", "4", "bql", 1.176, 0.37},
      {"steady-0.1ms", "16", "of unbounded", 0.004},
      {"steady-0.1ms", "16", "memory, of two batches'", 3.151},
      {"steady-0.1ms", "devices", "of unbounded", 0.004},
      {"steady-0.1ms", "devices", "memory, of two batches'", 3.151},
      // A copy into memory that was handed over waits for all computes. With `--hand-over last`
      // throttled is as fast as filling, here and on the rows of batches that are too large.
      {"bursts", "1.5", "of filling", 0.04},
      {"bursts", "1.5", "batches-2", 1.040, 0.82},
      {"bursts", "2", "of filling", 0.026},
      {"bursts", "2", "batches-4", 1.025, 0.87},
      {"too-large-0.9", "1.5", "of filling", 0.025},
      {"too-large-0.9", "1.5", "batches-2", 1.036, 0.89},
      {"too-large-0.9", "2", "of filling", 0.114},
      {"too-large-0.9", "2", "batches-2", 1.142, 0.89},
      {"too-large-0.9", "2", "batches-3", 1.142, 0.89},
      {"too-large-0.9", "2", "bql", 1.142, 0.89},
      {"too-large-1.1", "4", "memory, of filling", 0.04},
      // A batch that fails first waits until the device is done with all others. The gap after that
      // counts as throttle-caused, though filling the budget has it too.
      {"too-large-1.1", "16", "throttle-caused idle", 0.024},
      {"too-large-1.1", "devices", "throttle-caused idle", 0.024},
      // Turns by bytes: while the large batch has the whole budget, the small ones wait their turn.
      {"producers-1:10", "1", "of filling", 0.049},
  };
}

}  // namespace weir::simulate
