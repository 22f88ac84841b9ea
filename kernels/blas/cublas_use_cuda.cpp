#include "kernels/blas/cublas_use_cuda.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "kernels/blas/cublas_library_cuda.hpp"
#include "kernels/elementwise/elementwise_cuda.hpp"

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

}  // namespace

SwappedGemm::SwappedGemm(GemmShape shape, GemmOptions options)
    : m(blas_integer(shape.m)),
      n(blas_integer(shape.n)),
      k(blas_integer(shape.k)),
      a_operation(operation(options.a)),
      b_operation(operation(options.b)),
      a_stride(row_stride(options.a, m, k)),
      b_stride(row_stride(options.b, k, n)) {}

void scale_only(cudaStream_t stream, float beta, std::span<float> c) {
  if (beta == 0.0F) {
    fill(stream, c, 0.0F);
  } else if (beta != 1.0F) {
    scale(stream, beta, c);
  }
}

CublasUse::CublasUse(CublasHandle& handle, cudaStream_t stream, std::span<float> workspace)
    : lock_(handle.mutex_), context_(handle.context_) {
  const CublasLibrary& library = cublas_library();
  // In this order: setting the stream resets the workspace to cuBLAS's own.
  library.check(library.set_stream(context_, stream), "cublasSetStream");
  library.check(library.set_workspace(context_, workspace.data(), workspace.size_bytes()),
                "cublasSetWorkspace");
}

}  // namespace weir::cuda
