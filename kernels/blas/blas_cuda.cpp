#include <cublas_v2.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/error_cuda.hpp"
#include "allocator/base/log.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/blas/cublas_library_cuda.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/parts/workspace_cuda.hpp"

namespace weir::cuda {

/// The handle, locked, with a stream and a workspace.
class CublasUse {
 public:
  /// Throws Error if cuBLAS fails.
  CublasUse(CublasHandle& handle, cudaStream_t stream, std::span<float> workspace);

  [[nodiscard]] cublasContext* context() const { return context_; }

 private:
  std::lock_guard<std::mutex> lock_;
  cublasContext* context_;
};

namespace {

int blas_integer(std::size_t dimension) {
  if (!std::in_range<int>(dimension)) {
    throw UsageError("gemm: dimension " + std::to_string(dimension) +
                     " exceeds cuBLAS's largest, " +
                     std::to_string(std::numeric_limits<int>::max()));
  }
  return static_cast<int>(dimension);
}

cublasOperation_t operation(Transpose transpose) {
  return transpose == Transpose::kYes ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/// Returns the distance between two rows, in elements; cuBLAS requires at least 1.
int row_stride(Transpose transpose, int rows, int columns) {
  return std::max(1, transpose == Transpose::kYes ? rows : columns);
}

/// A product's arguments for cuBLAS. It is column-major, so it sees our matrices transposed.
/// c^T = op(b)^T op(a)^T: swap the factors and keep their flags.
struct SwappedGemm {
  /// Throws UsageError if a dimension exceeds cuBLAS's integer.
  SwappedGemm(GemmShape shape, GemmOptions options)
      : m(blas_integer(shape.m)),
        n(blas_integer(shape.n)),
        k(blas_integer(shape.k)),
        a_operation(operation(options.a)),
        b_operation(operation(options.b)),
        a_stride(row_stride(options.a, m, k)),
        b_stride(row_stride(options.b, k, n)) {}

  int m;
  int n;  ///< also the stride of c
  int k;
  cublasOperation_t a_operation;
  cublasOperation_t b_operation;
  int a_stride;
  int b_stride;
};

/// The types of a product in cuBLAS: of its factors, its result and its sums.
struct Formats {
  cudaDataType factors;
  cudaDataType result;
  cublasComputeType_t compute;
};

cudaDataType type_of(HalfKind kind) { return kind == HalfKind::kBf16 ? CUDA_R_16BF : CUDA_R_16F; }

/// Enqueues c = beta * c, the result of empty sums; a factor may then have no memory.
void empty_sums(cudaStream_t stream, float beta, std::span<float> c) {
  if (beta == 0.0F) {
    fill(stream, c, 0.0F);
  } else if (beta != 1.0F) {
    scale(stream, beta, c);
  }
}
/// Zeros, whose word is 0 in both formats: words are only overwritten.
void empty_sums(cudaStream_t stream, float /*beta*/, std::span<std::uint16_t> c) {
  check_cuda(cudaMemsetAsync(c.data(), 0, c.size_bytes(), stream), "cudaMemsetAsync");
}

/// Checks a product and enqueues it: `multiply(library, context, swapped)` calls cuBLAS.
template <typename T, typename C, typename Multiply>
void enqueue(CublasHandle& handle, cudaStream_t stream, GemmShape shape, std::span<const T> a,
             std::span<const T> b, std::span<C> c, GemmOptions options, std::span<float> workspace,
             const char* name, const Multiply& multiply) {
  require_product(shape, a.size(), b.size(), c.size());
  require_workspace("gemm", workspace);
  const SwappedGemm swapped(shape, options);
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) return empty_sums(stream, options.beta, c);
  const CublasLibrary& library = cublas_library();
  const CublasUse use(handle, stream, workspace);
  library.check(multiply(library, use.context(), swapped), name);
}

template <typename T, typename C>
void enqueue_in(Formats formats, CublasHandle& handle, cudaStream_t stream, GemmShape shape,
                std::span<const T> a, std::span<const T> b, std::span<C> c, GemmOptions options,
                std::span<float> workspace) {
  enqueue(handle, stream, shape, a, b, c, options, workspace, "cublasGemmEx",
          [&](const CublasLibrary& library, cublasContext* context, const SwappedGemm& swapped) {
            return library.gemm_ex(context, swapped.b_operation, swapped.a_operation, swapped.n,
                                   swapped.m, swapped.k, &options.alpha, b.data(), formats.factors,
                                   swapped.b_stride, a.data(), formats.factors, swapped.a_stride,
                                   &options.beta, c.data(), formats.result, swapped.n,
                                   formats.compute, CUBLAS_GEMM_DEFAULT);
          });
}

}  // namespace

CublasHandle::CublasHandle() {
  const CublasLibrary& library = cublas_library();
  library.check(library.create(&context_), "cublasCreate");
  // Plain float32: no TF32 and no sums of bfloat16 parts, whatever the environment asks for. The
  // flag is for products with a 16-bit result only: their parts, too, are summed in float32.
  const cublasStatus_t status = library.set_math_mode(
      context_, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                          CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
  if (status == CUBLAS_STATUS_SUCCESS) return;
  (void)library.destroy(context_);  // report the first failure
  library.check(status, "cublasSetMathMode");
}

CublasHandle::~CublasHandle() {
  const CublasLibrary& library = cublas_library();
  const cublasStatus_t status = library.destroy(context_);
  if (status == CUBLAS_STATUS_SUCCESS) return;
  log(LogLevel::kError, std::string("cublasDestroy failed: ") + library.status_text(status));
}

CublasUse::CublasUse(CublasHandle& handle, cudaStream_t stream, std::span<float> workspace)
    : lock_(handle.mutex_), context_(handle.context_) {
  const CublasLibrary& library = cublas_library();
  // In this order: setting the stream resets the workspace to cuBLAS's own.
  library.check(library.set_stream(context_, stream), "cublasSetStream");
  library.check(library.set_workspace(context_, workspace.data(), workspace.size_bytes()),
                "cublasSetWorkspace");
}

void gemm(CublasHandle& handle, cudaStream_t stream, Precision precision, GemmShape shape,
          std::span<const float> a, std::span<const float> b, std::span<float> c,
          GemmOptions options, std::span<float> workspace) {
  require_float_factors(precision);
  if (precision == Precision::kTf32) {
    return enqueue_in({CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32}, handle, stream, shape,
                      a, b, c, options, workspace);
  }
  enqueue(handle, stream, shape, a, b, c, options, workspace, "cublasSgemm",
          [&](const CublasLibrary& library, cublasContext* context, const SwappedGemm& swapped) {
            return library.sgemm(context, swapped.b_operation, swapped.a_operation, swapped.n,
                                 swapped.m, swapped.k, &options.alpha, b.data(), swapped.b_stride,
                                 a.data(), swapped.a_stride, &options.beta, c.data(), swapped.n);
          });
}

void gemm(CublasHandle& handle, cudaStream_t stream, HalfKind kind, GemmShape shape,
          std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, std::span<float> c,
          GemmOptions options, std::span<float> workspace) {
  enqueue_in({type_of(kind), CUDA_R_32F, CUBLAS_COMPUTE_32F}, handle, stream, shape, a, b, c,
             options, workspace);
}

void gemm(CublasHandle& handle, cudaStream_t stream, HalfKind kind, GemmShape shape,
          std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
          std::span<std::uint16_t> c, GemmOptions options, std::span<float> workspace) {
  require_overwriting(options);
  enqueue_in({type_of(kind), type_of(kind), CUBLAS_COMPUTE_32F}, handle, stream, shape, a, b, c,
             options, workspace);
}

}  // namespace weir::cuda
