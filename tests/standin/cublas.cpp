// A stand-in cuBLAS: products of matrices of floats or 16-bit numbers that OpenBLAS computes on the
// stream's thread, each as one kernel. It links its own runtime, as the toolkit's does.

#include <cblas.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "kernels/precision/precision.hpp"
#include "tests/standin/after_fork.hpp"
#include "tests/standin/standin.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
};

namespace {

struct Formats {
  cudaDataType factors = CUDA_R_32F;
  cudaDataType result = CUDA_R_32F;
  bool tf32 = false;  ///< factors of floats are rounded to it
};

struct Gemm {
  CBLAS_TRANSPOSE transpose_a;
  CBLAS_TRANSPOSE transpose_b;
  int m, n, k;
  float alpha;
  const void* a;
  int lda;
  const void* b;
  int ldb;
  float beta;
  void* c;
  int ldc;
  Formats formats;
};

float number_at(const void* data, std::size_t at, cudaDataType type) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  const std::uint16_t word = static_cast<const std::uint16_t*>(data)[at];
  return type == CUDA_R_16BF ? weir::float_of_bf16(word) : weir::float_of_fp16(word);
}

/// Calls `body` with the place of each element of a matrix stored by columns.
template <typename Body>
void for_each_place(int rows, int columns, int stride, const Body& body) {
  for (int column = 0; column < columns; ++column) {
    const auto begin = static_cast<std::size_t>(column) * static_cast<std::size_t>(stride);
    for (int row = 0; row < rows; ++row) body(begin + static_cast<std::size_t>(row));
  }
}

std::vector<float> floats_for(int stride, int columns) {
  return std::vector<float>(static_cast<std::size_t>(stride) * static_cast<std::size_t>(columns));
}

/// The factor as the floats that are multiplied, where the factor has its own.
std::vector<float> rounded(const void* data, int rows, int columns, int stride, Formats formats) {
  std::vector<float> numbers = floats_for(stride, columns);
  for_each_place(rows, columns, stride, [&](std::size_t at) {
    const float number = number_at(data, at, formats.factors);
    numbers[at] = formats.tf32 ? weir::tf32_of_float(number) : number;
  });
  return numbers;
}

void multiply(const Gemm& gemm, const void* a, const void* b, void* c) {
  cblas_sgemm(CblasColMajor, gemm.transpose_a, gemm.transpose_b, gemm.m, gemm.n, gemm.k, gemm.alpha,
              static_cast<const float*>(a), gemm.lda, static_cast<const float*>(b), gemm.ldb,
              gemm.beta, static_cast<float*>(c), gemm.ldc);
}

void run_gemm(const WeirStandinLaunch* launch) {
  const auto& gemm = *static_cast<const Gemm*>(launch->arguments[0]);
  const Formats formats = gemm.formats;
  if (formats.factors == CUDA_R_32F && !formats.tf32) return multiply(gemm, gemm.a, gemm.b, gemm.c);
  const bool a_stays = gemm.transpose_a == CblasNoTrans;
  const bool b_stays = gemm.transpose_b == CblasNoTrans;
  const std::vector<float> a =
      rounded(gemm.a, a_stays ? gemm.m : gemm.k, a_stays ? gemm.k : gemm.m, gemm.lda, formats);
  const std::vector<float> b =
      rounded(gemm.b, b_stays ? gemm.k : gemm.n, b_stays ? gemm.n : gemm.k, gemm.ldb, formats);
  if (formats.result == CUDA_R_32F) return multiply(gemm, a.data(), b.data(), gemm.c);
  std::vector<float> sums = floats_for(gemm.ldc, gemm.n);
  const auto for_each_sum = [&](const auto& body) {
    for_each_place(gemm.m, gemm.n, gemm.ldc, body);
  };
  if (gemm.beta != 0.0F) {
    for_each_sum([&](std::size_t at) { sums[at] = number_at(gemm.c, at, formats.result); });
  }
  multiply(gemm, a.data(), b.data(), sums.data());
  for_each_sum([&](std::size_t at) {
    static_cast<std::uint16_t*>(gemm.c)[at] = formats.result == CUDA_R_16BF
                                                  ? weir::bf16_of_float(sums[at])
                                                  : weir::fp16_of_float(sums[at]);
  });
}

/// Functions of the stand-in driver beyond CUDA. Not linked: like the toolkit's, the library can be
/// loaded without a driver.
struct StandIn {
  decltype(&weir_standin_take_fault) take_fault = nullptr;
  decltype(&weir_standin_register_kernel) register_kernel = nullptr;
};

