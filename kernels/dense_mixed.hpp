#pragma once

// The three products of a dense layer in a chosen precision; see dense.hpp for the layer and the
// other steps of its backward pass, and blas_mixed.hpp for what a precision does to a product.
//
// Weights, biases, outputs and gradients are float32. For 16 bits the caller keeps copies of x, W
// and dy beside them, made by to_half, wherever it wants; a weight's copy is made again after each
// update. Common rules: dense.hpp.

#include <cstdint>
#include <span>

#include "kernels/dense.hpp"
#include "kernels/precision/half.hpp"
#include "kernels/precision/precision.hpp"

namespace weir {

/// y = act(x W + b), x W in kFloat32 (then the bits of dense.hpp) or kTf32. Throws UsageError for
/// the formats of 16 bits.
void dense_forward(Precision precision, DenseShape shape, std::span<const float> x,
                   std::span<const float> w, std::span<const float> b, std::span<float> y,
                   Activation activation);
/// dW = x^T dy, k x n, overwritten.
void dense_weight_gradient(Precision precision, DenseShape shape, std::span<const float> x,
                           std::span<const float> dy, std::span<float> dw);
/// dx = dy W^T, m x k, overwritten.
void dense_input_gradient(Precision precision, DenseShape shape, std::span<const float> dy,
                          std::span<const float> w, std::span<float> dx);

/// The same of 16-bit copies; b and all results are floats.
void dense_forward(HalfKind kind, DenseShape shape, std::span<const std::uint16_t> x,
                   std::span<const std::uint16_t> w, std::span<const float> b, std::span<float> y,
                   Activation activation);
void dense_weight_gradient(HalfKind kind, DenseShape shape, std::span<const std::uint16_t> x,
                           std::span<const std::uint16_t> dy, std::span<float> dw);
void dense_input_gradient(HalfKind kind, DenseShape shape, std::span<const std::uint16_t> dy,
                          std::span<const std::uint16_t> w, std::span<float> dx);

}  // namespace weir
