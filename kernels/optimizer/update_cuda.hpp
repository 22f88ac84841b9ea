#pragma once

/// @file
/// update.hpp's functions on a device, with the same bits. Common rules: elementwise_cuda.hpp. All
/// spans are device memory, those of `weights` and `x` included, and the state is aligned to 8
/// bytes.

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/optimizer/update.hpp"

namespace weir::cuda {

/// Changes all weights by the gradient g.
void update(cudaStream_t stream, const OptimizerOptions& options, const Weights& weights,
            std::span<const float> g, std::span<const float> state);

/// Changes a layer's weights by X^T dy. Rows are moved sixteen bytes at once if n is a multiple of
/// 4 and w, the moments and dy are aligned to 16 bytes, and the copy to 8; else element by element.
/// n is at most 2^31.
void update_rows(cudaStream_t stream, const OptimizerOptions& options, const Weights& weights,
                 DenseShape shape, const CsrColumns& x, std::span<const float> dy,
                 std::span<const float> state, UpdatedRows rows);

}  // namespace weir::cuda
