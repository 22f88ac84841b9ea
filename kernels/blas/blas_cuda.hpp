#pragma once

/// @file
/// Matrix products by cuBLAS, on row-major matrices without gaps between the rows.
///
/// The first handle loads cuBLAS, so that a program starts without it installed. The products of
/// this file are computed in float32: TF32 keeps only 10 bits of each factor's mantissa, too few to
/// check a gradient against the CPU's. Other precisions: blas_mixed_cuda.hpp.
///
/// The bits of a product repeat from run to run for one library version, kind of device, shape and
/// workspace size. The library promises this for devices of the same architecture and number of
/// multiprocessors, unless several streams are busy and it chooses their workspaces itself; a
/// caller's own workspace for each stream prevents that. Source: cuBLAS documentation, section
/// "Results reproducibility". The bits differ from the CPU's:
/// error| <= (k + 1) 2^-24 sum |a b| to first order, in whatever order the sum is taken.

#include <cuda_runtime_api.h>

#include <mutex>
#include <span>

#include "kernels/blas/blas.hpp"

struct cublasContext;

namespace weir::cuda {

/// A cuBLAS handle for the device current at construction. Thread-safe by its own lock: products of
/// one handle are enqueued one after the other. Destroy it before its device is reset.
class CublasHandle {
 public:
  /// Throws UsageError if cuBLAS is not found, Error if it fails.
  CublasHandle();
  ~CublasHandle();
  CublasHandle(const CublasHandle&) = delete;
  CublasHandle& operator=(const CublasHandle&) = delete;
  CublasHandle(CublasHandle&&) = delete;
  CublasHandle& operator=(CublasHandle&&) = delete;

 private:
  friend class CublasUse;

  std::mutex mutex_;  ///< guards the handle's stream and workspace between calls
  cublasContext* context_ = nullptr;
};

/// Enqueues c = alpha * op(a) * op(b) + beta * c on `stream`, on device memory; arguments as in
/// blas.hpp. With k = 0 the product is zero. Throws UsageError and enqueues nothing if a size does
/// not match, a dimension exceeds a 32-bit integer, or the workspace is too small or misaligned;
/// Error if cuBLAS fails.
void gemm(CublasHandle& handle, cudaStream_t stream, GemmShape shape, std::span<const float> a,
          std::span<const float> b, std::span<float> c, GemmOptions options,
          std::span<float> workspace);

}  // namespace weir::cuda
