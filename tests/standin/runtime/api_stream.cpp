// Streams, events, host functions, captures, copies and sets. The functions that take a stream
// exist twice: stream 0 is the legacy stream, or the calling thread's own (_ptsz, _ptds). One long
// file, because both of each share one template.

#include <memory>

#include "tests/standin/runtime/runtime.hpp"

namespace {

using namespace weir::standin;

constexpr DefaultStream kLegacy = DefaultStream::kLegacy;
constexpr DefaultStream kPerThread = DefaultStream::kPerThread;

template <DefaultStream Meant>
cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return on_stream(Meant, [&](const Calls& driver) {
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
  });
}

template <DefaultStream Meant>
cudaError_t copy_async(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream) {
  return on_stream(Meant, [&](const Calls& driver) {
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
  });
}

template <DefaultStream Meant>
cudaError_t set(void* pointer, int value, std::size_t bytes) {
  return on_stream(Meant, [&](const Calls& driver) {
    return driver.cuMemsetD8(address(pointer), static_cast<unsigned char>(value), bytes);
  });
}

template <DefaultStream Meant>
cudaError_t set_async(void* pointer, int value, std::size_t bytes, cudaStream_t stream) {
  return on_stream(Meant, [&](const Calls& driver) {
    return driver.cuMemsetD8Async(address(pointer), static_cast<unsigned char>(value), bytes,
                                  stream);
  });
}

/// The driver's state of a capture, in the runtime's types. `rest`: the edges, from CUDA 13 on, and
/// the number.
template <DefaultStream Meant, typename... Rest>
cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status,
                         unsigned long long* id, cudaGraph_t* graph,
                         const cudaGraphNode_t** dependencies, Rest... rest) {
  return on_stream(Meant, [&](const Calls& driver) {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureStatus own = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t number = 0;
    const CUresult result =
        driver.cuStreamGetCaptureInfo(stream, &own, &number, graph, dependencies, rest...);
    *status = static_cast<cudaStreamCaptureStatus>(own);
    if (id != nullptr) *id = number;
    return result;
  });
}

template <DefaultStream Meant>
cudaError_t copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                      std::size_t width, std::size_t height, cudaMemcpyKind kind,
                      cudaStream_t stream) {
  return on_stream(Meant, [&](const Calls& driver) {
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
  });
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

template <DefaultStream Meant>
cudaError_t add_callback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                         unsigned int flags) {
  return on_stream(Meant, [&](const Calls& driver) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto own = std::make_unique<Callback>(Callback{function, data});
    const CUresult result = driver.cuStreamAddCallback(stream, &Callback::call, own.get(), flags);
    if (result == CUDA_SUCCESS) (void)own.release();
    return result;
  });
}

cudaError_t create_stream(cudaStream_t* stream, unsigned int flags, int priority) {
  return with_context([&](const Calls& driver) {
    return driver.cuStreamCreateWithPriority(stream, flags, priority);
  });
}

template <DefaultStream Meant>
cudaError_t is_capturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return on_stream(Meant, [&](const Calls& driver) {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureStatus found{};
    const CUresult result = driver.cuStreamIsCapturing(stream, &found);
    if (result == CUDA_SUCCESS) *status = static_cast<cudaStreamCaptureStatus>(found);
    return result;
  });
}

