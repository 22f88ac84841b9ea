#pragma once

/// @file
/// The dense layer of dense.hpp on a device. The three products are cuBLAS's (see blas_cuda.hpp for
/// their bits); everything else has the CPU's bits. Common rules: elementwise_cuda.hpp. Workspace:
/// workspace_cuda.hpp.

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/blas/blas_cuda.hpp"
#include "kernels/dense.hpp"

namespace weir::cuda {

/// y = act(x W + b): a product, and one pass for the bias and the activation.
void dense_forward(CublasHandle& blas, cudaStream_t stream, DenseShape shape,
                   std::span<const float> x, std::span<const float> w, std::span<const float> b,
                   std::span<float> y, Activation activation, std::span<float> workspace);

/// y = act(y + b) in place, b [n] added to each of the m rows of y [m x n]. Ignores k.
void bias_activation(cudaStream_t stream, DenseShape shape, std::span<const float> b,
                     std::span<float> y, Activation activation);

/// dW = x^T dy, k x n, overwritten.
void dense_weight_gradient(CublasHandle& blas, cudaStream_t stream, DenseShape shape,
                           std::span<const float> x, std::span<const float> dy, std::span<float> dw,
                           std::span<float> workspace);

/// dx = dy W^T, m x k, overwritten.
void dense_input_gradient(CublasHandle& blas, cudaStream_t stream, DenseShape shape,
                          std::span<const float> dy, std::span<const float> w, std::span<float> dx,
                          std::span<float> workspace);

/// db = the sum of the rows of dy, n elements, overwritten, in the order of dense.hpp. Ignores k.
void dense_bias_gradient(cudaStream_t stream, DenseShape shape, std::span<const float> dy,
                         std::span<float> db, std::span<float> workspace);

/// dy[i] = 0 unless y[i] > 0, in place. Any equal sizes.
void relu_backward(cudaStream_t stream, std::span<const float> y, std::span<float> dy);

/// relu_backward, then dense_bias_gradient, reading dy once. Ignores k.
void relu_and_bias_gradient(cudaStream_t stream, DenseShape shape, std::span<const float> y,
                            std::span<float> dy, std::span<float> db, std::span<float> workspace);

}  // namespace weir::cuda
