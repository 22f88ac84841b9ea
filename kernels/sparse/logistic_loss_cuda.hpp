#pragma once

/// @file
/// The multi-label logistic loss of logistic_loss.hpp on a device, with the same bits. Common
/// rules: elementwise_cuda.hpp. Workspace: workspace_cuda.hpp.
///
/// Labels are on the device and not checked: one that is no class is ignored. Refuses more than
/// 2^25 classes.

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/sparse/logistic_loss.hpp"

namespace weir::cuda {

/// loss[0] = the mean over the rows of the sum over the classes.
void logistic_loss(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                   std::span<float> loss, std::span<float> workspace);

/// The same, and dz [rows x classes] = its gradient, overwritten, in one pass over z; dz may be z.
void logistic_loss_and_gradient(cudaStream_t stream, const SparseLabels& labels,
                                std::span<const float> z, std::span<float> loss,
                                std::span<float> dz, std::span<float> workspace);

}  // namespace weir::cuda
