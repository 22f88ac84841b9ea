#pragma once

// The products of a dense layer, for every device and precision: each checks the sizes and calls
// `multiply(shape, a, b, c, options)`, a `gemm`. T is float or a word.

#include <span>

#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "kernels/parts/check.hpp"

namespace weir {

/// y = x W. `b` is only checked, for the pass over y that follows.
template <typename T, typename Multiply>
void forward_product(DenseShape shape, std::span<const T> x, std::span<const T> w,
                     std::span<const float> b, std::span<float> y, const Multiply& multiply) {
  require_matrix({"dense_forward", "x"}, x.size(), shape.m, shape.k);
  require_matrix({"dense_forward", "w"}, w.size(), shape.k, shape.n);
  require_elements({"dense_forward", "b"}, b.size(), shape.n);
  require_matrix({"dense_forward", "y"}, y.size(), shape.m, shape.n);
  multiply(GemmShape{.m = shape.m, .n = shape.n, .k = shape.k}, x, w, y, GemmOptions{});
}

/// dW = x^T dy
template <typename T, typename Multiply>
void weight_gradient_product(DenseShape shape, std::span<const T> x, std::span<const T> dy,
                             std::span<float> dw, const Multiply& multiply) {
  require_matrix({"dense_weight_gradient", "x"}, x.size(), shape.m, shape.k);
  require_matrix({"dense_weight_gradient", "dy"}, dy.size(), shape.m, shape.n);
  require_matrix({"dense_weight_gradient", "dw"}, dw.size(), shape.k, shape.n);
  multiply(GemmShape{.m = shape.k, .n = shape.n, .k = shape.m}, x, dy, dw,
           GemmOptions{.a = Transpose::kYes});
}

/// dx = dy W^T
template <typename T, typename Multiply>
void input_gradient_product(DenseShape shape, std::span<const T> dy, std::span<const T> w,
                            std::span<float> dx, const Multiply& multiply) {
  require_matrix({"dense_input_gradient", "dy"}, dy.size(), shape.m, shape.n);
  require_matrix({"dense_input_gradient", "w"}, w.size(), shape.k, shape.n);
  require_matrix({"dense_input_gradient", "dx"}, dx.size(), shape.m, shape.k);
  multiply(GemmShape{.m = shape.m, .n = shape.k, .k = shape.n}, dy, w, dx,
           GemmOptions{.b = Transpose::kYes});
}

}  // namespace weir
