#pragma once

// A dense layer, y = act(x W + b), and the four pieces of its backward pass. Each piece is a
// function of its own, because each is an operation of its own to a scheduler.
//
// A backward pass, given dy = d loss / d y:  relu_backward(y, dy) if the layer has a relu, then in
// any order dense_weight_gradient, dense_bias_gradient, dense_input_gradient. The relu and the bias
// may be done together: relu_and_bias_gradient.
//
// Matrices are row-major without gaps. The products are BLAS's: see blas.hpp on their bits. All
// functions throw UsageError, with the output untouched, when a span does not have the size that
// the shape asks for; all are thread-safe for disjoint outputs. An output must not overlap an
// input.

#include <cstddef>
#include <span>

namespace weir {

enum class Activation { kNone, kRelu };

/// x is m x k, W is k x n, b has n elements, y is m x n: m rows of a batch, k inputs, n outputs.
struct DenseShape {
  std::size_t m = 0;
  std::size_t k = 0;
  std::size_t n = 0;
};

/// y = act(x W + b), b added to each row. relu(v) is 0 for v < 0 and v otherwise, so that a NaN
/// stays.
void dense_forward(DenseShape shape, std::span<const float> x, std::span<const float> w,
                   std::span<const float> b, std::span<float> y, Activation activation);

/// dW = x^T dy, k x n, overwritten.
void dense_weight_gradient(DenseShape shape, std::span<const float> x, std::span<const float> dy,
                           std::span<float> dw);

/// Rows that are added up before they join the total of a column.
inline constexpr std::size_t kBiasGradientRows = 32;

/// db = the sum of the rows of dy, n elements, overwritten.
///
/// The order of the additions is fixed: each column is cut into runs of kBiasGradientRows rows; a
/// run is added up from 0 in row order; the totals of the runs are added up from 0 in order. So the
/// error is at most (32 + m / 32) * 2^-24 times the sum of the absolute values, to first order.
void dense_bias_gradient(DenseShape shape, std::span<const float> dy, std::span<float> db);

/// dx = dy W^T, m x k, overwritten.
void dense_input_gradient(DenseShape shape, std::span<const float> dy, std::span<const float> w,
                          std::span<float> dx);

/// dy[i] = 0 wherever not y[i] > 0, in place; y is what dense_forward gave. Any equal sizes.
void relu_backward(std::span<const float> y, std::span<float> dy);

/// relu_backward and then dense_bias_gradient, in one pass over dy: dy is masked in place, db is
/// the sum of its rows. k is not looked at.
void relu_and_bias_gradient(DenseShape shape, std::span<const float> y, std::span<float> dy,
                            std::span<float> db);

}  // namespace weir
