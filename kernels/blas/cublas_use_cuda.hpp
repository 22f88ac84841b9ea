#pragma once

/// @file
/// What every product by cuBLAS does before its call.

#include <cublas_v2.h>

#include <mutex>
#include <span>

#include "kernels/blas/blas_cuda.hpp"

namespace weir::cuda {

/// A product's arguments for cuBLAS. It is column-major, so it sees our matrices transposed.
/// c^T = op(b)^T op(a)^T: swap the factors and keep their flags.
struct SwappedGemm {
  /// Throws UsageError if a dimension exceeds cuBLAS's integer.
  SwappedGemm(GemmShape shape, GemmOptions options);

  int m;
  int n;  ///< also the stride of c
  int k;
  cublasOperation_t a_operation;
  cublasOperation_t b_operation;
  int a_stride;
  int b_stride;
};

/// Enqueues c = beta * c, the result of empty sums; a factor may then have no memory.
void scale_only(cudaStream_t stream, float beta, std::span<float> c);

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

}  // namespace weir::cuda
