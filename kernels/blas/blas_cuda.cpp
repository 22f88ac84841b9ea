#include "kernels/blas/blas_cuda.hpp"

#include <string>

#include "allocator/base/log.hpp"
#include "kernels/blas/cublas_library_cuda.hpp"
#include "kernels/blas/cublas_use_cuda.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/workspace_cuda.hpp"

namespace weir::cuda {
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

void gemm(CublasHandle& handle, cudaStream_t stream, GemmShape shape, std::span<const float> a,
          std::span<const float> b, std::span<float> c, GemmOptions options,
          std::span<float> workspace) {
  require_matrix({"gemm", "a"}, a.size(), shape.m, shape.k);
  require_matrix({"gemm", "b"}, b.size(), shape.k, shape.n);
  require_matrix({"gemm", "c"}, c.size(), shape.m, shape.n);
  require_workspace("gemm", workspace);
  const SwappedGemm swapped(shape, options);
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) return scale_only(stream, options.beta, c);

  const CublasLibrary& library = cublas_library();
  const CublasUse use(handle, stream, workspace);
  library.check(library.sgemm(use.context(), swapped.b_operation, swapped.a_operation, swapped.n,
                              swapped.m, swapped.k, &options.alpha, b.data(), swapped.b_stride,
                              a.data(), swapped.a_stride, &options.beta, c.data(), swapped.n),
                "cublasSgemm");
}

}  // namespace weir::cuda
