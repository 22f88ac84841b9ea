#pragma once

// The main experiment's job on a GPU as a program without Weir does it: streams, events, all memory
// taken once by cudaMalloc, and the same kernels in the same order. Beside it a run by Weir shows
// what Weir itself costs.

#include <string>

#include "trainer/run/train.hpp"

namespace weir {

/// Why there is no such run of this job, in one line; empty where there is one.
[[nodiscard]] std::string why_no_plain_run(const TrainSettings& settings);

/// Trains on the same batches to the same bits as `train`. Inputs have as many places on the device
/// as the ring has batches, at least two, and the host waits for a place to be free: so far it runs
/// ahead. The policy, the pool and the budget are not looked at. Of the result these are set:
/// outcome, report, batches, seconds, host_seconds, staging, mean_loss, weights, and the device
/// memory as the pool's peak of reserved bytes. UsageError where there is no such run.
[[nodiscard]] TrainResult train_plain(const TrainSettings& settings, const TrainHooks& hooks = {});

}  // namespace weir
