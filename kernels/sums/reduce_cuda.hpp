#pragma once

/// @file
/// Sums on a device, in the order of reduce.hpp and so with the bits of the CPU's, whatever the
/// grid. What holds of every function here says elementwise_cuda.hpp; of `workspace`,
/// workspace_cuda.hpp.

#include <cuda_runtime_api.h>

#include <span>

namespace weir::cuda {

/// total[0] = the sum of x; 0 when x is empty. `total` has one element.
void sum(cudaStream_t stream, std::span<const float> x, std::span<float> total,
         std::span<float> workspace);

/// total[0] = the sum of (x[i] - y[i])^2, each difference and square rounded to float.
void squared_distance(cudaStream_t stream, std::span<const float> x, std::span<const float> y,
                      std::span<float> total, std::span<float> workspace);

}  // namespace weir::cuda
