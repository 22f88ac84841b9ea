// Follows streams, captures, callbacks and contexts.

#include <new>

#include "allocator/base/log.hpp"
#include "tools/preload/context/known_streams.hpp"
#include "tools/preload/hooks/pass.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

/// Returns the current context's arena; null if we do not follow this call.
Arena* followed() noexcept {
  Process* const process = Process::get();
  return process != nullptr ? process->contexts().current() : nullptr;
}

/// Follows a stream that the driver has just created.
CUresult created(CUresult code, const CUstream* stream, unsigned int flags) noexcept {
  const Call call;
  if (call.nested() && code == CUDA_SUCCESS) Call::follow_later(*stream);
  Arena* const arena = code == CUDA_SUCCESS ? followed() : nullptr;
  if (arena == nullptr) return code;
  try {
    arena->fences().created(*stream, (flags & CU_STREAM_NON_BLOCKING) == 0);
    KnownStreams::add(*stream);
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("a stream is not followed: ") + error.what());
  }
  return code;
}

/// Returns the stream and its context's arena; none if we do not follow this call.
Located located(CUstream stream, bool per_thread) noexcept {
  Process* const process = Process::get();
  return process != nullptr ? process->contexts().locate(stream, per_thread) : Located{};
}

template <typename Begin>
CUresult begin_capture(CUstream stream, bool per_thread, CUstreamCaptureMode mode,
                       const Begin& begin) noexcept {
  Call call;
  const Located here = located(stream, per_thread);
  if (here.arena == nullptr) {
    ContextCaptures::expect_unknown();
    CapturesUnderWay::expect_unknown();
    return begin();
  }
  try {
    here.arena->expect_capture(call);
    return here.arena->fences().begin_capture(here.stream, mode, begin);
  } catch (const std::exception&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

template <typename End>
CUresult end_capture(CUstream stream, bool per_thread, const End& end) noexcept {
  const Call call;
  const CUresult code = end();
  const Located here = located(stream, per_thread);
  if (here.arena == nullptr) return code;
  here.arena->fences().note_end_of_capture(here.stream, code == CUDA_SUCCESS);
  if (Process* const process = Process::get()) process->note_end_of_captures();
  return code;
}

template <typename F>
CUresult wait_for_event(F Driver::*real, bool per_thread, CUstream stream, CUevent event,
                        unsigned int flags) noexcept {
  const auto wait = [&] { return pass(real, stream, event, flags); };
  if (!CapturesUnderWay::any()) return wait();
  const Call call;
  const Located here = located(stream, per_thread);
  if (here.arena == nullptr) return wait();
  try {
    return here.arena->fences().wait_for_event(here.stream, wait);
  } catch (const std::exception&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

/// Runs a callback of the program and marks this thread as serving the device.
struct HostFunction {
  CUhostFn function;
  void* data;
  bool again;  ///< part of a graph, which runs it at every launch

  static void run(void* self) {
    auto* const mine = static_cast<HostFunction*>(self);
    const HostFunction copy = *mine;
    if (!copy.again) delete mine;
    const InCallback mark;
    copy.function(copy.data);
  }
  static void destroy(void* self) { delete static_cast<HostFunction*>(self); }
};

/// Lets the last graph that has it, with its instances and launches, destroy `mark`. Kept
/// permanently if the driver cannot report that moment.
void leave_to_graph(const Driver& driver, CUstream stream, HostFunction* mark) noexcept {
  const CUgraph graph = captured_graph(driver, stream);
  CUuserObject object = nullptr;
  if (graph == nullptr || driver.cuUserObjectCreate == nullptr ||
      driver.cuGraphRetainUserObject == nullptr ||
      driver.cuUserObjectCreate(&object, mark, &HostFunction::destroy, 1,
                                CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) != CUDA_SUCCESS) {
    return;
  }
  (void)driver.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
}

template <typename F>
CUresult launch_host_function(F Driver::*real, bool per_thread, CUstream stream, CUhostFn function,
                              void* data) noexcept {
  const Call call;
  Process* const process = function != nullptr ? Process::get() : nullptr;
  const bool ours =
      process != nullptr && process->contexts().locate(stream, per_thread).arena != nullptr;
  if (!ours) return pass(real, stream, function, data);
  const CUstream named = named_stream(stream, per_thread);
  const bool again = CapturesUnderWay::any() && is_captured(process->driver(), named);
  auto* const mark = new (std::nothrow) HostFunction{function, data, again};
  if (mark == nullptr) return pass(real, stream, function, data);
  const CUresult code = pass(real, stream, &HostFunction::run, static_cast<void*>(mark));
  if (code != CUDA_SUCCESS) {
    delete mark;
  } else if (again) {
    leave_to_graph(process->driver(), named, mark);
  }
  return code;
}

struct StreamCallback {
  CUstreamCallback function;
  void* data;

  static void run(CUstream stream, CUresult status, void* self) {
    auto* const mine = static_cast<StreamCallback*>(self);
    const StreamCallback copy = *mine;
    delete mine;
    const InCallback mark;
    copy.function(stream, status, copy.data);
  }
};

template <typename F>
CUresult add_callback(F Driver::*real, CUstream stream, CUstreamCallback function, void* data,
                      unsigned int flags) noexcept {
  const Call call;
  auto* const mark = function != nullptr && followed() != nullptr
                         ? new (std::nothrow) StreamCallback{function, data}
                         : nullptr;
  if (mark == nullptr) return pass(real, stream, function, data, flags);
  const CUresult code = pass(real, stream, &StreamCallback::run, static_cast<void*>(mark), flags);
  if (code != CUDA_SUCCESS) delete mark;
  return code;
}

/// Calls `end`, which may end a context, while nobody releases memory there.
template <typename End>
CUresult end_context(Process* process, const End& end) noexcept {
  if (process == nullptr) return end();
  CUresult code = CUDA_SUCCESS;
  {
    const ContextGate::EndOfContext ends(process->gate());
    code = end();
  }
  process->note_end_of_captures();  // those that began there
  return code;
}

/// Calls `real`. If it succeeds and `has_ended` agrees, the primary context of `device` has ended.
template <typename F, typename HasEnded>
CUresult end_primary(F Driver::*real, CUdevice device, const HasEnded& has_ended) noexcept {
  const Call call;
  Process* const process = Process::get();
  if (process == nullptr) return pass(real, device);
  return end_context(process, [&] {
    PrimaryContexts& primaries = process->contexts().primaries();
    const Lock lock(primaries.of(device));
    const CUcontext context = primaries.find(device);
    const CUresult code = pass(real, device);
    if (context != nullptr && code == CUDA_SUCCESS && has_ended(primaries)) {
      process->forget(context);
    }
    return code;
  });
}

template <typename F>
CUresult reset_primary(F Driver::*real, CUdevice device) noexcept {
  return end_primary(real, device, [](const PrimaryContexts& /*primaries*/) { return true; });
}

template <typename F>
CUresult release_primary(F Driver::*real, CUdevice device) noexcept {
  return end_primary(real, device, [device](const PrimaryContexts& primaries) {
    return !primaries.is_active(device).value_or(false);
  });
}

}  // namespace
}  // namespace weir::preload

using namespace weir::preload;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return created(jump(&Driver::cuStreamCreate, stream, flags), stream, flags);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return created(jump(&Driver::cuStreamCreateWithPriority, stream, flags, priority), stream, flags);
}

#if CUDA_VERSION >= 12050
CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned int flags,
                                int priority) {
  return created(jump(&Driver::cuGreenCtxStreamCreate, stream, context, flags, priority), stream,
                 flags);
}
#endif