const StandIn& stand_in() {
  weir::standin::begin_use();
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
  if (weir::standin::is_forked()) return CUBLAS_STATUS_NOT_INITIALIZED;
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

template <typename T>
cublasStatus_t set(const char* name, cublasHandle_t handle, T cublasContext::*member, T value) {
  return with(name, handle, [&] {
    handle->*member = value;
    return CUBLAS_STATUS_SUCCESS;
  });
}
template <typename T>
cublasStatus_t get(const char* name, cublasHandle_t handle, T cublasContext::*member, T* value) {
  return with(name, handle, [&] {
    if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *value = handle->*member;
    return CUBLAS_STATUS_SUCCESS;
  });
}

struct Status {
  cublasStatus_t status;
  const char* name;
  const char* text;
};

Status find_status(cublasStatus_t status) {
#define STATUS(name, text) \
  Status { name, #name, text }
  static constexpr Status kStatuses[] = {
      STATUS(CUBLAS_STATUS_SUCCESS, "success"),
      STATUS(CUBLAS_STATUS_NOT_INITIALIZED, "the library was not initialized"),
      STATUS(CUBLAS_STATUS_ALLOC_FAILED, "the resource allocation failed"),
      STATUS(CUBLAS_STATUS_INVALID_VALUE,
             "an unsupported value or parameter was passed to the function"),
      STATUS(CUBLAS_STATUS_ARCH_MISMATCH,
             "the function requires an architectural feature absent from the device"),
      STATUS(CUBLAS_STATUS_MAPPING_ERROR, "an access to GPU memory space failed"),
      STATUS(CUBLAS_STATUS_EXECUTION_FAILED, "the function failed to launch on the GPU"),
      STATUS(CUBLAS_STATUS_INTERNAL_ERROR, "an internal operation failed"),
      STATUS(CUBLAS_STATUS_NOT_SUPPORTED, "the requested functionality is not supported"),
      STATUS(CUBLAS_STATUS_LICENSE_ERROR, "the license check failed"),
  };
#undef STATUS
  const auto* const found = std::ranges::find(kStatuses, status, &Status::status);
  if (found != std::end(kStatuses)) return *found;
  return {status, "unrecognized status", "unrecognized status"};
}

/// Of a matrix of `rows` by `columns`, as stored.
bool valid_stride(int stride, int rows) { return stride >= std::max(1, rows); }

CBLAS_TRANSPOSE transpose_of(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}

/// Enqueues a product, with the factors that `alpha` and `beta` point to.
cublasStatus_t enqueue(cublasContext& handle, const float* alpha, const float* beta, Gemm gemm) {
  if (handle.pointers != CUBLAS_POINTER_MODE_HOST) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool a_stays = gemm.transpose_a == CblasNoTrans;
  const bool b_stays = gemm.transpose_b == CblasNoTrans;
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0 || alpha == nullptr || beta == nullptr ||
      !valid_stride(gemm.lda, a_stays ? gemm.m : gemm.k) ||
      !valid_stride(gemm.ldb, b_stays ? gemm.k : gemm.n) || !valid_stride(gemm.ldc, gemm.m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (gemm.m == 0 || gemm.n == 0) return CUBLAS_STATUS_SUCCESS;
  if (handle.workspace == nullptr) (void)stand_in().take_fault("cublasOwnWorkspace");
  gemm.alpha = *alpha;
  gemm.beta = *beta;
  void* arguments[] = {&gemm};
  const cudaError_t launched = cudaLaunchKernel(reinterpret_cast<const void*>(&run_gemm), dim3(1),
                                                dim3(128), arguments, 0, handle.stream);
  return launched == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
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
  constexpr int kVersion[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
  if (type < MAJOR_VERSION || type > PATCH_LEVEL) return CUBLAS_STATUS_INVALID_VALUE;
  *value = kVersion[type];
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return with("cublasSetStream", handle, [&] {
    handle->stream = stream;
    handle->workspace = nullptr;  // back to cuBLAS's own
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return get("cublasGetStream", handle, &cublasContext::stream, stream);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t /*bytes*/) {
  return with("cublasSetWorkspace", handle, [&] {
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return set("cublasSetMathMode", handle, &cublasContext::math, mode);
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return get("cublasGetMathMode", handle, &cublasContext::math, mode);
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return set("cublasSetPointerMode", handle, &cublasContext::pointers, mode);
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return get("cublasGetPointerMode", handle, &cublasContext::pointers, mode);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transpose_a,
                              cublasOperation_t transpose_b, int m, int n, int k,
                              const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
  return with("cublasSgemm", handle, [&] {
    return enqueue(*handle, alpha, beta,
                   {transpose_of(transpose_a), transpose_of(transpose_b), m, n, k, 0, a, lda, b,
                    ldb, 0, c, ldc, Formats{}});
  });
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t /*algorithm*/) {
  return with("cublasGemmEx", handle, [&] {
    const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    const bool words = a_type == CUDA_R_16BF || a_type == CUDA_R_16F;
    const bool factors = a_type == b_type && (words ? !tf32 : a_type == CUDA_R_32F);
    const bool result = c_type == CUDA_R_32F || (words && c_type == a_type);
    if (!factors || !result || (compute != CUBLAS_COMPUTE_32F && !tf32)) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return enqueue(*handle, static_cast<const float*>(alpha), static_cast<const float*>(beta),
                   {transpose_of(transpose_a), transpose_of(transpose_b), m, n, k, 0, a, lda, b,
                    ldb, 0, c, ldc, Formats{a_type, c_type, tf32}});
  });
}

const char* cublasGetStatusName(cublasStatus_t status) { return find_status(status).name; }
const char* cublasGetStatusString(cublasStatus_t status) { return find_status(status).text; }

}  // extern "C"
