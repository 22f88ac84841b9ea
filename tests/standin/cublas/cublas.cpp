// A stand-in cuBLAS: products of float matrices that OpenBLAS computes on the stream's thread, each
// as one kernel. It links its own runtime, as the toolkit's does.

#include <cblas.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>

#include "tests/standin/standin.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
};

namespace {

struct Gemm {
  CBLAS_TRANSPOSE transpose_a;
  CBLAS_TRANSPOSE transpose_b;
  int m, n, k;
  float alpha;
  const float* a;
  int lda;
  const float* b;
  int ldb;
  float beta;
  float* c;
  int ldc;
};

void run_gemm(const WeirStandinLaunch* launch) {
  const auto& gemm = *static_cast<const Gemm*>(launch->arguments[0]);
  cblas_sgemm(CblasColMajor, gemm.transpose_a, gemm.transpose_b, gemm.m, gemm.n, gemm.k, gemm.alpha,
              gemm.a, gemm.lda, gemm.b, gemm.ldb, gemm.beta, gemm.c, gemm.ldc);
}

/// Functions of the stand-in driver beyond CUDA. Not linked: like the toolkit's, the library can be
/// loaded without a driver.
struct StandIn {
  decltype(&weir_standin_take_fault) take_fault = nullptr;
  decltype(&weir_standin_register_kernel) register_kernel = nullptr;
};

const StandIn& stand_in() {
  static const StandIn kStandIn = [] {
    StandIn found;
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == nullptr) return found;
    found.take_fault =
        reinterpret_cast<decltype(found.take_fault)>(dlsym(driver, "weir_standin_take_fault"));
    found.register_kernel = reinterpret_cast<decltype(found.register_kernel)>(
        dlsym(driver, "weir_standin_register_kernel"));
    if (found.register_kernel != nullptr) {
      const std::size_t bytes = sizeof(Gemm);
      found.register_kernel(reinterpret_cast<const void*>(&run_gemm), nullptr, &run_gemm, &bytes,
                            1);
    }
    return found;
  }();
  return kStandIn;
}

/// Counts the call of `name`, and fails it on demand.
cublasStatus_t enter(const char* name) {
  if (stand_in().take_fault == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  return static_cast<cublasStatus_t>(stand_in().take_fault(name));
}

/// Calls `body` if the call of `name` may proceed and has a handle.
template <typename Body>
cublasStatus_t with(const char* name, cublasHandle_t handle, Body body) {
  const cublasStatus_t entered = enter(name);
  if (entered != CUBLAS_STATUS_SUCCESS) return entered;
  return handle == nullptr ? CUBLAS_STATUS_NOT_INITIALIZED : body();
}

/// Of a matrix of `rows` by `columns`, as stored.
bool valid_stride(int stride, int rows) { return stride >= std::max(1, rows); }

CBLAS_TRANSPOSE transpose_of(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const cublasStatus_t entered = enter("cublasCreate");
  if (entered != CUBLAS_STATUS_SUCCESS) return entered;
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (cudaFree(nullptr) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  // The bits of a product depend on the number of threads.
  openblas_set_num_threads(1);
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return with("cublasDestroy", handle, [&] {
    // Like the toolkit's: work enqueued with the handle ends before the handle does.
    (void)cudaDeviceSynchronize();
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version) {
  return with("cublasGetVersion", handle, [&] {
    if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *version = CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH;
    return CUBLAS_STATUS_SUCCESS;
  });
}

// Needs neither a handle nor a driver.
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUBLAS_VER_MAJOR;
      return CUBLAS_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = CUBLAS_VER_MINOR;
      return CUBLAS_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = CUBLAS_VER_PATCH;
      return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return with("cublasSetStream", handle, [&] {
    handle->stream = stream;
    handle->workspace = nullptr;  // back to cuBLAS's own
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return with("cublasGetStream", handle, [&] {
    if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t /*bytes*/) {
  return with("cublasSetWorkspace", handle, [&] {
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return with("cublasSetMathMode", handle, [&] {
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return with("cublasGetMathMode", handle, [&] {
    if (mode == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *mode = handle->math;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return with("cublasSetPointerMode", handle, [&] {
    handle->pointers = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return with("cublasGetPointerMode", handle, [&] {
    if (mode == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *mode = handle->pointers;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transpose_a,
                              cublasOperation_t transpose_b, int m, int n, int k,
                              const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
  return with("cublasSgemm", handle, [&] {
    if (handle->pointers != CUBLAS_POINTER_MODE_HOST) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (m < 0 || n < 0 || k < 0 || alpha == nullptr || beta == nullptr ||
        !valid_stride(lda, transpose_a == CUBLAS_OP_N ? m : k) ||
        !valid_stride(ldb, transpose_b == CUBLAS_OP_N ? k : n) || !valid_stride(ldc, m)) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    if (handle->workspace == nullptr) (void)stand_in().take_fault("cublasOwnWorkspace");
    Gemm gemm{transpose_of(transpose_a),
              transpose_of(transpose_b),
              m,
              n,
              k,
              *alpha,
              a,
              lda,
              b,
              ldb,
              *beta,
              c,
              ldc};
    void* arguments[] = {&gemm};
    const cudaError_t launched = cudaLaunchKernel(reinterpret_cast<const void*>(&run_gemm), dim3(1),
                                                  dim3(128), arguments, 0, handle->stream);
    return launched == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  });
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
#define NAME(name) \
  case name:       \
    return #name
    NAME(CUBLAS_STATUS_SUCCESS);
    NAME(CUBLAS_STATUS_NOT_INITIALIZED);
    NAME(CUBLAS_STATUS_ALLOC_FAILED);
    NAME(CUBLAS_STATUS_INVALID_VALUE);
    NAME(CUBLAS_STATUS_ARCH_MISMATCH);
    NAME(CUBLAS_STATUS_MAPPING_ERROR);
    NAME(CUBLAS_STATUS_EXECUTION_FAILED);
    NAME(CUBLAS_STATUS_INTERNAL_ERROR);
    NAME(CUBLAS_STATUS_NOT_SUPPORTED);
    NAME(CUBLAS_STATUS_LICENSE_ERROR);
#undef NAME
  }
  return "unrecognized status";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "the function requires an architectural feature absent from the device";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "an access to GPU memory space failed";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the requested functionality is not supported";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "the license check failed";
  }
  return "unrecognized status";
}

}  // extern "C"
