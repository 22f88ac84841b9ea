#pragma once

// Work on a GPU whose timeline is known.

#include <vector>

#include "gpu_check/timeline/check.hpp"

namespace weir::gpu_check {

enum class WorkSize : std::uint8_t { kMeasured, kSmall };  ///< kSmall: for a CPU, measures nothing

/// Runs kernels of several lengths, launched one by one and as a graph, and copies in both
/// directions and on the device. All run on one stream, in stretches with a batch each. A warm-up
/// stretch precedes the first of each kind. Throws CudaError.
[[nodiscard]] std::vector<Stretch> do_work(WorkSize size);

}  // namespace weir::gpu_check