CUresult cuStreamDestroy_v2(CUstream stream) {
  const Call call;
  // The stream's last fence needs tables that may be half changed now. After fork a child has no
  // later.
  if (call.nested() && !Process::is_forked_child() && Call::destroy_later(stream)) {
    return CUDA_SUCCESS;
  }
  Process* const process = Process::get();
  KnownStreams::remove(stream);
  if (process != nullptr) {
    try {
      for (Arena* const arena : process->contexts().all()) {
        const CUresult code = arena->fences().remove(stream);
        if (code != CUDA_SUCCESS) return code;
      }
      process->note_end_of_captures();  // the one that it began, if any
    } catch (const std::exception& error) {
      weir::log(weir::LogLevel::kError,
                std::string("a stream's end is not known: ") + error.what());
    }
  }
  return pass(&Driver::cuStreamDestroy_v2, stream);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(stream, false, mode,
                       [&] { return pass(&Driver::cuStreamBeginCapture_v2, stream, mode); });
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(stream, true, mode,
                       [&] { return pass(&Driver::cuStreamBeginCapture_v2_ptsz, stream, mode); });
}
#if CUDA_VERSION >= 12030
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData* edges,
                                     std::size_t count, CUstreamCaptureMode mode) {
  return begin_capture(stream, false, mode, [&] {
    return pass(&Driver::cuStreamBeginCaptureToGraph, stream, graph, dependencies, edges, count,
                mode);
  });
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                          const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* edges, std::size_t count,
                                          CUstreamCaptureMode mode) {
  return begin_capture(stream, true, mode, [&] {
    return pass(&Driver::cuStreamBeginCaptureToGraph_ptsz, stream, graph, dependencies, edges,
                count, mode);
  });
}
#endif
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return end_capture(stream, false,
                     [&] { return pass(&Driver::cuStreamEndCapture, stream, graph); });
}
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return end_capture(stream, true,
                     [&] { return pass(&Driver::cuStreamEndCapture_ptsz, stream, graph); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  return wait_for_event(&Driver::cuStreamWaitEvent, false, stream, event, flags);
}
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags) {
  return wait_for_event(&Driver::cuStreamWaitEvent_ptsz, true, stream, event, flags);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return launch_host_function(&Driver::cuLaunchHostFunc, false, stream, function, data);
}
CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* data) {
  return launch_host_function(&Driver::cuLaunchHostFunc_ptsz, true, stream, function, data);
}
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void* data,
                             unsigned int flags) {
  return add_callback(&Driver::cuStreamAddCallback, stream, function, data, flags);
}
CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback function, void* data,
                                  unsigned int flags) {
  return add_callback(&Driver::cuStreamAddCallback_ptsz, stream, function, data, flags);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  const Call call;
  Process* const process = Process::get();
  if (process != nullptr) process->contexts().use_peers();
  const CUresult code = pass(&Driver::cuCtxEnablePeerAccess, peer, flags);
  if (process != nullptr && code == CUDA_SUCCESS) process->contexts().let_into_pages(peer);
  return code;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return reset_primary(&Driver::cuDevicePrimaryCtxReset, device);
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return reset_primary(&Driver::cuDevicePrimaryCtxReset_v2, device);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return release_primary(&Driver::cuDevicePrimaryCtxRelease, device);
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return release_primary(&Driver::cuDevicePrimaryCtxRelease_v2, device);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  const Call call;
  Process* const process = Process::get_if_any();
  return end_context(process, [&] {
    const CUresult code = pass(&Driver::cuCtxDestroy_v2, context);
    if (code == CUDA_SUCCESS && process != nullptr) process->forget(context);
    return code;
  });
}

}  // extern "C"
