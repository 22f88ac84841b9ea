#include "kernels/dense_mixed_cuda.hpp"

#include "kernels/blas/blas_mixed_cuda.hpp"
#include "kernels/dense_cuda.hpp"
#include "kernels/dense_products.hpp"

namespace weir::cuda {
namespace {

/// `how` is a Precision or a HalfKind.
template <typename How>
auto multiplier(CublasHandle& blas, cudaStream_t stream, How how, std::span<float> workspace) {
  return [&blas, stream, how, workspace](GemmShape shape, auto a, auto b, std::span<float> c,
                                         GemmOptions options) {
    gemm(blas, stream, how, shape, a, b, c, options, workspace);
  };
}

}  // namespace

void dense_forward(CublasHandle& blas, cudaStream_t stream, Precision precision, DenseShape shape,
                   std::span<const float> x, std::span<const float> w, std::span<const float> b,
                   std::span<float> y, Activation activation, std::span<float> workspace) {
  forward_product(shape, x, w, b, y, multiplier(blas, stream, precision, workspace));
  bias_activation(stream, shape, b, y, activation);
}

void dense_weight_gradient(CublasHandle& blas, cudaStream_t stream, Precision precision,
                           DenseShape shape, std::span<const float> x, std::span<const float> dy,
                           std::span<float> dw, std::span<float> workspace) {
  weight_gradient_product(shape, x, dy, dw, multiplier(blas, stream, precision, workspace));
}

void dense_input_gradient(CublasHandle& blas, cudaStream_t stream, Precision precision,
                          DenseShape shape, std::span<const float> dy, std::span<const float> w,
                          std::span<float> dx, std::span<float> workspace) {
  input_gradient_product(shape, dy, w, dx, multiplier(blas, stream, precision, workspace));
}

void dense_forward(CublasHandle& blas, cudaStream_t stream, HalfKind kind, DenseShape shape,
                   std::span<const std::uint16_t> x, std::span<const std::uint16_t> w,
                   std::span<const float> b, std::span<float> y, Activation activation,
                   std::span<float> workspace) {
  forward_product(shape, x, w, b, y, multiplier(blas, stream, kind, workspace));
  bias_activation(stream, shape, b, y, activation);
}

void dense_weight_gradient(CublasHandle& blas, cudaStream_t stream, HalfKind kind, DenseShape shape,
                           std::span<const std::uint16_t> x, std::span<const std::uint16_t> dy,
                           std::span<float> dw, std::span<float> workspace) {
  weight_gradient_product(shape, x, dy, dw, multiplier(blas, stream, kind, workspace));
}

void dense_input_gradient(CublasHandle& blas, cudaStream_t stream, HalfKind kind, DenseShape shape,
                          std::span<const std::uint16_t> dy, std::span<const std::uint16_t> w,
                          std::span<float> dx, std::span<float> workspace) {
  input_gradient_product(shape, dy, w, dx, multiplier(blas, stream, kind, workspace));
}

}  // namespace weir::cuda
