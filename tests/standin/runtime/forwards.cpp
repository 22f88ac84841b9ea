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

// NAME calls CALL of the driver with the arguments that follow, in its form.
#define DRIVER(name, parameters, call, ...)                                                     \
  cudaError_t name parameters {                                                                 \
    return with_driver([&](const Calls& driver) { return forward(driver.call, __VA_ARGS__); }); \
  }
// The same, with a context.
#define CONTEXT(name, parameters, call, ...)                                                     \
  cudaError_t name parameters {                                                                  \
    return with_context([&](const Calls& driver) { return forward(driver.call, __VA_ARGS__); }); \
  }
// NAME and its variant call FUNCTION with the driver's functions for a default stream, and the
// rest.
#define BOTH(name, suffix, parameters, function, ...)                                     \
  cudaError_t name parameters {                                                           \
    return on_stream(DefaultStream::kLegacy,                                              \
                     [&](const Calls& driver) { return function(driver, __VA_ARGS__); }); \
  }                                                                                       \
  extern decltype(name) name##suffix;                                                     \
  cudaError_t name##suffix parameters {                                                   \
    return on_stream(DefaultStream::kPerThread,                                           \
                     [&](const Calls& driver) { return function(driver, __VA_ARGS__); }); \
  }
// The same, for a function of the driver.
#define STREAM(name, parameters, call, ...)                                             \
  BOTH(name, _ptsz, parameters,                                                         \
       ([](const Calls& calls, auto... rest) { return forward(calls.call, rest...); }), \
       __VA_ARGS__)

extern "C" {

// ---- Devices.
DRIVER(cudaDeviceGetAttribute, (int* value, cudaDeviceAttr attribute, int device),
       cuDeviceGetAttribute, value, attribute, device)
DRIVER(cudaDeviceGetPCIBusId, (char* text, int length, int device), cuDeviceGetPCIBusId, text,
       length, device)
DRIVER(cudaDeviceCanAccessPeer, (int* can, int device, int peer), cuDeviceCanAccessPeer, can,
       device, peer)
CONTEXT(cudaDeviceGetStreamPriorityRange, (int* least, int* greatest), cuCtxGetStreamPriorityRange,
        least, greatest)
cudaError_t cudaDeviceSynchronize(void) {
  return with_context([](const Calls& driver) { return driver.cuCtxSynchronize(); });
}

// ---- Memory.
CONTEXT(cudaMemGetInfo, (size_t * free, size_t* total), cuMemGetInfo, free, total)
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
CONTEXT(cudaMallocManaged, (void** pointer, size_t bytes, unsigned int flags), cuMemAllocManaged,
        pointer, bytes, flags)
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
CONTEXT(cudaHostRegister, (void* pointer, size_t bytes, unsigned int flags), cuMemHostRegister,
        pointer, bytes, flags)
CONTEXT(cudaHostUnregister, (void* pointer), cuMemHostUnregister, pointer)
CONTEXT(cudaHostGetDevicePointer, (void** device, void* host, unsigned int flags),
        cuMemHostGetDevicePointer, device, host, flags)
CONTEXT(cudaHostGetFlags, (unsigned int* flags, void* host), cuMemHostGetFlags, flags, host)

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

CONTEXT(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void* pointer), cuIpcGetMemHandle,
        handle, pointer)
CONTEXT(cudaIpcOpenMemHandle, (void** pointer, cudaIpcMemHandle_t handle, unsigned int flags),
        cuIpcOpenMemHandle, pointer, handle, flags)
CONTEXT(cudaIpcCloseMemHandle, (void* pointer), cuIpcCloseMemHandle, pointer)
CONTEXT(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event),
        cuIpcGetEventHandle, handle, event)
CONTEXT(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle),
        cuIpcOpenEventHandle, event, handle)

// ---- Pools.
BOTH(cudaMallocAsync, _ptsz, (void** pointer, size_t bytes, cudaStream_t stream), allocate_async,
     pointer, bytes, stream)
STREAM(cudaMallocFromPoolAsync,
       (void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
       cuMemAllocFromPoolAsync, pointer, bytes, pool, stream)
STREAM(cudaFreeAsync, (void* pointer, cudaStream_t stream), cuMemFreeAsync, pointer, stream)
CONTEXT(cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps* properties),
        cuMemPoolCreate, pool, properties)
CONTEXT(cudaMemPoolDestroy, (cudaMemPool_t pool), cuMemPoolDestroy, pool)
CONTEXT(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), cuMemPoolTrimTo, pool, keep)
CONTEXT(cudaMemPoolSetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value),
        cuMemPoolSetAttribute, pool, attribute, value)
CONTEXT(cudaMemPoolGetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value),
        cuMemPoolGetAttribute, pool, attribute, value)
CONTEXT(cudaMemPoolSetAccess, (cudaMemPool_t pool, const cudaMemAccessDesc* accesses, size_t count),
        cuMemPoolSetAccess, pool, accesses, count)
