#pragma once

/// @file
/// A kernel that only takes time.

#include <cuda_runtime_api.h>

#include <chrono>

namespace weir::gpu_check {

/// Enqueues a kernel of one thread that ends when this time has passed on the device. Throws
/// CudaError when it cannot be launched.
void spin(cudaStream_t stream, std::chrono::nanoseconds time);

}  // namespace weir::gpu_check
