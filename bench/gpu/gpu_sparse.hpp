#pragma once

// Times the kernels of kernels/sparse on the current device, at the size of `weir-train wide`.

#include <vector>

#include "bench/gpu/gpu_kernels.hpp"

namespace weir::bench {

/// Times the sparse layer and the losses with sparse labels. Their floors are the bytes that each
/// must move at the rate of a copy. kMeasured takes some 1.7 GiB of device memory. Throws CudaError
/// and what the kernels throw.
[[nodiscard]] std::vector<KernelTime> time_sparse(InputSize size,
                                                  double copied_bytes_per_microsecond);

}  // namespace weir::bench