template <DefaultStream Meant>
cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return on_stream(Meant, [&](const Calls& driver) {
    return driver.cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode));
  });
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return create_stream(stream, cudaStreamDefault, 0);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return create_stream(stream, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return create_stream(stream, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return with_context([&](const Calls& driver) { return driver.cuStreamDestroy(stream); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return with_context(
      [&](const Calls& driver) { return driver.cuEventCreate(event, CU_EVENT_DEFAULT); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return with_context([&](const Calls& driver) { return driver.cuEventCreate(event, flags); });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return with_context([&](const Calls& driver) { return driver.cuEventDestroy(event); });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return with_context([&](const Calls& driver) { return driver.cuEventQuery(event); });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return with_context([&](const Calls& driver) { return driver.cuEventSynchronize(event); });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return with_context(
      [&](const Calls& driver) { return driver.cuEventElapsedTime(milliseconds, start, end); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return with_driver([&](const Calls& driver) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto own = static_cast<CUstreamCaptureMode>(*mode);
    const CUresult result = driver.cuThreadExchangeStreamCaptureMode(&own);
    if (result == CUDA_SUCCESS) *mode = static_cast<cudaStreamCaptureMode>(own);
    return result;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return with_context(
      [&](const Calls& driver) { return driver.cuGraphInstantiateWithFlags(exec, graph, flags); });
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy,
                                 unsigned int references, unsigned int flags) {
  return with_driver([&](const Calls& driver) {
    return driver.cuUserObjectCreate(object, data, destroy, references, flags);
  });
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return with_driver(
      [&](const Calls& driver) { return driver.cuUserObjectRelease(object, count); });
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags) {
  return with_driver([&](const Calls& driver) {
    return driver.cuGraphRetainUserObject(graph, object, count, flags);
  });
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return with_context(
      [&](const Calls& driver) { return driver.cuGraphGetNodes(graph, nodes, count); });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return with_driver([&](const Calls& driver) { return driver.cuGraphDestroy(graph); });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return with_driver([&](const Calls& driver) { return driver.cuGraphExecDestroy(exec); });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return copy<kLegacy>(to, from, bytes, kind);
}
extern decltype(cudaMemcpy) cudaMemcpy_ptds;
cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return copy<kPerThread>(to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy_async<kLegacy>(to, from, bytes, kind, stream);
}
extern decltype(cudaMemcpyAsync) cudaMemcpyAsync_ptsz;
cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  return copy_async<kPerThread>(to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return copy_rows<kLegacy>(to, to_pitch, from, from_pitch, width, height, kind, stream);
}
extern decltype(cudaMemcpy2DAsync) cudaMemcpy2DAsync_ptsz;
cudaError_t cudaMemcpy2DAsync_ptsz(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                   size_t width, size_t height, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  return copy_rows<kPerThread>(to, to_pitch, from, from_pitch, width, height, kind, stream);
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return set<kLegacy>(pointer, value, bytes);
}
extern decltype(cudaMemset) cudaMemset_ptds;
cudaError_t cudaMemset_ptds(void* pointer, int value, size_t bytes) {
  return set<kPerThread>(pointer, value, bytes);
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return set_async<kLegacy>(pointer, value, bytes, stream);
}
extern decltype(cudaMemsetAsync) cudaMemsetAsync_ptsz;
cudaError_t cudaMemsetAsync_ptsz(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return set_async<kPerThread>(pointer, value, bytes, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return on_stream(kLegacy,
                   [&](const Calls& driver) { return driver.cuStreamSynchronize(stream); });
}
extern decltype(cudaStreamSynchronize) cudaStreamSynchronize_ptsz;
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
  return on_stream(kPerThread,
                   [&](const Calls& driver) { return driver.cuStreamSynchronize(stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return on_stream(kLegacy, [&](const Calls& driver) { return driver.cuStreamQuery(stream); });
}
extern decltype(cudaStreamQuery) cudaStreamQuery_ptsz;
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) {
  return on_stream(kPerThread, [&](const Calls& driver) { return driver.cuStreamQuery(stream); });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return on_stream(kLegacy,
                   [&](const Calls& driver) { return driver.cuStreamGetFlags(stream, flags); });
}
extern decltype(cudaStreamGetFlags) cudaStreamGetFlags_ptsz;
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned int* flags) {
  return on_stream(kPerThread,
                   [&](const Calls& driver) { return driver.cuStreamGetFlags(stream, flags); });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return on_stream(
      kLegacy, [&](const Calls& driver) { return driver.cuStreamGetPriority(stream, priority); });
}
extern decltype(cudaStreamGetPriority) cudaStreamGetPriority_ptsz;
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority) {
  return on_stream(kPerThread, [&](const Calls& driver) {
    return driver.cuStreamGetPriority(stream, priority);
  });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return on_stream(kLegacy, [&](const Calls& driver) { return driver.cuStreamGetId(stream, id); });
}
extern decltype(cudaStreamGetId) cudaStreamGetId_ptsz;
cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* id) {
  return on_stream(kPerThread,
                   [&](const Calls& driver) { return driver.cuStreamGetId(stream, id); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return on_stream(
      kLegacy, [&](const Calls& driver) { return driver.cuStreamWaitEvent(stream, event, flags); });
}
extern decltype(cudaStreamWaitEvent) cudaStreamWaitEvent_ptsz;
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return on_stream(kPerThread, [&](const Calls& driver) {
    return driver.cuStreamWaitEvent(stream, event, flags);
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return on_stream(kLegacy,
                   [&](const Calls& driver) { return driver.cuEventRecord(event, stream); });
}
extern decltype(cudaEventRecord) cudaEventRecord_ptsz;
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
  return on_stream(kPerThread,
                   [&](const Calls& driver) { return driver.cuEventRecord(event, stream); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return on_stream(kLegacy, [&](const Calls& driver) {
    return driver.cuEventRecordWithFlags(event, stream, flags);
  });
}
extern decltype(cudaEventRecordWithFlags) cudaEventRecordWithFlags_ptsz;
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream,
                                          unsigned int flags) {
  return on_stream(kPerThread, [&](const Calls& driver) {
    return driver.cuEventRecordWithFlags(event, stream, flags);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return on_stream(kLegacy, [&](const Calls& driver) {
    return driver.cuLaunchHostFunc(stream, function, data);
  });
}
extern decltype(cudaLaunchHostFunc) cudaLaunchHostFunc_ptsz;
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return on_stream(kPerThread, [&](const Calls& driver) {
    return driver.cuLaunchHostFunc(stream, function, data);
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                                  unsigned int flags) {
  return add_callback<kLegacy>(stream, function, data, flags);
}
extern decltype(cudaStreamAddCallback) cudaStreamAddCallback_ptsz;
cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t function,
                                       void* data, unsigned int flags) {
  return add_callback<kPerThread>(stream, function, data, flags);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return on_stream(kLegacy,
                   [&](const Calls& driver) { return driver.cuStreamEndCapture(stream, graph); });
}
extern decltype(cudaStreamEndCapture) cudaStreamEndCapture_ptsz;
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
  return on_stream(kPerThread,
                   [&](const Calls& driver) { return driver.cuStreamEndCapture(stream, graph); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return on_stream(kLegacy,
                   [&](const Calls& driver) { return driver.cuGraphLaunch(exec, stream); });
}
extern decltype(cudaGraphLaunch) cudaGraphLaunch_ptsz;
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return on_stream(kPerThread,
                   [&](const Calls& driver) { return driver.cuGraphLaunch(exec, stream); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin_capture<kLegacy>(stream, mode);
}
extern decltype(cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz;
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin_capture<kPerThread>(stream, mode);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return is_capturing<kLegacy>(stream, status);
}
extern decltype(cudaStreamIsCapturing) cudaStreamIsCapturing_ptsz;
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return is_capturing<kPerThread>(stream, status);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return capture_info<kLegacy>(stream, status, id, graph, dependencies,
                               reinterpret_cast<const CUgraphEdgeData**>(edges), count);
}
extern decltype(cudaStreamGetCaptureInfo) cudaStreamGetCaptureInfo_ptsz;
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                          unsigned long long* id, cudaGraph_t* graph,
                                          const cudaGraphNode_t** dependencies,
                                          const cudaGraphEdgeData** edges, size_t* count) {
  return capture_info<kPerThread>(stream, status, id, graph, dependencies,
                                  reinterpret_cast<const CUgraphEdgeData**>(edges), count);
}
#else
// PyTorch has only the legacy default stream, and nothing else is built with this runtime of
// CUDA 12.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, size_t* count) {
  return capture_info<kLegacy>(stream, status, id, graph, dependencies, count);
}
#endif

}  // extern "C"
