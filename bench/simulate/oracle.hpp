#pragma once

// The best schedule that knows the future.
//
// Throughput: the fastest of the runs that fill the same budget and go on at the moment memory
// comes free. They differ in when memory is handed over, and with several producers in whether a
// batch may start before there is room for all of it; the fewest failures count first. It is not
// proven to be the fastest of all schedules. But no policy of the table is faster:
// Simulation.NobodyIsFasterThanTheScheduleThatKnowsTheFuture.
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
