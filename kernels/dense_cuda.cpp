#include "kernels/dense_cuda.hpp"

#include "kernels/parts/check.hpp"
#include "kernels/parts/workspace_cuda.hpp"

namespace weir::cuda {

void dense_forward(CublasHandle& blas, cudaStream_t stream, DenseShape shape,
                   std::span<const float> x, std::span<const float> w, std::span<const float> b,
                   std::span<float> y, Activation activation, std::span<float> workspace) {
  require_matrix({"dense_forward", "x"}, x.size(), shape.m, shape.k);
  require_matrix({"dense_forward", "w"}, w.size(), shape.k, shape.n);
  require_elements({"dense_forward", "b"}, b.size(), shape.n);
  require_matrix({"dense_forward", "y"}, y.size(), shape.m, shape.n);
  gemm(blas, stream, {.m = shape.m, .n = shape.n, .k = shape.k}, x, w, y, {}, workspace);
  bias_activation(stream, shape, b, y, activation);
}

void dense_weight_gradient(CublasHandle& blas, cudaStream_t stream, DenseShape shape,
                           std::span<const float> x, std::span<const float> dy, std::span<float> dw,
                           std::span<float> workspace) {
  require_matrix({"dense_weight_gradient", "x"}, x.size(), shape.m, shape.k);
  require_matrix({"dense_weight_gradient", "dy"}, dy.size(), shape.m, shape.n);
  require_matrix({"dense_weight_gradient", "dw"}, dw.size(), shape.k, shape.n);
  gemm(blas, stream, {.m = shape.k, .n = shape.n, .k = shape.m}, x, dy, dw, {.a = Transpose::kYes},
       workspace);
}

void dense_input_gradient(CublasHandle& blas, cudaStream_t stream, DenseShape shape,
                          std::span<const float> dy, std::span<const float> w, std::span<float> dx,
                          std::span<float> workspace) {
  require_matrix({"dense_input_gradient", "dy"}, dy.size(), shape.m, shape.n);
  require_matrix({"dense_input_gradient", "w"}, w.size(), shape.k, shape.n);
  require_matrix({"dense_input_gradient", "dx"}, dx.size(), shape.m, shape.k);
  gemm(blas, stream, {.m = shape.m, .n = shape.k, .k = shape.n}, dy, w, dx, {.b = Transpose::kYes},
       workspace);
}

}  // namespace weir::cuda
