#pragma once

/// @file
/// class_parts.hpp's functions on a device, with the same bits. Common rules: elementwise_cuda.hpp.
/// Workspace: workspace_cuda.hpp.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "kernels/sparse/class_parts.hpp"

namespace weir::cuda {

/// statistics [rows x kSoftmaxStatistics], overwritten.
void merge_softmax_statistics(cudaStream_t stream, std::span<const float> parts,
                              std::span<float> statistics);

/// hits[0] = the rows whose largest logit is one of their labels.
void merge_hits(cudaStream_t stream, std::span<const float> parts, std::size_t rows,
                std::span<float> hits, std::span<float> workspace);

}  // namespace weir::cuda
