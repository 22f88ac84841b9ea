#pragma once

/// @file
/// Matrix products by cuBLAS, on row-major matrices without gaps between the rows.
///
/// cuBLAS is loaded when the first handle is made, and not before, so that a program starts where
/// it is not installed. Products are computed in float32 throughout: TF32 would keep only 10 bits
/// of each factor's mantissa, so that a gradient could not be checked against the CPU's.
///
/// The bits of a product repeat from run to run with one version of the library on one kind of
/// device, for one shape and one size of workspace. The library promises this for devices of the
/// same architecture and number of multiprocessors, unless several streams are busy and it chooses
/// workspaces for them itself, which a workspace of the caller's own for each stream prevents.
/// Source: cuBLAS documentation, section "Results reproducibility". The bits are not the CPU's:
/// |error| <= (k + 1) 2^-24 sum |a b| to first order, in whatever order the sum is taken.

#include <cuda_runtime_api.h>

#include <mutex>
#include <span>

#include "kernels/blas/blas.hpp"

struct cublasContext;

namespace weir::cuda {

/// A cuBLAS handle for the device that is current when it is made. Thread-safe by a lock of its
/// own: two products of one handle are enqueued one after the other. To be destroyed before its
/// device is reset.
class CublasHandle {
 public:
  /// Throws UsageError when cuBLAS is not to be found, Error when it fails.
  CublasHandle();
  ~CublasHandle();
  CublasHandle(const CublasHandle&) = delete;
  CublasHandle& operator=(const CublasHandle&) = delete;
  CublasHandle(CublasHandle&&) = delete;
  CublasHandle& operator=(CublasHandle&&) = delete;

 private:
  friend void gemm(CublasHandle& handle, cudaStream_t stream, GemmShape shape,
                   std::span<const float> a, std::span<const float> b, std::span<float> c,
                   GemmOptions options, std::span<float> workspace);

  std::mutex mutex_;  ///< guards what a handle holds between calls: its stream and workspace
  cublasContext* context_ = nullptr;
};

/// c = alpha * op(a) * op(b) + beta * c, of device memory, enqueued on `stream`; blas.hpp says what
/// the arguments are. With k = 0 the product is zero. Throws UsageError, with nothing enqueued,
/// when a size does not fit its matrix, a dimension exceeds a 32-bit integer or the workspace is
/// too small or not aligned; Error when cuBLAS fails.
void gemm(CublasHandle& handle, cudaStream_t stream, GemmShape shape, std::span<const float> a,
          std::span<const float> b, std::span<float> c, GemmOptions options,
          std::span<float> workspace);

}  // namespace weir::cuda
