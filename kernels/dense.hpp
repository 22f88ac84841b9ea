#pragma once

// A dense layer, y = act(x W + b), and the four pieces of its backward pass. Each piece is a
// separate function, so that a scheduler can run it as an operation.
//
// A backward pass, given dy = d loss / d y:  relu_backward(y, dy) if the layer has a relu, then in
// any order dense_weight_gradient, dense_bias_gradient, dense_input_gradient.
// relu_and_bias_gradient combines relu and bias.
//
// Matrices are row-major without gaps. The products are BLAS's: see blas.hpp for their bits, and
// for what a precision does to a product. Weights, biases, outputs and gradients are float32. For
// 16 bits the caller keeps copies of x, W and dy beside them, made by to_half, wherever it wants; a
// weight's copy is made again after each update.
//
// All functions throw UsageError and leave the output unchanged if a span's size does not match the
// shape; all are thread-safe for disjoint outputs. An output must not overlap an input.

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/blas/blas.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/stream.hpp"
#include "kernels/precision/precision.hpp"

namespace weir {

enum class Activation { kNone, kRelu };

/// x is m x k, W is k x n, b has n elements, y is m x n: m rows of a batch, k inputs, n outputs.
struct DenseShape {
  std::size_t m = 0;
  std::size_t k = 0;
  std::size_t n = 0;
};

/// y = act(y + b) in place, b added to each of the m rows: what follows the product. Ignores k.
void bias_activation(DenseShape shape, std::span<const float> b, std::span<float> y,
                     Activation activation);

/// Rows added up before their sum joins a column's total.
inline constexpr std::size_t kBiasGradientRows = 32;

/// db = the sum of the rows of dy, n elements, overwritten.
///
/// The order of additions is fixed: each column is cut into runs of kBiasGradientRows rows; a run
/// is added up from 0 in row order; the runs' totals are added up from 0 in order. So the error is
/// at most (32 + m / 32) * 2^-24 times the sum of the absolute values, to first order.
void dense_bias_gradient(DenseShape shape, std::span<const float> dy, std::span<float> db);

/// dy[i] = 0 unless y[i] > 0, in place; y is dense_forward's output. Any equal sizes.
void relu_backward(std::span<const float> y, std::span<float> dy);

/// relu_backward, then dense_bias_gradient, in one pass over dy: masks dy in place; db is the sum
/// of its rows. Ignores k.
void relu_and_bias_gradient(DenseShape shape, std::span<const float> y, std::span<float> dy,
                            std::span<float> db);

/// The factors of a product: floats if `How` is a Precision (of 16 bits: UsageError), words if it
/// is a HalfKind.
template <typename How>
using DenseFactor =
    std::span<const std::conditional_t<std::is_same_v<How, HalfKind>, std::uint16_t, float>>;

/// y = act(x W + b), b added to each row. relu(v) is 0 for v < 0, otherwise v, so NaN stays.
template <typename How>
void dense_forward(How how, DenseShape shape, DenseFactor<How> x, DenseFactor<How> w,
                   std::span<const float> b, std::span<float> y, Activation activation);
/// dW = x^T dy, k x n, overwritten.
template <typename How>
void dense_weight_gradient(How how, DenseShape shape, DenseFactor<How> x, DenseFactor<How> dy,
                           std::span<float> dw);
/// dx = dy W^T, m x k, overwritten.
template <typename How>
void dense_input_gradient(How how, DenseShape shape, DenseFactor<How> dy, DenseFactor<How> w,
                          std::span<float> dx);

/// Throw UsageError unless the numbers of elements fit, in the order of the function's arguments.
void require_forward(DenseShape shape, std::size_t x, std::size_t w, std::size_t b, std::size_t y);
void require_weight_gradient(DenseShape shape, std::size_t x, std::size_t dy, std::size_t dw);
void require_input_gradient(DenseShape shape, std::size_t dy, std::size_t w, std::size_t dx);

}  // namespace weir

