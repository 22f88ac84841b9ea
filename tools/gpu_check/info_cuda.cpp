#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <string>
#include <utility>

#include "allocator/base/error_cuda.hpp"
#include "kernels/blas/cublas_library_cuda.hpp"
#include "tools/gpu_check/info.hpp"

namespace weir::gpu_check {
namespace {

/// CUDA reports what a driver can do, not its version. The driver's management library does; it
/// comes with the driver and not with a toolkit.
std::string driver_version() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "";
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto version =
      reinterpret_cast<int (*)(char*, unsigned)>(dlsym(library, "nvmlSystemGetDriverVersion"));
  const auto shutdown = reinterpret_cast<int (*)()>(dlsym(library, "nvmlShutdown"));
  std::array<char, 80> text{};
  if (init != nullptr && version != nullptr && shutdown != nullptr && init() == 0) {
    if (version(text.data(), static_cast<unsigned>(text.size())) != 0) text[0] = '\0';
    (void)shutdown();
  }
  (void)dlclose(library);
  return text.data();
}

/// Detects the stand-in in every program: its results page must never pass for a GPU's.
bool driver_is_standin() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  const bool found = dlsym(driver, "weir_standin_reset") != nullptr;
  (void)dlclose(driver);
  return found;
}

/// The cuBLAS that matrix products would use, or why there is none and where it was searched.
std::string find_cublas() {
  try {
    const cuda::CublasLibrary& library = cuda::cublas_library();
    return "cuBLAS " + library.version + " in " + library.file;
  } catch (const UsageError& error) {
    return std::string("no cuBLAS: ") + error.what();
  }
}

/// Formats CUDA's version number: 13000 as `13.0`.
std::string cuda_version(int number) {
  if (number == 0) return "";
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

nlohmann::json describe(int device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return {{"name", properties.name},
          {"memory_bytes", properties.totalGlobalMem},
          {"compute_capability",
           std::to_string(attribute(cudaDevAttrComputeCapabilityMajor, device)) + "." +
               std::to_string(attribute(cudaDevAttrComputeCapabilityMinor, device))},
          {"multiprocessors", attribute(cudaDevAttrMultiProcessorCount, device)}};
}

/// Lists the GPUs that programs may use. Returns why there is none, or nothing.
std::string list_gpus(int driver_cuda, nlohmann::json& gpus) {
  if (driver_cuda == 0) {
    return "there is no NVIDIA driver here (libcuda.so.1); install one, or use a machine that has "
           "it";
  }
  if (driver_cuda / 1000 < CUDART_VERSION / 1000) {
    return "the driver serves CUDA " + cuda_version(driver_cuda) + ", and this program needs " +
           cuda_version(CUDART_VERSION) +
           ": update the driver, or build for it with a toolkit of " +
           std::to_string(driver_cuda / 1000) + ".x (tools/gpu-check --build --toolkit DIR)";
  }
  int devices = 0;
  const cudaError_t code = take_cuda_error(cudaGetDeviceCount(&devices));
  if (code != cudaSuccess && code != cudaErrorNoDevice) {
    return "the driver does not answer: " + describe_cuda_error(code) + "; nvidia-smi may say more";
  }
  for (int device = 0; device < devices; ++device) gpus.push_back(describe(device));
  return devices > 0 ? "" : "the driver knows of no GPU; see CUDA_VISIBLE_DEVICES";
}

}  // namespace

Machine find_gpus() {
  int runtime = 0;
  int driver = 0;
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  nlohmann::json gpus = nlohmann::json::array();
  std::string why = list_gpus(driver, gpus);
  if (!why.empty()) return {{{"gpus", std::move(gpus)}}, std::move(why)};
  return {{{"driver", driver_version()},
           {"driver_cuda", cuda_version(driver)},
           {"runtime", cuda_version(runtime)},
           {"toolkit", WEIR_CUDA_TOOLKIT},
           {"cublas", find_cublas()},
           {"rehearsal", driver_is_standin()},
           {"gpus", std::move(gpus)}},
          ""};
}

}  // namespace weir::gpu_check
