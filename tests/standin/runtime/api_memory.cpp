// Device and host memory, and pools.

#include "tests/standin/runtime/runtime.hpp"

namespace {

using namespace weir::standin;

CUmemoryPool driver_pool(cudaMemPool_t pool) { return reinterpret_cast<CUmemoryPool>(pool); }

cudaError_t allocate(DefaultStream meant, void** pointer, std::size_t bytes, cudaStream_t stream) {
  return on_stream(meant, [&](const Calls& driver) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr made = 0;
    if (bytes == 0) {
      *pointer = nullptr;
      return CUDA_SUCCESS;
    }
    const CUresult result = driver.cuMemAllocAsync(&made, bytes, stream);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(made);
    return result;
  });
}

cudaError_t allocate_from(DefaultStream meant, void** pointer, std::size_t bytes,
                          cudaMemPool_t pool, cudaStream_t stream) {
  return on_stream(meant, [&](const Calls& driver) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr made = 0;
    const CUresult result = driver.cuMemAllocFromPoolAsync(&made, bytes, driver_pool(pool), stream);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(made);
    return result;
  });
}

cudaError_t free_on(DefaultStream meant, void* pointer, cudaStream_t stream) {
  return on_stream(
      meant, [&](const Calls& driver) { return driver.cuMemFreeAsync(address(pointer), stream); });
}

}  // namespace

extern "C" {

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return with_context([&](const Calls& driver) { return driver.cuMemGetInfo(free, total); });
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return with_context([&](const Calls& driver) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pointer = nullptr;
    if (bytes == 0) return CUDA_SUCCESS;
    CUdeviceptr made = 0;
    const CUresult result = driver.cuMemAlloc(&made, bytes);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(made);
    return result;
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return with_context([&](const Calls& driver) {
    if (pointer == nullptr || pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pointer = nullptr;
    *pitch = 0;
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    constexpr unsigned int kElement = 4;
    CUdeviceptr made = 0;
    const CUresult result = driver.cuMemAllocPitch(&made, pitch, width, height, kElement);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(made);
    return result;
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  return with_context([&](const Calls& driver) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr made = 0;
    const CUresult result = driver.cuMemAllocManaged(&made, bytes, flags);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(made);
    return result;
  });
}

cudaError_t cudaFree(void* pointer) {
  return with_context([&](const Calls& driver) {
    return pointer == nullptr ? CUDA_SUCCESS : driver.cuMemFree(address(pointer));
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return with_context([&](const Calls& driver) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pointer = nullptr;
    return bytes == 0 ? CUDA_SUCCESS : driver.cuMemHostAlloc(pointer, bytes, flags);
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  return with_context([&](const Calls& driver) {
    return pointer == nullptr ? CUDA_SUCCESS : driver.cuMemFreeHost(pointer);
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return with_context(
      [&](const Calls& driver) { return driver.cuMemHostRegister(pointer, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return with_context([&](const Calls& driver) { return driver.cuMemHostUnregister(pointer); });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  return with_context([&](const Calls& driver) {
    CUdeviceptr found = 0;
    const CUresult result = driver.cuMemHostGetDevicePointer(&found, host, flags);
    if (result == CUDA_SUCCESS) *device = reinterpret_cast<void*>(found);
    return result;
  });
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* host) {
  return with_context([&](const Calls& driver) { return driver.cuMemHostGetFlags(flags, host); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* pointer) {
  return with_context([&](const Calls& driver) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned int type = 0;
    int device = -2;
    void* of_device = nullptr;
    void* of_host = nullptr;
    bool managed = false;
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void* values[] = {&type, &device, static_cast<void*>(&of_device), static_cast<void*>(&of_host),
                      &managed};
    const CUresult result = driver.cuPointerGetAttributes(5, wanted, values, address(pointer));
    if (result != CUDA_SUCCESS) return result;
    *out = {};
    out->type = cudaMemoryTypeUnregistered;
    if (type == CU_MEMORYTYPE_HOST) out->type = cudaMemoryTypeHost;
    if (type == CU_MEMORYTYPE_DEVICE) out->type = cudaMemoryTypeDevice;
    if (managed) out->type = cudaMemoryTypeManaged;
    out->device = device;
    out->devicePointer = of_device;
    out->hostPointer = type == 0 ? const_cast<void*>(pointer) : of_host;
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return allocate(DefaultStream::kLegacy, pointer, bytes, stream);
}
cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t stream) {
  return allocate(DefaultStream::kPerThread, pointer, bytes, stream);
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return allocate_from(DefaultStream::kLegacy, pointer, bytes, pool, stream);
}
cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream) {
  return allocate_from(DefaultStream::kPerThread, pointer, bytes, pool, stream);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return free_on(DefaultStream::kLegacy, pointer, stream);
}
cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
  return free_on(DefaultStream::kPerThread, pointer, stream);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return with_context([&](const Calls& driver) {
    if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUmemPoolProps own{};
    own.allocType = static_cast<CUmemAllocationType>(properties->allocType);
    own.location.type = static_cast<CUmemLocationType>(properties->location.type);
    own.location.id = properties->location.id;
    own.maxSize = properties->maxSize;
    return driver.cuMemPoolCreate(reinterpret_cast<CUmemoryPool*>(pool), &own);
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return with_context(
      [&](const Calls& driver) { return driver.cuMemPoolDestroy(driver_pool(pool)); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return with_context(
      [&](const Calls& driver) { return driver.cuMemPoolTrimTo(driver_pool(pool), keep); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return with_context([&](const Calls& driver) {
    return driver.cuMemPoolSetAttribute(driver_pool(pool),
                                        static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return with_context([&](const Calls& driver) {
    return driver.cuMemPoolGetAttribute(driver_pool(pool),
                                        static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  return with_driver([&](const Calls& driver) {
    return driver.cuDeviceGetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(attribute),
                                               value);
  });
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  return with_driver([&](const Calls& driver) { return driver.cuDeviceGraphMemTrim(device); });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return with_context([&](const Calls& driver) {
    return driver.cuDeviceGetDefaultMemPool(reinterpret_cast<CUmemoryPool*>(pool), device);
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return with_context([&](const Calls& driver) {
    return driver.cuDeviceGetMemPool(reinterpret_cast<CUmemoryPool*>(pool), device);
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return with_context(
      [&](const Calls& driver) { return driver.cuDeviceSetMemPool(device, driver_pool(pool)); });
}

}  // extern "C"
