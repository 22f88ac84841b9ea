#pragma once

// The best schedule that knows the future, as a bound for every policy.
//
// Throughput: a run that fills the same budget and goes on at the moment memory comes free, with or
// without handing memory over, whichever is faster. Several producers start a batch only with room
// for all of it, so that none fails. No policy that takes batches in this order and memory in these
// steps is faster by more than the luck of an early load, or by handing over for some batches only
// (half a percent in the table).
//
// Memory: of that run, each batch is then admitted as late as its compute allows. Computes keep
// their times. From the last batch backward: a copy ends when the compute or the next copy needs
// the stream, and an admission leaves the producer time to load its next batch. So it is the least
// memory for these compute times, and not the least over all schedules of the same length.

#include "bench/simulate/simulation.hpp"

namespace weir::simulate {

[[nodiscard]] RunResult best_schedule(const Workload& workload, const PolicyChoice& policy,
                                      const RunOptions& options);

}  // namespace weir::simulate
