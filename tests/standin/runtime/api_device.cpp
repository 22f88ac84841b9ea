// Devices, versions, and look-ups of driver functions.

#include <algorithm>
#include <cstring>

#include "tests/standin/runtime/runtime.hpp"

namespace {

using namespace weir::standin;

/// Reads attributes by the driver's names, until one fails.
class Attributes {
 public:
  Attributes(const Calls& driver, int device) : driver_(driver), device_(device) {}

  int operator()(CUdevice_attribute attribute) {
    int value = 0;
    const CUresult result = driver_.cuDeviceGetAttribute(&value, attribute, device_);
    if (result != CUDA_SUCCESS) result_ = result;
    return value;
  }
  std::size_t size(CUdevice_attribute attribute) {
    return static_cast<std::size_t>((*this)(attribute));
  }
  [[nodiscard]] CUresult result() const { return result_; }

 private:
  const Calls& driver_;
  int device_;
  CUresult result_ = CUDA_SUCCESS;
};

void fill_limits(cudaDeviceProp& out, Attributes& get) {
  out.sharedMemPerBlock = get.size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  out.sharedMemPerBlockOptin = get.size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  out.sharedMemPerMultiprocessor =
      get.size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  out.totalConstMem = get.size(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  out.regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  out.regsPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  out.warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  out.maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  out.maxThreadsPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  out.maxThreadsDim[0] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  out.maxThreadsDim[1] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  out.maxThreadsDim[2] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  out.maxGridSize[0] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  out.maxGridSize[1] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  out.maxGridSize[2] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
}

void fill_abilities(cudaDeviceProp& out, Attributes& get) {
  out.major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  out.minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  out.multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out.canMapHostMemory = get(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  out.concurrentKernels = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  out.unifiedAddressing = get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  out.asyncEngineCount = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  out.memoryBusWidth = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  out.l2CacheSize = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  out.memoryPoolsSupported = get(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  out.streamPrioritiesSupported = get(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
  out.textureAlignment = get.size(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  out.pciBusID = get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
}

cudaError_t entry_point(const char* symbol, void** function, unsigned int version,
                        unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  return with_driver([&](const Calls& /*driver*/) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result =
        library().get(symbol, function, static_cast<int>(version), flags, &found);
    if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
    const bool unsaid = result == CUDA_SUCCESS && *function == nullptr && status == nullptr;
    return unsaid ? CUDA_ERROR_NOT_FOUND : result;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return note_own(cudaErrorInvalidValue);
  *version = library().version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return note_own(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (library().status == cudaErrorNoDevice && count != nullptr) *count = 0;
  return with_driver([&](const Calls& driver) {
    const CUresult result = driver.cuDeviceGetCount(count);
    return result == CUDA_SUCCESS && *count == 0 ? CUDA_ERROR_NO_DEVICE : result;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return with_driver([&](const Calls& driver) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUcontext current = nullptr;
    const CUresult asked = driver.cuCtxGetCurrent(&current);
    if (asked != CUDA_SUCCESS) return asked;
    // The program may have made another context current through the driver.
    CUdevice of_current = 0;
    const bool known = current != nullptr && driver.cuCtxGetDevice(&of_current) == CUDA_SUCCESS;
    *device = known ? of_current : chosen_device();
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaSetDevice(int device) { return note(choose_device(device)); }

cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) {
  return note(choose_device(device));
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return with_driver([&](const Calls& driver) {
    return driver.cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device);
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return with_driver([&](const Calls& driver) {
    if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    cudaDeviceProp out{};
    CUresult result = driver.cuDeviceGetName(out.name, sizeof out.name, device);
    if (result != CUDA_SUCCESS) return result;
    result = driver.cuDeviceTotalMem(&out.totalGlobalMem, device);
    if (result != CUDA_SUCCESS) return result;
    result = driver.cuDeviceGetUuid(&out.uuid, device);
    if (result != CUDA_SUCCESS) return result;
    Attributes get(driver, device);
    fill_limits(out, get);
    fill_abilities(out, get);
    if (get.result() == CUDA_SUCCESS) *properties = out;
    return get.result();
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return with_context(
      [&](const Calls& driver) { return driver.cuCtxGetStreamPriorityRange(least, greatest); });
}

cudaError_t cudaDeviceSynchronize(void) {
  return with_context([](const Calls& driver) { return driver.cuCtxSynchronize(); });
}

cudaError_t cudaDeviceReset(void) {
  return with_driver([](const Calls& driver) {
    const int device = chosen_device();
    const CUresult result = driver.cuDevicePrimaryCtxReset(device);
    forget_device(device);
    return result;
  });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned int version, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, version, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function,
                                                  unsigned int version, unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status) {
  if (flags == cudaEnableDefault) flags = cudaEnablePerThreadDefaultStream;
  return entry_point(symbol, function, version, flags, status);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, CUDART_VERSION, flags, status);
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function,
                                         unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion_ptsz(symbol, function, CUDART_VERSION, flags, status);
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return with_driver(
      [&](const Calls& driver) { return driver.cuDeviceGetPCIBusId(text, length, device); });
}

// There is no profiler to start or stop, but PyTorch does not load without these. Declared by
// <cuda_profiler_api.h>, which the wheels leave out (tests/frameworks/runtime.py).
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

}  // extern "C"
