#pragma once

/// @file
/// The sparse layer of csr_layer.hpp on a device, with the same bits. Common rules:
/// elementwise_cuda.hpp. The spans within a batch are device memory too.

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/sparse/csr_layer.hpp"

namespace weir::cuda {

/// y = act(X W + b); b's size is n. The time follows the entries and n, not k.
void csr_forward(cudaStream_t stream, const CsrRows& x, std::span<const float> w,
                 std::span<const float> b, std::span<float> y, Activation activation);

/// dw [touched x n], overwritten: its row t is row x.touched[t] of dW = X^T dy. Ignores k.
void csr_weight_gradient(cudaStream_t stream, DenseShape shape, const CsrColumns& x,
                         std::span<const float> dy, std::span<float> dw);

}  // namespace weir::cuda
