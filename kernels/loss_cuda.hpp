#pragma once

/// @file
/// The L2 loss of loss.hpp on a device, with the same bits. Common rules: elementwise_cuda.hpp.
/// Workspace: workspace_cuda.hpp.

#include <cuda_runtime_api.h>

#include <span>

namespace weir::cuda {

/// loss[0] = 1/2 mean((p - t)^2). Also throws UsageError if p is empty.
void l2_loss(cudaStream_t stream, std::span<const float> p, std::span<const float> t,
             std::span<float> loss, std::span<float> workspace);

/// dp[i] = (p[i] - t[i]) / m, overwritten, m the number of elements; dp may be p itself. Also
/// throws UsageError if p is empty.
void l2_loss_gradient(cudaStream_t stream, std::span<const float> p, std::span<const float> t,
                      std::span<float> dp);

}  // namespace weir::cuda
