#pragma once

// Times what mixed precision adds: the three products of a wide network's last layer in each
// precision, and the kernels that convert, scale and search.

#include <vector>

#include "bench/gpu/gpu_kernels.hpp"

namespace weir::bench {

/// What the rows of `time_kernels` have shown, per microsecond.
struct DeviceRates {
  double copied_bytes = 1;
  double float_flops = 1;  ///< of the large float32 product
};

/// Times them on the current device. A large square product in each further precision comes first
/// and gives its rate; a last layer's floor is the larger of its bytes' and its arithmetic's.
[[nodiscard]] std::vector<KernelTime> time_precisions(InputSize size, DeviceRates rates);

}  // namespace weir::bench
