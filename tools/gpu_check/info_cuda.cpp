#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <string>

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

CublasInfo find_cublas() {
  try {
    const cuda::CublasLibrary& library = cuda::cublas_library();
    return {library.file, library.version, ""};
  } catch (const UsageError& error) {
    return {"", "", error.what()};
  }
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

GpuDevice describe(int device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return {properties.name,
          std::to_string(attribute(cudaDevAttrComputeCapabilityMajor, device)) + "." +
              std::to_string(attribute(cudaDevAttrComputeCapabilityMinor, device)),
          Bytes{properties.totalGlobalMem}, attribute(cudaDevAttrMultiProcessorCount, device)};
}

}  // namespace

GpuInfo find_gpus() {
  GpuInfo info;
  info.toolkit = WEIR_CUDA_TOOLKIT;
  int number = 0;
  check_cuda(cudaRuntimeGetVersion(&number), "cudaRuntimeGetVersion");
  info.runtime = cuda_version(number);
  check_cuda(cudaDriverGetVersion(&number), "cudaDriverGetVersion");
  info.driver_cuda = cuda_version(number);
  if (number == 0) {
    info.why =
        "there is no NVIDIA driver here (libcuda.so.1); install one, or use a machine that has it";
    return info;
  }
  if (number / 1000 < CUDART_VERSION / 1000) {
    info.why = "the driver serves CUDA " + info.driver_cuda + ", and this program needs " +
               info.runtime + ": update the driver, or build for it with a toolkit of " +
               std::to_string(number / 1000) + ".x (tools/gpu-check --build --toolkit DIR)";
    return info;
  }
  info.driver = driver_version();
  info.rehearsal = driver_is_standin();
  info.cublas = find_cublas();
  info.settings = changing_settings(environ);
  int devices = 0;
  const cudaError_t code = take_cuda_error(cudaGetDeviceCount(&devices));
  if (code != cudaSuccess && code != cudaErrorNoDevice) {
    info.why =
        "the driver does not answer: " + describe_cuda_error(code) + "; nvidia-smi may say more";
    return info;
  }
  for (int device = 0; device < devices; ++device) info.gpus.push_back(describe(device));
  if (info.gpus.empty()) info.why = "the driver knows of no GPU; see CUDA_VISIBLE_DEVICES";
  return info;
}

}  // namespace weir::gpu_check