CONTEXT(cudaMemPoolGetAccess,
        (cudaMemAccessFlags * flags, cudaMemPool_t pool, cudaMemLocation* location),
        cuMemPoolGetAccess, flags, pool, location)
CONTEXT(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), cuDeviceGetDefaultMemPool,
        pool, device)
CONTEXT(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device), cuDeviceGetMemPool, pool, device)
CONTEXT(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool), cuDeviceSetMemPool, device, pool)
DRIVER(cudaDeviceGetGraphMemAttribute,
       (int device, cudaGraphMemAttributeType attribute, void* value), cuDeviceGetGraphMemAttribute,
       device, attribute, value)
DRIVER(cudaDeviceGraphMemTrim, (int device), cuDeviceGraphMemTrim, device)

// ---- Copies and sets.
BOTH(cudaMemcpy, _ptds, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind), copy, to,
     from, bytes, kind)
BOTH(cudaMemcpyAsync, _ptsz,
     (void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
     copy_async, to, from, bytes, kind, stream)
BOTH(cudaMemcpy2DAsync, _ptsz,
     (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
      cudaMemcpyKind kind, cudaStream_t stream),
     copy_rows, to, to_pitch, from, from_pitch, width, height, kind, stream)
BOTH(cudaMemset, _ptds, (void* pointer, int value, size_t bytes), set, pointer, value, bytes)
BOTH(cudaMemsetAsync, _ptsz, (void* pointer, int value, size_t bytes, cudaStream_t stream),
     set_async, pointer, value, bytes, stream)

// ---- Streams.
CONTEXT(cudaStreamCreate, (cudaStream_t * stream), cuStreamCreateWithPriority, stream, 0U, 0)
CONTEXT(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags),
        cuStreamCreateWithPriority, stream, flags, 0)
CONTEXT(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned int flags, int priority),
        cuStreamCreateWithPriority, stream, flags, priority)
CONTEXT(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy, stream)
STREAM(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize, stream)
STREAM(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery, stream)
STREAM(cudaStreamGetFlags, (cudaStream_t stream, unsigned int* flags), cuStreamGetFlags, stream,
       flags)
STREAM(cudaStreamGetPriority, (cudaStream_t stream, int* priority), cuStreamGetPriority, stream,
       priority)
STREAM(cudaStreamGetId, (cudaStream_t stream, unsigned long long* id), cuStreamGetId, stream, id)
STREAM(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
       cuStreamWaitEvent, stream, event, flags)
STREAM(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* data),
       cuLaunchHostFunc, stream, function, data)
BOTH(cudaStreamAddCallback, _ptsz,
     (cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned int flags),
     add_callback, stream, function, data, flags)

// ---- Events.
CONTEXT(cudaEventCreate, (cudaEvent_t * event), cuEventCreate, event, 0U)
CONTEXT(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags), cuEventCreate, event,
        flags)
CONTEXT(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy, event)
CONTEXT(cudaEventQuery, (cudaEvent_t event), cuEventQuery, event)
CONTEXT(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize, event)
CONTEXT(cudaEventElapsedTime, (float* milliseconds, cudaEvent_t start, cudaEvent_t end),
        cuEventElapsedTime, milliseconds, start, end)
STREAM(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord, event, stream)
STREAM(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
       cuEventRecordWithFlags, event, stream, flags)

// ---- Captures and graphs.
STREAM(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode),
       cuStreamBeginCapture, stream, mode)
STREAM(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t* graph), cuStreamEndCapture, stream,
       graph)
STREAM(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus* status),
       cuStreamIsCapturing, stream, status)
DRIVER(cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode * mode),
       cuThreadExchangeStreamCaptureMode, mode)
CONTEXT(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        cuGraphInstantiateWithFlags, exec, graph, flags)
CONTEXT(cudaGraphInstantiateWithFlags,
        (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        cuGraphInstantiateWithFlags, exec, graph, flags)
STREAM(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphLaunch, exec, stream)
CONTEXT(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count),
        cuGraphGetNodes, graph, nodes, count)
DRIVER(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy, graph)
DRIVER(cudaGraphExecDestroy, (cudaGraphExec_t exec), cuGraphExecDestroy, exec)
DRIVER(cudaUserObjectCreate,
       (cudaUserObject_t * object, void* data, cudaHostFn_t destroy, unsigned int references,
        unsigned int flags),
       cuUserObjectCreate, object, data, destroy, references, flags)
DRIVER(cudaUserObjectRelease, (cudaUserObject_t object, unsigned int count), cuUserObjectRelease,
       object, count)
DRIVER(cudaGraphRetainUserObject,
       (cudaGraph_t graph, cudaUserObject_t object, unsigned int count, unsigned int flags),
       cuGraphRetainUserObject, graph, object, count, flags)

#if CUDART_VERSION >= 13000
BOTH(cudaStreamGetCaptureInfo, _ptsz,
     (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
      cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
      size_t* count),
     capture_info, stream, status, id, graph, dependencies, edges, count)
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
