#pragma once

/// @file
/// The functions of cuBLAS that blas_cuda.cpp calls, looked up in the library when first asked for.

#include <cublas_v2.h>

#include <string>

namespace weir::cuda {

/// cuBLAS as it was found. The names are those of the library: its header renames most of them.
struct CublasLibrary {
  decltype(&::cublasCreate_v2) create = nullptr;
  decltype(&::cublasDestroy_v2) destroy = nullptr;
  decltype(&::cublasSetStream_v2) set_stream = nullptr;
  decltype(&::cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&::cublasSetMathMode) set_math_mode = nullptr;
  decltype(&::cublasSgemm_v2) sgemm = nullptr;
  decltype(&::cublasGetStatusName) status_name = nullptr;
  decltype(&::cublasGetStatusString) status_text = nullptr;

  std::string file;     ///< where the loader found it
  std::string version;  ///< `13.0.2`; its own word, for which no device is needed

  /// Throws Error, naming the call, the status and what cuBLAS says of it, unless it is success.
  void check(cublasStatus_t status, const char* call) const;
};

/// The library: the loader's own choice, or else that of the toolkit in CUDA_PATH or CUDA_HOME, of
/// the major version that this was compiled with. Loaded once and kept to the end of the process.
/// Throws UsageError when there is none; a later call looks again. Thread-safe.
[[nodiscard]] const CublasLibrary& cublas_library();

}  // namespace weir::cuda
