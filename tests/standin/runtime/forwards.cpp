// Functions that call the driver and little else. Those that take a stream exist twice: stream 0 is
// the legacy stream, or the calling thread's own (_ptsz, _ptds).

#include <memory>

#include "tests/standin/runtime/runtime.hpp"

namespace {

using namespace weir::standin;

CUresult copy(const Calls& driver, void* to, const void* from, std::size_t bytes,
              cudaMemcpyKind kind) {
  if (bytes == 0) return CUDA_SUCCESS;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return driver.cuMemcpyHtoD(address(to), from, bytes);
    case cudaMemcpyDeviceToHost:
      return driver.cuMemcpyDtoH(to, address(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return driver.cuMemcpyDtoD(address(to), address(from), bytes);
    default:
      return driver.cuMemcpy(address(to), address(from), bytes);
  }
}

CUresult copy_async(const Calls& driver, void* to, const void* from, std::size_t bytes,
                    cudaMemcpyKind kind, cudaStream_t stream) {
  if (bytes == 0) return CUDA_SUCCESS;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return driver.cuMemcpyHtoDAsync(address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return driver.cuMemcpyDtoHAsync(to, address(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return driver.cuMemcpyDtoDAsync(address(to), address(from), bytes, stream);
    default:
      return driver.cuMemcpyAsync(address(to), address(from), bytes, stream);
  }
}

CUresult copy_rows(const Calls& driver, void* to, std::size_t to_pitch, const void* from,
                   std::size_t from_pitch, std::size_t width, std::size_t height,
                   cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  if (kind != cudaMemcpyDefault) {
    const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
    const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
    copy.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  }
  copy.srcHost = from;
  copy.dstHost = to;
  copy.srcDevice = address(from);
  copy.dstDevice = address(to);
  copy.srcPitch = from_pitch;
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return driver.cuMemcpy2DAsync(&copy, stream);
}

CUresult set(const Calls& driver, void* pointer, int value, std::size_t bytes) {
  return driver.cuMemsetD8(address(pointer), static_cast<unsigned char>(value), bytes);
}

CUresult set_async(const Calls& driver, void* pointer, int value, std::size_t bytes,
                   cudaStream_t stream) {
  return driver.cuMemsetD8Async(address(pointer), static_cast<unsigned char>(value), bytes, stream);
}

/// An allocation: no bytes are nothing, and no error.
template <typename Allocate>
CUresult allocate(void** pointer, bool nothing, Allocate call) {
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pointer = nullptr;
  return nothing ? CUDA_SUCCESS : call();
}

CUresult allocate_async(const Calls& driver, void** pointer, std::size_t bytes,
                        cudaStream_t stream) {
  return allocate(pointer, bytes == 0,
                  [&] { return forward(driver.cuMemAllocAsync, pointer, bytes, stream); });
}

/// A callback with the runtime's types, until its single call.
struct Callback {
  cudaStreamCallback_t function;
  void* data;

  static void CUDA_CB call(CUstream stream, CUresult state, void* data) {
    const std::unique_ptr<Callback> own(static_cast<Callback*>(data));
    own->function(stream, static_cast<cudaError_t>(state), own->data);
  }
};

CUresult add_callback(const Calls& driver, cudaStream_t stream, cudaStreamCallback_t function,
                      void* data, unsigned int flags) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto own = std::make_unique<Callback>(Callback{function, data});
  const CUresult result = driver.cuStreamAddCallback(stream, &Callback::call, own.get(), flags);
  if (result == CUDA_SUCCESS) (void)own.release();
  return result;
}

/// The driver's state of a capture. `rest`: the edges, from CUDA 13 on, and the number.
template <typename... Rest>
CUresult capture_info(const Calls& driver, cudaStream_t stream, cudaStreamCaptureStatus* status,
                      unsigned long long* id, cudaGraph_t* graph,
                      const cudaGraphNode_t** dependencies, Rest... rest) {
  cuuint64_t number = 0;
  const CUresult result =
      forward(driver.cuStreamGetCaptureInfo, stream, status, &number, graph, dependencies, rest...);
  if (id != nullptr) *id = number;
  return result;
}

}  // namespace

// PARAMETERS_name and ARGUMENTS_name of every function, from <cuda_runtime_api.h>.
#include "standin_runtime_parameters.inc"

// NAME calls CALL of the driver with its arguments and those that follow, in the driver's form.
#define DRIVER(name, call)                                                            \
  cudaError_t name PARAMETERS_##name {                                                \
    return with_driver(                                                               \
        [&](const Calls& driver) { return forward(driver.call, ARGUMENTS_##name); }); \
  }
// The same, with a context.
#define CONTEXT(name, call, ...)                                                \
  cudaError_t name PARAMETERS_##name {                                          \
    return with_context([&](const Calls& driver) {                              \
      return forward(driver.call, ARGUMENTS_##name __VA_OPT__(, ) __VA_ARGS__); \
    });                                                                         \
  }
// NAME and its variant call FUNCTION with the driver's functions for a default stream, and the
// rest.
#define BOTH(name, suffix, function)                                                           \
  cudaError_t name PARAMETERS_##name {                                                         \
    return on_stream(DefaultStream::kLegacy,                                                   \
                     [&](const Calls& driver) { return function(driver, ARGUMENTS_##name); }); \
  }                                                                                            \
  extern decltype(name) name##suffix;                                                          \
  cudaError_t name##suffix PARAMETERS_##name {                                                 \
    return on_stream(DefaultStream::kPerThread,                                                \
                     [&](const Calls& driver) { return function(driver, ARGUMENTS_##name); }); \
  }
// The same, for a function of the driver.
#define STREAM(name, call) \
  BOTH(name, _ptsz, ([](const Calls& calls, auto... rest) { return forward(calls.call, rest...); }))

extern "C" {

// ---- Devices.
DRIVER(cudaDeviceGetAttribute, cuDeviceGetAttribute)
DRIVER(cudaDeviceGetPCIBusId, cuDeviceGetPCIBusId)
DRIVER(cudaDeviceCanAccessPeer, cuDeviceCanAccessPeer)
CONTEXT(cudaDeviceGetStreamPriorityRange, cuCtxGetStreamPriorityRange)
cudaError_t cudaDeviceSynchronize(void) {
  return with_context([](const Calls& driver) { return driver.cuCtxSynchronize(); });
}

// ---- Memory.
CONTEXT(cudaMemGetInfo, cuMemGetInfo)
cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return with_context([&](const Calls& driver) {
    return allocate(pointer, bytes == 0,
                    [&] { return forward(driver.cuMemAlloc, pointer, bytes); });
  });
}
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return with_context([&](const Calls& driver) {
    if (pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pitch = 0;
    constexpr unsigned int kElement = 4;
    return allocate(pointer, width == 0 || height == 0, [&] {
      return forward(driver.cuMemAllocPitch, pointer, pitch, width, height, kElement);
    });
  });
}
CONTEXT(cudaMallocManaged, cuMemAllocManaged)
cudaError_t cudaFree(void* pointer) {
  return with_context([&](const Calls& driver) {
    return pointer == nullptr ? CUDA_SUCCESS : driver.cuMemFree(address(pointer));
  });
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return with_context([&](const Calls& driver) {
    return allocate(pointer, bytes == 0,
                    [&] { return driver.cuMemHostAlloc(pointer, bytes, flags); });
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
CONTEXT(cudaHostRegister, cuMemHostRegister)
CONTEXT(cudaHostUnregister, cuMemHostUnregister)
CONTEXT(cudaHostGetDevicePointer, cuMemHostGetDevicePointer)
CONTEXT(cudaHostGetFlags, cuMemHostGetFlags)

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

CONTEXT(cudaIpcGetMemHandle, cuIpcGetMemHandle)
CONTEXT(cudaIpcOpenMemHandle, cuIpcOpenMemHandle)
CONTEXT(cudaIpcCloseMemHandle, cuIpcCloseMemHandle)
CONTEXT(cudaIpcGetEventHandle, cuIpcGetEventHandle)
CONTEXT(cudaIpcOpenEventHandle, cuIpcOpenEventHandle)

// ---- Pools.
BOTH(cudaMallocAsync, _ptsz, allocate_async)
STREAM(cudaMallocFromPoolAsync, cuMemAllocFromPoolAsync)
STREAM(cudaFreeAsync, cuMemFreeAsync)
CONTEXT(cudaMemPoolCreate, cuMemPoolCreate)
CONTEXT(cudaMemPoolDestroy, cuMemPoolDestroy)
CONTEXT(cudaMemPoolTrimTo, cuMemPoolTrimTo)
CONTEXT(cudaMemPoolSetAttribute, cuMemPoolSetAttribute)
CONTEXT(cudaMemPoolGetAttribute, cuMemPoolGetAttribute)
CONTEXT(cudaMemPoolSetAccess, cuMemPoolSetAccess)
CONTEXT(cudaMemPoolGetAccess, cuMemPoolGetAccess)
CONTEXT(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool)
CONTEXT(cudaDeviceGetMemPool, cuDeviceGetMemPool)
CONTEXT(cudaDeviceSetMemPool, cuDeviceSetMemPool)
DRIVER(cudaDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute)
DRIVER(cudaDeviceGraphMemTrim, cuDeviceGraphMemTrim)

// ---- Copies and sets.
BOTH(cudaMemcpy, _ptds, copy)
BOTH(cudaMemcpyAsync, _ptsz, copy_async)
BOTH(cudaMemcpy2DAsync, _ptsz, copy_rows)
BOTH(cudaMemset, _ptds, set)
BOTH(cudaMemsetAsync, _ptsz, set_async)

// ---- Streams.
CONTEXT(cudaStreamCreate, cuStreamCreateWithPriority, 0U, 0)
CONTEXT(cudaStreamCreateWithFlags, cuStreamCreateWithPriority, 0)
CONTEXT(cudaStreamCreateWithPriority, cuStreamCreateWithPriority)
CONTEXT(cudaStreamDestroy, cuStreamDestroy)
STREAM(cudaStreamSynchronize, cuStreamSynchronize)
STREAM(cudaStreamQuery, cuStreamQuery)
STREAM(cudaStreamGetFlags, cuStreamGetFlags)
STREAM(cudaStreamGetPriority, cuStreamGetPriority)
STREAM(cudaStreamGetId, cuStreamGetId)
STREAM(cudaStreamWaitEvent, cuStreamWaitEvent)
STREAM(cudaLaunchHostFunc, cuLaunchHostFunc)
BOTH(cudaStreamAddCallback, _ptsz, add_callback)

// ---- Events.
CONTEXT(cudaEventCreate, cuEventCreate, 0U)
CONTEXT(cudaEventCreateWithFlags, cuEventCreate)
CONTEXT(cudaEventDestroy, cuEventDestroy)
CONTEXT(cudaEventQuery, cuEventQuery)
CONTEXT(cudaEventSynchronize, cuEventSynchronize)
CONTEXT(cudaEventElapsedTime, cuEventElapsedTime)
STREAM(cudaEventRecord, cuEventRecord)
STREAM(cudaEventRecordWithFlags, cuEventRecordWithFlags)

// ---- Captures and graphs.
STREAM(cudaStreamBeginCapture, cuStreamBeginCapture)
STREAM(cudaStreamEndCapture, cuStreamEndCapture)
STREAM(cudaStreamIsCapturing, cuStreamIsCapturing)
DRIVER(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode)
CONTEXT(cudaGraphInstantiate, cuGraphInstantiateWithFlags)
CONTEXT(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags)
STREAM(cudaGraphLaunch, cuGraphLaunch)
CONTEXT(cudaGraphGetNodes, cuGraphGetNodes)
DRIVER(cudaGraphDestroy, cuGraphDestroy)
DRIVER(cudaGraphExecDestroy, cuGraphExecDestroy)
DRIVER(cudaUserObjectCreate, cuUserObjectCreate)
DRIVER(cudaUserObjectRelease, cuUserObjectRelease)
DRIVER(cudaGraphRetainUserObject, cuGraphRetainUserObject)

#if CUDART_VERSION >= 13000
BOTH(cudaStreamGetCaptureInfo, _ptsz, capture_info)
#else
// PyTorch has only the legacy default stream, and nothing else is built with this runtime of CUDA
// 12, in which the variant has another type.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, size_t* count) {
  return on_stream(DefaultStream::kLegacy, [&](const Calls& driver) {
    return capture_info(driver, stream, status, id, graph, dependencies, count);
  });
}
#endif

}  // extern "C"

#undef DRIVER
#undef CONTEXT
#undef BOTH
#undef STREAM
