#include "kernels/dense_mixed.hpp"

#include "kernels/blas/blas_mixed.hpp"
#include "kernels/dense_products.hpp"

namespace weir {
namespace {

/// `how` is a Precision or a HalfKind.
template <typename How>
auto multiplier(How how) {
  return [how](GemmShape shape, auto a, auto b, std::span<float> c, GemmOptions options) {
    gemm(how, shape, a, b, c, options);
  };
}

}  // namespace

void dense_forward(Precision precision, DenseShape shape, std::span<const float> x,
                   std::span<const float> w, std::span<const float> b, std::span<float> y,
                   Activation activation) {
  if (precision == Precision::kFloat32) return dense_forward(shape, x, w, b, y, activation);
  forward_product(shape, x, w, b, y, multiplier(precision));
  bias_activation(shape, b, y, activation);
}

void dense_weight_gradient(Precision precision, DenseShape shape, std::span<const float> x,
                           std::span<const float> dy, std::span<float> dw) {
  weight_gradient_product(shape, x, dy, dw, multiplier(precision));
}

void dense_input_gradient(Precision precision, DenseShape shape, std::span<const float> dy,
                          std::span<const float> w, std::span<float> dx) {
  input_gradient_product(shape, dy, w, dx, multiplier(precision));
}

void dense_forward(HalfKind kind, DenseShape shape, std::span<const std::uint16_t> x,
                   std::span<const std::uint16_t> w, std::span<const float> b, std::span<float> y,
                   Activation activation) {
  forward_product(shape, x, w, b, y, multiplier(kind));
  bias_activation(shape, b, y, activation);
}

void dense_weight_gradient(HalfKind kind, DenseShape shape, std::span<const std::uint16_t> x,
                           std::span<const std::uint16_t> dy, std::span<float> dw) {
  weight_gradient_product(shape, x, dy, dw, multiplier(kind));
}

void dense_input_gradient(HalfKind kind, DenseShape shape, std::span<const std::uint16_t> dy,
                          std::span<const std::uint16_t> w, std::span<float> dx) {
  input_gradient_product(shape, dy, w, dx, multiplier(kind));
}

}  // namespace weir
