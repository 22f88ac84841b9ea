// Devices, versions, look-ups of driver functions, peers, and arrays of two dimensions.

#include <array>

#include "tests/standin/runtime/runtime.hpp"

namespace {

using namespace weir::standin;

/// The properties that are attributes of the driver.
constexpr struct {
  int cudaDeviceProp::*property;
  CUdevice_attribute attribute;
} kNumbers[] = {
    {&cudaDeviceProp::regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&cudaDeviceProp::regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&cudaDeviceProp::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&cudaDeviceProp::maxThreadsPerMultiProcessor,
     CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&cudaDeviceProp::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&cudaDeviceProp::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&cudaDeviceProp::canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {&cudaDeviceProp::concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {&cudaDeviceProp::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&cudaDeviceProp::asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {&cudaDeviceProp::memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {&cudaDeviceProp::l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {&cudaDeviceProp::memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {&cudaDeviceProp::streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
    {&cudaDeviceProp::pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
};
constexpr struct {
  std::size_t cudaDeviceProp::*property;
  CUdevice_attribute attribute;
} kSizes[] = {
    {&cudaDeviceProp::sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {&cudaDeviceProp::sharedMemPerBlockOptin,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {&cudaDeviceProp::sharedMemPerMultiprocessor,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::totalConstMem, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY},
    {&cudaDeviceProp::textureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT},
};
/// Those with a number for each axis; the attributes follow each other.
constexpr struct {
  int (cudaDeviceProp::*property)[3];
  int first;
} kAxes[] = {
    {&cudaDeviceProp::maxThreadsDim, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
    {&cudaDeviceProp::maxGridSize, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
};

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

/// Calls `body` with the context of the other device, which the current one can access.
template <typename Body>
cudaError_t with_peer(int peer, Body body) {
  return with_context([&](const Calls& driver) {
    CUdevice device = 0;
    CUresult result = driver.cuCtxGetDevice(&device);
    if (result != CUDA_SUCCESS) return result;
    int can = 0;
    result = driver.cuDeviceCanAccessPeer(&can, device, peer);
    if (result != CUDA_SUCCESS) return result;
    if (can == 0) return CUDA_ERROR_INVALID_DEVICE;
    CUcontext context = nullptr;
    result = static_cast<CUresult>(context_of(peer, &context));
    return result == CUDA_SUCCESS ? body(driver, context) : result;
  });
}

/// False if there is no such format.
bool find_format(cudaChannelFormatKind kind, int bits, CUarray_format* format) {
  const int step = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : -1;
  if (step < 0) return false;
  switch (kind) {
    case cudaChannelFormatKindSigned:
      *format = static_cast<CUarray_format>(CU_AD_FORMAT_SIGNED_INT8 + step);
      return true;
    case cudaChannelFormatKindUnsigned:
      *format = static_cast<CUarray_format>(CU_AD_FORMAT_UNSIGNED_INT8 + step);
      return true;
    case cudaChannelFormatKindFloat:
      *format = bits == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
      return bits != 8;
    default:
      return false;
  }
}

/// Channels are as wide as the first, and absent ones have no bits.
bool describe(const cudaChannelFormatDesc& wanted, CUDA_ARRAY3D_DESCRIPTOR* out) {
  const std::array bits{wanted.x, wanted.y, wanted.z, wanted.w};
  unsigned int channels = 0;
  while (channels < 4 && bits.at(channels) == wanted.x) ++channels;
  for (std::size_t i = channels; i < 4; ++i) {
    if (bits.at(i) != 0) return false;
  }
  out->NumChannels = channels;
  return channels != 3 && find_format(wanted.f, wanted.x, &out->Format);
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

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return with_driver([&](const Calls& driver) {
    if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    cudaDeviceProp out{};
    CUresult result = driver.cuDeviceGetName(out.name, sizeof out.name, device);
    if (result == CUDA_SUCCESS) result = driver.cuDeviceTotalMem(&out.totalGlobalMem, device);
    if (result == CUDA_SUCCESS) result = driver.cuDeviceGetUuid(&out.uuid, device);
    const auto ask = [&](int attribute) {
      int value = 0;
      if (result == CUDA_SUCCESS) {
        result =
            driver.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), device);
      }
      return value;
    };
    for (const auto& [property, attribute] : kNumbers) out.*property = ask(attribute);
    for (const auto& [property, attribute] : kSizes) {
      out.*property = static_cast<std::size_t>(ask(attribute));
    }
    for (const auto& [property, first] : kAxes) {
      for (int axis = 0; axis < 3; ++axis) (out.*property)[axis] = ask(first + axis);
    }
    if (result == CUDA_SUCCESS) *properties = out;
    return result;
  });
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

// There is no profiler to start or stop, but PyTorch does not load without these. Declared by
// <cuda_profiler_api.h>, which the wheels leave out (tests/frameworks/runtime.py).
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return with_peer(peer, [&](const Calls& driver, CUcontext context) {
    return driver.cuCtxEnablePeerAccess(context, flags);
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return with_peer(peer, [](const Calls& driver, CUcontext context) {
    return driver.cuCtxDisablePeerAccess(context);
  });
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* wanted, size_t width,
                            size_t height, unsigned int flags) {
  return with_context([&](const Calls& driver) {
    if (array == nullptr || wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR own{};
    if (!describe(*wanted, &own)) {
      return static_cast<CUresult>(cudaErrorInvalidChannelDescriptor);
    }
    own.Width = width;
    own.Height = height;
    own.Flags = flags;
    auto* made = reinterpret_cast<CUarray*>(array);
    if (flags != cudaArrayDefault) return driver.cuArray3DCreate(made, &own);
    CUDA_ARRAY_DESCRIPTOR flat{};
    flat.Width = width;
    flat.Height = height;
    flat.Format = own.Format;
    flat.NumChannels = own.NumChannels;
    return driver.cuArrayCreate(made, &flat);
  });
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return with_context([&](const Calls& driver) {
    return array == nullptr ? CUDA_SUCCESS
                            : driver.cuArrayDestroy(reinterpret_cast<CUarray>(array));
  });
}

}  // extern "C"
