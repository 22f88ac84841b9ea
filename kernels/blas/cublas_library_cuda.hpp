#pragma once

/// @file
/// The cuBLAS functions that the products of this folder call, looked up on first use.

#include <cublas_v2.h>

#include <string>

namespace weir::cuda {

/// Written out, because the header declares two functions of this name for C++.
using CublasGemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                        int, int, const void*, const void*, cudaDataType, int,
                                        const void*, cudaDataType, int, const void*, void*,
                                        cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);

/// The loaded cuBLAS, with the library's symbol names: its header renames most of them.
struct CublasLibrary {
  decltype(&::cublasCreate_v2) create = nullptr;
  decltype(&::cublasDestroy_v2) destroy = nullptr;
  decltype(&::cublasSetStream_v2) set_stream = nullptr;
  decltype(&::cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&::cublasSetMathMode) set_math_mode = nullptr;
  decltype(&::cublasSgemm_v2) sgemm = nullptr;
  CublasGemmEx gemm_ex = nullptr;
  decltype(&::cublasGetStatusName) status_name = nullptr;
  decltype(&::cublasGetStatusString) status_text = nullptr;

  std::string file;     ///< where the loader found it
  std::string version;  ///< `13.0.2`, from the library itself, which needs no device for that

  /// Throws Error with the call, the status and cuBLAS's text unless `status` is success.
  void check(cublasStatus_t status, const char* call) const;
};

/// Returns the library: the loader's choice, else the toolkit's in CUDA_PATH or CUDA_HOME, of the
/// major version used at compile time. Loaded once and kept to the process's end. Throws UsageError
/// if there is none; a later call looks again. Thread-safe.
[[nodiscard]] const CublasLibrary& cublas_library();

}  // namespace weir::cuda
