#include "kernels/blas/blas_mixed_cuda.hpp"

#include "allocator/base/error_cuda.hpp"
#include "kernels/blas/cublas_library_cuda.hpp"
#include "kernels/blas/cublas_use_cuda.hpp"
#include "kernels/blas/mixed_checks.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/workspace_cuda.hpp"

namespace weir::cuda {
namespace {

/// What a product is made of, for cuBLAS.
struct Formats {
  cudaDataType factors;
  cudaDataType result;
  cublasComputeType_t compute;
};

cudaDataType type_of(HalfKind kind) { return kind == HalfKind::kBf16 ? CUDA_R_16BF : CUDA_R_16F; }

/// Enqueues the result of empty sums.
void empty_sums(cudaStream_t stream, float beta, std::span<float> c) {
  scale_only(stream, beta, c);
}
/// Zeros, whose word is 0 in both formats: words are only overwritten.
void empty_sums(cudaStream_t stream, float /*beta*/, std::span<std::uint16_t> c) {
  check_cuda(cudaMemsetAsync(c.data(), 0, c.size_bytes(), stream), "cudaMemsetAsync");
}

template <typename T, typename C>
void enqueue(CublasHandle& handle, cudaStream_t stream, Formats formats, GemmShape shape,
             std::span<const T> a, std::span<const T> b, std::span<C> c, GemmOptions options,
             std::span<float> workspace) {
  require_matrix({"gemm", "a"}, a.size(), shape.m, shape.k);
  require_matrix({"gemm", "b"}, b.size(), shape.k, shape.n);
  require_matrix({"gemm", "c"}, c.size(), shape.m, shape.n);
  require_workspace("gemm", workspace);
  const SwappedGemm swapped(shape, options);
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) return empty_sums(stream, options.beta, c);

  const CublasLibrary& library = cublas_library();
  const CublasUse use(handle, stream, workspace);
  library.check(
      library.gemm_ex(use.context(), swapped.b_operation, swapped.a_operation, swapped.n, swapped.m,
                      swapped.k, &options.alpha, b.data(), formats.factors, swapped.b_stride,
                      a.data(), formats.factors, swapped.a_stride, &options.beta, c.data(),
                      formats.result, swapped.n, formats.compute, CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

}  // namespace

void gemm(CublasHandle& handle, cudaStream_t stream, Precision precision, GemmShape shape,
          std::span<const float> a, std::span<const float> b, std::span<float> c,
          GemmOptions options, std::span<float> workspace) {
  require_float_factors(precision);
  if (precision == Precision::kFloat32) {
    return gemm(handle, stream, shape, a, b, c, options, workspace);
  }
  enqueue(handle, stream, {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32}, shape, a, b, c,
          options, workspace);
}

void gemm(CublasHandle& handle, cudaStream_t stream, HalfKind kind, GemmShape shape,
          std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, std::span<float> c,
          GemmOptions options, std::span<float> workspace) {
  enqueue(handle, stream, {type_of(kind), CUDA_R_32F, CUBLAS_COMPUTE_32F}, shape, a, b, c, options,
          workspace);
}

void gemm(CublasHandle& handle, cudaStream_t stream, HalfKind kind, GemmShape shape,
          std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
          std::span<std::uint16_t> c, GemmOptions options, std::span<float> workspace) {
  require_overwriting(options);
  enqueue(handle, stream, {type_of(kind), type_of(kind), CUBLAS_COMPUTE_32F}, shape, a, b, c,
          options, workspace);
}

}  // namespace weir::cuda
