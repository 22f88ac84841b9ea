#include "kernels/blas/cublas_library_cuda.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "allocator/base/error.hpp"
#include "kernels/blas/cublas_places.hpp"

namespace weir::cuda {
namespace {

constexpr int kMajor = CUDART_VERSION / 1000;

std::string library_name() { return "libcublas.so." + std::to_string(kMajor); }

/// Returns null and adds the loader's reason to `reasons` on failure.
void* open(const std::string& path, std::string& reasons) {
  // Local: symbols are looked up by name and must not be visible to the rest of the process.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    if (!reasons.empty()) reasons += "; ";
    reasons += reason != nullptr ? reason : path.c_str();
  }
  return library;
}

void* open_library() {
  std::string reasons;
  for (const std::string& place : cublas_places(process_environment(), kMajor)) {
    if (void* const library = open(place, reasons)) return library;
  }
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  throw UsageError("matrix products on the GPU need cuBLAS: install the CUDA toolkit's " +
                   library_name() + ", or name its folder in LD_LIBRARY_PATH (now '" +
                   (path != nullptr ? path : "") + "'), or the toolkit's in CUDA_PATH (" + reasons +
                   ")");
}

/// Returns the file that defines `symbol`.
std::string file_of(const void* symbol) {
  Dl_info found{};
  if (dladdr(symbol, &found) == 0 || found.dli_fname == nullptr) return "";
  return found.dli_fname;
}

template <typename GetProperty>
std::string version_from(const GetProperty& get_property) {
  std::string version;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    if (get_property(part, &value) != CUBLAS_STATUS_SUCCESS) return "";
    version += (version.empty() ? "" : ".") + std::to_string(value);
  }
  return version;
}

template <typename Function>
void look_up(void* library, const char* name, Function& function) {
  void* const symbol = dlsym(library, name);
  if (symbol == nullptr) {
    throw UsageError(library_name() + " has no " + name + ": cuBLAS 12.0 or later is needed");
  }
  function = reinterpret_cast<Function>(symbol);
}

CublasLibrary load() {
  void* const library = open_library();
  CublasLibrary found;
  look_up(library, "cublasCreate_v2", found.create);
  look_up(library, "cublasDestroy_v2", found.destroy);
  look_up(library, "cublasSetStream_v2", found.set_stream);
  look_up(library, "cublasSetWorkspace_v2", found.set_workspace);
  look_up(library, "cublasSetMathMode", found.set_math_mode);
  look_up(library, "cublasSgemm_v2", found.sgemm);
  look_up(library, "cublasGemmEx", found.gemm_ex);
  look_up(library, "cublasGetStatusName", found.status_name);
  look_up(library, "cublasGetStatusString", found.status_text);
  decltype(&::cublasGetProperty) get_property = nullptr;
  look_up(library, "cublasGetProperty", get_property);
  found.version = version_from(get_property);
  found.file = file_of(reinterpret_cast<const void*>(found.create));
  return found;
}

}  // namespace

void CublasLibrary::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(std::string(call) + " failed: " + status_name(status) + " (" +
              std::to_string(static_cast<int>(status)) + "): " + status_text(status));
}

const CublasLibrary& cublas_library() {
  static const CublasLibrary kLibrary = load();
  return kLibrary;
}

}  // namespace weir::cuda
