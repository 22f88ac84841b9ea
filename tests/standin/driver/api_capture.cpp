// Stream capture, and the graphs that come of it: their nodes run in the order of the capture.

#include "tests/standin/driver/capture.hpp"
#include "tests/standin/driver/per_thread.hpp"
#include "tests/standin/driver/stream.hpp"

namespace {

using namespace weir::standin;

/// The end of a capture: what it was, or an error.
CUresult verdict(const Capture& capture) {
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const CaptureClock& reached = capture.clocks.at(capture.origin);
  for (const auto& [stream, clock] : capture.clocks) {
    if (stream == capture.origin) continue;
    const auto end = clock.find(stream);
    if (end == clock.end()) continue;  // did nothing of its own
    const auto seen = reached.find(stream);
    if (seen == reached.end() || seen->second < end->second) {
      return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
  }
  return CUDA_SUCCESS;
}

CUresult status_of(Call& call, CUstream handle, CUstreamCaptureStatus* status,
                   std::shared_ptr<Capture>* capture) {
  const std::shared_ptr<Stream> stream = find_stream(call, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult implicit = check_implicit(call, *stream, false);
  if (implicit != CUDA_SUCCESS) return implicit;
  *capture = stream->capture;
  if (!stream->capture) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
  } else if (stream->capture->invalid) {
    *status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  } else {
    *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return api("cuStreamBeginCapture", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Stream> stream = find_stream(call, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream == call.context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = stream.get();
    capture->id = call.driver.next_capture++;
    capture->clocks[stream.get()][stream.get()] = 0;
    stream->capture = capture;
    call.driver.captures.insert(std::move(capture));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  return api("cuStreamEndCapture", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Stream> stream = find_stream(call, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        capture->thread != std::this_thread::get_id()) {
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    if (capture->origin != stream.get()) {
      capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    const CUresult result = verdict(*capture);
    end_capture(call.driver, capture);
    if (result == CUDA_SUCCESS) {
      *graph = call.driver.graphs.add(std::make_shared<Graph>(std::move(capture->graph)));
    }
    return result;
  });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return api("cuStreamIsCapturing", Needs::kContext, [&](Call& call) {
    std::shared_ptr<Capture> capture;
    return status_of(call, handle, status, &capture);
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return api("cuThreadExchangeStreamCaptureMode", Needs::kDriver, [&](Call& /*call*/) {
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::swap(*mode, this_thread().capture_mode);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph handle, unsigned long long) {
  return api("cuGraphInstantiate", Needs::kContext, [&](Call& call) {
    const auto* graph = call.driver.graphs.find(handle);
    if (graph == nullptr || exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *exec = call.driver.graph_execs.add(*graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return api("cuGraphLaunch", Needs::kContext, [&](Call& call) {
    const auto* found = call.driver.graph_execs.find(handle);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Graph> graph = *found;
    const std::shared_ptr<Stream> stream = find_stream(call, stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    for (const Node& node : graph->nodes) {
      const CUresult submitted =
          submit(call, stream, {.work = node.work, .is_kernel = node.is_kernel});
      if (submitted != CUDA_SUCCESS) return submitted;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return api("cuGraphGetNodes", Needs::kDriver, [&](Call& call) {
    const auto* graph = call.driver.graphs.find(handle);
    if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (nodes != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    *count = 0;
    for (const Node& node : (*graph)->nodes) *count += node.work ? 1U : 0U;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return api("cuGraphDestroy", Needs::kDriver, [&](Call& call) {
    if (call.driver.graphs.find(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    call.driver.graphs.remove(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return api("cuGraphExecDestroy", Needs::kDriver, [&](Call& call) {
    if (call.driver.graph_execs.find(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    call.driver.graph_execs.remove(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return cuStreamBeginCapture_v2(per_thread(stream), mode);
}
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return cuStreamEndCapture(per_thread(stream), graph);
}
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  return cuStreamIsCapturing(per_thread(stream), status);
}
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return cuGraphLaunch(exec, per_thread(stream));
}

}  // extern "C"
