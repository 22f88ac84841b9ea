#pragma once

/// @file
/// Sums on a device in the order of reduce.hpp, so with the CPU's bits for any grid. Common rules:
/// elementwise_cuda.hpp. Workspace: workspace_cuda.hpp.

#include <cuda_runtime_api.h>

#include <span>

namespace weir::cuda {

/// total[0] = the sum of x; 0 if x is empty. `total` has one element.
void sum(cudaStream_t stream, std::span<const float> x, std::span<float> total,
         std::span<float> workspace);

/// total[0] = the sum of (x[i] - y[i])^2, each difference and square rounded to float.
void squared_distance(cudaStream_t stream, std::span<const float> x, std::span<const float> y,
                      std::span<float> total, std::span<float> workspace);

}  // namespace weir::cuda
