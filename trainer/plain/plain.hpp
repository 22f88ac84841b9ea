#pragma once

// The main experiment's job on a GPU, written without Weir: streams, events, one cudaMalloc of all
// memory at the start, and the same kernels in the same order. The difference to a run with Weir is
// the cost of Weir.

#include <string>

#include "scheduler/device/device_kind.hpp"
#include "trainer/run/train.hpp"

namespace weir {

/// Returns one line that says why this job has no such run; empty if it has one.
[[nodiscard]] inline std::string why_no_plain_run(const TrainSettings& settings) {
  if (parse_device_id(settings.device.value).kind != DeviceKind::kCuda) return "it needs a GPU";
  if (settings.data != nullptr) return "it does not read a data set";
  if (settings.inputs.value == InputKind::kHost) {
    return "its inputs are drawn or made beforehand, not on the way";
  }
  return "";
}

/// Trains on the same batches to the same bits as `train`. The device has as many input places as
/// the ring has batches, at least two, and the host waits for a free place, which bounds its
/// run-ahead. Ignores the policy, the pool and the budget. Sets only these results: outcome,
/// report, batches, seconds, host_seconds, staging, mean_loss, weights, and the device memory as
/// the pool's peak of reserved bytes. Throws UsageError if there is no such run.
[[nodiscard]] TrainResult train_plain(const TrainSettings& settings, const TrainHooks& hooks = {});

}  // namespace weir
