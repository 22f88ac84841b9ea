#include "kernels/blas/blas_cuda.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "kernels/blas/cublas_library_cuda.hpp"
#include "kernels/elementwise/elementwise_cuda.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/workspace_cuda.hpp"

namespace weir::cuda {
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

/// Computes beta * c, the result for empty sums.
void scale_only(cudaStream_t stream, float beta, std::span<float> c) {
  if (beta == 0.0F) {
    fill(stream, c, 0.0F);
  } else if (beta != 1.0F) {
    scale(stream, beta, c);
  }
}

}  // namespace

CublasHandle::CublasHandle() {
  const CublasLibrary& library = cublas_library();
  library.check(library.create(&context_), "cublasCreate");
  // Plain float32: no TF32 and no sums of bfloat16 parts, whatever the environment asks for.
  const cublasStatus_t status = library.set_math_mode(context_, CUBLAS_DEFAULT_MATH);
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

void gemm(CublasHandle& handle, cudaStream_t stream, GemmShape shape, std::span<const float> a,
          std::span<const float> b, std::span<float> c, GemmOptions options,
          std::span<float> workspace) {
  require_matrix({"gemm", "a"}, a.size(), shape.m, shape.k);
  require_matrix({"gemm", "b"}, b.size(), shape.k, shape.n);
  require_matrix({"gemm", "c"}, c.size(), shape.m, shape.n);
  require_workspace("gemm", workspace);
  const int m = blas_integer(shape.m);
  const int n = blas_integer(shape.n);
  const int k = blas_integer(shape.k);
  if (m == 0 || n == 0) return;
  if (k == 0) return scale_only(stream, options.beta, c);

  const CublasLibrary& library = cublas_library();
  const std::lock_guard lock(handle.mutex_);
  // In this order: setting the stream resets the workspace to cuBLAS's own.
  library.check(library.set_stream(handle.context_, stream), "cublasSetStream");
  library.check(library.set_workspace(handle.context_, workspace.data(), workspace.size_bytes()),
                "cublasSetWorkspace");
  // cuBLAS is column-major, so it sees our matrices transposed. c^T = op(b)^T op(a)^T: swap the
  // factors and keep their flags.
  library.check(library.sgemm(handle.context_, operation(options.b), operation(options.a), n, m, k,
                              &options.alpha, b.data(), row_stride(options.b, k, n), a.data(),
                              row_stride(options.a, m, k), &options.beta, c.data(), n),
                "cublasSgemm");
}

}  // namespace weir::cuda