/// On a device: see stream.hpp, and workspace_cuda.hpp for the workspace. The products are
/// cuBLAS's; everything else has the CPU's bits. Where a result is small and the sums are long, as
/// in the input gradient of a wide layer, cuBLAS needs more than the smallest workspace to keep the
/// whole device busy.
namespace weir::cuda {

template <typename How>
void dense_forward(CublasHandle& blas, Stream stream, How how, DenseShape shape, DenseFactor<How> x,
                   DenseFactor<How> w, std::span<const float> b, std::span<float> y,
                   Activation activation, std::span<float> workspace);
template <typename How>
void dense_weight_gradient(CublasHandle& blas, Stream stream, How how, DenseShape shape,
                           DenseFactor<How> x, DenseFactor<How> dy, std::span<float> dw,
                           std::span<float> workspace);
template <typename How>
void dense_input_gradient(CublasHandle& blas, Stream stream, How how, DenseShape shape,
                          DenseFactor<How> dy, DenseFactor<How> w, std::span<float> dx,
                          std::span<float> workspace);
void bias_activation(Stream stream, DenseShape shape, std::span<const float> b, std::span<float> y,
                     Activation activation);
void dense_bias_gradient(Stream stream, DenseShape shape, std::span<const float> dy,
                         std::span<float> db, std::span<float> workspace);
void relu_backward(Stream stream, std::span<const float> y, std::span<float> dy);
void relu_and_bias_gradient(Stream stream, DenseShape shape, std::span<const float> y,
                            std::span<float> dy, std::span<float> db, std::span<float> workspace);

}  // namespace weir::cuda

// ---- The products: each checks the sizes and is a gemm.

namespace weir {

/// dense_forward in float32. The product is added to the bias: BLAS would write zeros to y instead,
/// and the bias take a pass.
void forward_in_float32(DenseShape shape, std::span<const float> x, std::span<const float> w,
                        std::span<const float> b, std::span<float> y, Activation activation);

template <typename How>
void dense_forward(How how, DenseShape shape, DenseFactor<How> x, DenseFactor<How> w,
                   std::span<const float> b, std::span<float> y, Activation activation) {
  require_forward(shape, x.size(), w.size(), b.size(), y.size());
  if constexpr (std::is_same_v<How, Precision>) {
    if (how == Precision::kFloat32) return forward_in_float32(shape, x, w, b, y, activation);
  }
  gemm(how, {.m = shape.m, .n = shape.n, .k = shape.k}, x, w, y);
  bias_activation(shape, b, y, activation);
}

template <typename How>
void dense_weight_gradient(How how, DenseShape shape, DenseFactor<How> x, DenseFactor<How> dy,
                           std::span<float> dw) {
  require_weight_gradient(shape, x.size(), dy.size(), dw.size());
  gemm(how, {.m = shape.k, .n = shape.n, .k = shape.m}, x, dy, dw, {.a = Transpose::kYes});
}

template <typename How>
void dense_input_gradient(How how, DenseShape shape, DenseFactor<How> dy, DenseFactor<How> w,
                          std::span<float> dx) {
  require_input_gradient(shape, dy.size(), w.size(), dx.size());
  gemm(how, {.m = shape.m, .n = shape.k, .k = shape.n}, dy, w, dx, {.b = Transpose::kYes});
}

}  // namespace weir

namespace weir::cuda {

template <typename How>
void dense_forward(CublasHandle& blas, Stream stream, How how, DenseShape shape, DenseFactor<How> x,
                   DenseFactor<How> w, std::span<const float> b, std::span<float> y,
                   Activation activation, std::span<float> workspace) {
  require_forward(shape, x.size(), w.size(), b.size(), y.size());
  gemm(blas, stream, how, {.m = shape.m, .n = shape.n, .k = shape.k}, x, w, y, {}, workspace);
  bias_activation(stream, shape, b, y, activation);
}

template <typename How>
void dense_weight_gradient(CublasHandle& blas, Stream stream, How how, DenseShape shape,
                           DenseFactor<How> x, DenseFactor<How> dy, std::span<float> dw,
                           std::span<float> workspace) {
  require_weight_gradient(shape, x.size(), dy.size(), dw.size());
  gemm(blas, stream, how, {.m = shape.k, .n = shape.n, .k = shape.m}, x, dy, dw,
       {.a = Transpose::kYes}, workspace);
}

template <typename How>
void dense_input_gradient(CublasHandle& blas, Stream stream, How how, DenseShape shape,
                          DenseFactor<How> dy, DenseFactor<How> w, std::span<float> dx,
                          std::span<float> workspace) {
  require_input_gradient(shape, dy.size(), w.size(), dx.size());
  gemm(blas, stream, how, {.m = shape.m, .n = shape.k, .k = shape.n}, dy, w, dx,
       {.b = Transpose::kYes}, workspace);
}

}  // namespace weir::cuda
