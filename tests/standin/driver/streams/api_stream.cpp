// Streams and host functions.

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/per_thread.hpp"
#include "tests/standin/driver/streams/capture.hpp"
#include "tests/standin/driver/streams/stream.hpp"

namespace {

using namespace weir::standin;

CUresult create_stream(const char* name, CUstream* handle, unsigned int flags, int priority) {
  return api(name, Needs::kContext, [&](Call& call) {
    if (handle == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Stream> stream = make_stream(*call.context, flags, priority);
    *handle = stream->handle = call.driver.streams.add(stream);
    return CUDA_SUCCESS;
  });
}

/// A query of a stream, which a capture forbids.
template <typename Body>
CUresult ask_stream(const char* name, CUstream handle, Body body) {
  return api(name, Needs::kCanCapture, [&](Call& call) {
    const std::shared_ptr<Stream> stream = find_stream(call, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    CUresult refused = refuse_capturing(*stream);
    if (refused == CUDA_SUCCESS) refused = check_implicit(call, *stream);
    return refused == CUDA_SUCCESS ? body(call, stream) : refused;
  });
}

template <typename T, typename Get>
CUresult stream_property(const char* name, CUstream handle, T* out, Get get) {
  return api(name, Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Stream> stream = find_stream(call, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = get(*stream);
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return create_stream("cuStreamCreate", stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return create_stream("cuStreamCreateWithPriority", stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return api("cuStreamDestroy", Needs::kContext, [&](Call& call) {
    const auto* found = call.driver.streams.find(handle);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const std::shared_ptr<Stream> stream = *found;
    leave_capture(call.driver, *stream);
    call.driver.streams.remove(handle);
    close_stream(*stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return ask_stream("cuStreamSynchronize", handle,
                    [](Call& call, const std::shared_ptr<Stream>& stream) {
                      wait_for(call, points_of(stream));
                      trim_pools(call.driver, *call.context->device);
                      return stream->context->broken;
                    });
}

CUresult cuStreamQuery(CUstream handle) {
  return ask_stream("cuStreamQuery", handle,
                    [](Call& /*call*/, const std::shared_ptr<Stream>& stream) {
                      return is_idle(*stream) ? stream->context->broken : CUDA_ERROR_NOT_READY;
                    });
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return stream_property("cuStreamGetFlags", handle, flags,
                         [](const Stream& stream) { return stream.flags; });
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  return stream_property("cuStreamGetPriority", handle, priority,
                         [](const Stream& stream) { return stream.priority; });
}

/// A handle is never used again here, so it is its own id.
CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  return stream_property("cuStreamGetId", handle, id, [](const Stream& stream) {
    return static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(stream.handle));
  });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return stream_property("cuStreamGetCtx", handle, context,
                         [](const Stream& stream) { return stream.context->handle; });
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  // XLA's own threads call it without a current context: a created stream has one.
  const bool of_context =
      handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  return api("cuLaunchHostFunc", of_context ? Needs::kContext : Needs::kDriver, [&](Call& call) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Stream> stream = find_stream(call, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    call.context = stream->context;
    if (call.context->broken != CUDA_SUCCESS) return call.context->broken;
    return submit(call, stream,
                  {.work =
                       [function, data] {
                         this_thread().in_host_function = true;
                         function(data);
                         this_thread().in_host_function = false;
                       },
                   .is_host_function = true});
  });
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void* data,
                             unsigned int flags) {
  return api("cuStreamAddCallback", Needs::kContext, [&](Call& call) {
    if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Stream> stream = find_stream(call, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult refused = refuse_capturing(*stream);
    if (refused != CUDA_SUCCESS) return refused;
    return submit(call, stream,
                  {.report =
                       [=](CUresult state) {
                         this_thread().in_host_function = true;
                         function(handle, state, data);
                         this_thread().in_host_function = false;
                       },
                   .is_host_function = true});
  });
}

CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return cuStreamSynchronize(per_thread(stream));
}
CUresult cuStreamQuery_ptsz(CUstream stream) { return cuStreamQuery(per_thread(stream)); }
CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned int* flags) {
  return cuStreamGetFlags(per_thread(stream), flags);
}
CUresult cuStreamGetPriority_ptsz(CUstream stream, int* priority) {
  return cuStreamGetPriority(per_thread(stream), priority);
}
CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long* id) {
  return cuStreamGetId(per_thread(stream), id);
}
CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext* context) {
  return cuStreamGetCtx(per_thread(stream), context);
}
CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback function, void* data,
                                  unsigned int flags) {
  return cuStreamAddCallback(per_thread(stream), function, data, flags);
}
CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* data) {
  return cuLaunchHostFunc(per_thread(stream), function, data);
}

}  // extern "C"
