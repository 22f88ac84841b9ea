#pragma once

/// @file
/// Softmax and cross-entropy of classification.hpp on a device, with the same bits. Common rules:
/// elementwise_cuda.hpp. Workspace: workspace_cuda.hpp.
///
/// Labels are on the device and not checked. A label that is no class, which the CPU refuses, makes
/// the row's loss (and so the mean) and gradient NaN, and counts as wrong. Refuses shapes without
/// rows or classes, or with more than 2^30 classes.

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/classification.hpp"

namespace weir::cuda {

/// loss[0] = the mean loss of the rows.
void softmax_cross_entropy(cudaStream_t stream, LogitShape shape, std::span<const float> z,
                           std::span<const float> labels, std::span<float> loss,
                           std::span<float> workspace);

/// dz [rows x classes] = the loss's gradient, overwritten; dz may be z itself.
void softmax_cross_entropy_gradient(cudaStream_t stream, LogitShape shape, std::span<const float> z,
                                    std::span<const float> labels, std::span<float> dz);

/// correct[0] = the number of rows whose label has the largest logit. Exact up to 2^24 rows.
void count_correct(cudaStream_t stream, LogitShape shape, std::span<const float> z,
                   std::span<const float> labels, std::span<float> correct,
                   std::span<float> workspace);

}  // namespace weir::cuda
