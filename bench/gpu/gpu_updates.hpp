#pragma once

// Times the updates of the wide network's weights on a device: of its last layer by a gradient, and
// of its first, whose input is sparse.

#include <vector>

#include "bench/gpu/gpu_kernels.hpp"

namespace weir::bench {

/// Times them on the current device. `copied_bytes` is what a copy moves in a microsecond, read and
/// written: the rate of each row's floor. Takes 3.1 GB of device memory.
[[nodiscard]] std::vector<KernelTime> time_updates(InputSize size, double copied_bytes);

}  // namespace weir::bench
