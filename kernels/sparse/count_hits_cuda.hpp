#pragma once

/// @file
/// The rows whose largest logit is one of their labels, as count_hits.hpp, on a device. Common
/// rules: elementwise_cuda.hpp. Workspace: workspace_cuda.hpp.
///
/// Labels are on the device and not checked: one that is no class is ignored. Refuses more than
/// 2^25 classes.

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/sparse/count_hits.hpp"

namespace weir::cuda {

/// hits[0] = the number of rows whose largest logit is one of their labels.
void count_hits(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                std::span<float> hits, std::span<float> workspace);

/// tops [rows x kTopLogit], overwritten.
void top_logits(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                std::span<float> tops, std::span<float> workspace);

}  // namespace weir::cuda
