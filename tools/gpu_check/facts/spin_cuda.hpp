#pragma once

/// @file
/// A kernel that only takes time.

#include <cuda_runtime_api.h>

#include <chrono>

namespace weir::gpu_check {

/// Enqueues a kernel of one thread that ends after this time on the device. Throws CudaError if the
/// launch fails.
void spin(cudaStream_t stream, std::chrono::nanoseconds time);

}  // namespace weir::gpu_check
