#pragma once

/// @file
/// Softmax and cross-entropy of softmax_loss.hpp on a device, with the same bits. Common rules:
/// elementwise_cuda.hpp. Workspace: workspace_cuda.hpp.
///
/// Labels are on the device and not checked. One that is no class makes the row's loss (and so the
/// mean) NaN. Refuses more than 2^25 classes.

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/sparse/softmax_loss.hpp"

namespace weir::cuda {

/// statistics [rows x kSoftmaxStatistics], overwritten, in one pass over z.
void softmax_statistics(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                        std::span<float> statistics, std::span<float> workspace);

/// loss[0] = the mean loss of the rows. Reads no label.
void softmax_loss(cudaStream_t stream, const SparseLabels& labels,
                  std::span<const float> statistics, std::span<float> loss,
                  std::span<float> workspace);

/// dz [rows x classes] = the loss's gradient, overwritten; dz may be z itself.
void softmax_gradient(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                      std::span<const float> statistics, std::span<float> dz);

}  // namespace weir::cuda
