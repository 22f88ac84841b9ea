// Other devices and other processes: peer access, access to pools, handles of memory.

#include <cstring>
#include <span>
#include <vector>

#include "tests/standin/runtime/runtime.hpp"

namespace {

using namespace weir::standin;

CUmemLocation driver_location(const cudaMemLocation& location) {
  CUmemLocation own{};
  own.type = static_cast<CUmemLocationType>(location.type);
  own.id = location.id;
  return own;
}

CUipcMemHandle driver_handle(const cudaIpcMemHandle_t& handle) {
  static_assert(sizeof(CUipcMemHandle) == sizeof(cudaIpcMemHandle_t));
  CUipcMemHandle own{};
  std::memcpy(&own, &handle, sizeof own);
  return own;
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

}  // namespace

extern "C" {

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return with_driver(
      [&](const Calls& driver) { return driver.cuDeviceCanAccessPeer(can, device, peer); });
}

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

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* accesses,
                                 size_t count) {
  return with_context([&](const Calls& driver) {
    if (accesses == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUmemAccessDesc> own;
    for (const cudaMemAccessDesc& access : std::span(accesses, count)) {
      own.push_back(
          {driver_location(access.location), static_cast<CUmemAccess_flags>(access.flags)});
    }
    return driver.cuMemPoolSetAccess(reinterpret_cast<CUmemoryPool>(pool), own.data(), own.size());
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  return with_context([&](const Calls& driver) {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUmemLocation own = driver_location(*location);
    CUmemAccess_flags found{};
    const CUresult result =
        driver.cuMemPoolGetAccess(&found, reinterpret_cast<CUmemoryPool>(pool), &own);
    if (result == CUDA_SUCCESS) *flags = static_cast<cudaMemAccessFlags>(found);
    return result;
  });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return with_context([&](const Calls& driver) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUipcMemHandle own{};
    const CUresult result = driver.cuIpcGetMemHandle(&own, address(pointer));
    if (result == CUDA_SUCCESS) std::memcpy(handle, &own, sizeof own);
    return result;
  });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  return with_context([&](const Calls& driver) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr opened = 0;
    const CUresult result = driver.cuIpcOpenMemHandle(&opened, driver_handle(handle), flags);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(opened);
    return result;
  });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return with_context(
      [&](const Calls& driver) { return driver.cuIpcCloseMemHandle(address(pointer)); });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return with_context([&](const Calls& driver) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUipcEventHandle own{};
    const CUresult result = driver.cuIpcGetEventHandle(&own, event);
    static_assert(sizeof own == sizeof *handle);
    if (result == CUDA_SUCCESS) std::memcpy(handle, &own, sizeof own);
    return result;
  });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return with_context([&](const Calls& driver) {
    CUipcEventHandle own{};
    std::memcpy(&own, &handle, sizeof own);
    return driver.cuIpcOpenEventHandle(event, own);
  });
}

}  // extern "C"
