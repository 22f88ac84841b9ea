#pragma once

/// @file
/// The products of dense_mixed.hpp on a device, by blas_mixed_cuda.hpp. The other steps of the
/// layer are those of dense_cuda.hpp. Workspace: workspace_cuda.hpp; where the result is small and
/// the sums are long, as in the input gradient of a wide layer, cuBLAS needs more than the smallest
/// to keep the whole device busy.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/blas/blas_cuda.hpp"
#include "kernels/dense.hpp"
#include "kernels/precision/half.hpp"
#include "kernels/precision/precision.hpp"

namespace weir::cuda {

/// y = act(x W + b), x W in kFloat32 (then the bits of dense_cuda.hpp) or kTf32. Throws UsageError
/// for the formats of 16 bits.
void dense_forward(CublasHandle& blas, cudaStream_t stream, Precision precision, DenseShape shape,
                   std::span<const float> x, std::span<const float> w, std::span<const float> b,
                   std::span<float> y, Activation activation, std::span<float> workspace);
/// dW = x^T dy, k x n, overwritten.
void dense_weight_gradient(CublasHandle& blas, cudaStream_t stream, Precision precision,
                           DenseShape shape, std::span<const float> x, std::span<const float> dy,
                           std::span<float> dw, std::span<float> workspace);
/// dx = dy W^T, m x k, overwritten.
void dense_input_gradient(CublasHandle& blas, cudaStream_t stream, Precision precision,
                          DenseShape shape, std::span<const float> dy, std::span<const float> w,
                          std::span<float> dx, std::span<float> workspace);

/// The same of 16-bit copies; b and all results are floats.
void dense_forward(CublasHandle& blas, cudaStream_t stream, HalfKind kind, DenseShape shape,
                   std::span<const std::uint16_t> x, std::span<const std::uint16_t> w,
                   std::span<const float> b, std::span<float> y, Activation activation,
                   std::span<float> workspace);
void dense_weight_gradient(CublasHandle& blas, cudaStream_t stream, HalfKind kind, DenseShape shape,
                           std::span<const std::uint16_t> x, std::span<const std::uint16_t> dy,
                           std::span<float> dw, std::span<float> workspace);
void dense_input_gradient(CublasHandle& blas, cudaStream_t stream, HalfKind kind, DenseShape shape,
                          std::span<const std::uint16_t> dy, std::span<const std::uint16_t> w,
                          std::span<float> dx, std::span<float> workspace);

}  // namespace weir::cuda
