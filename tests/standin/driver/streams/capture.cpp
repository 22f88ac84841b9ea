#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/standin/driver/streams/streams.hpp"

namespace weir::standin {
namespace {

void merge(CaptureClock& into, const CaptureClock& from) {
  for (const auto& [stream, count] : from) into[stream] = std::max(into[stream], count);
}

}  // namespace

void refuse_unsafe(Driver& driver) {
  const CUstreamCaptureMode mode = this_thread().capture_mode;
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  bool broken = false;
  for (const auto& capture : driver.captures) {
    const bool own = capture->thread == std::this_thread::get_id() &&
                     capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool of_others =
        mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !of_others) continue;
    capture->invalid = broken = true;
  }
  require(!broken, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void check_implicit(Call& call, const Stream& stream, bool breaks) {
  if (&stream != stream.context->legacy.get()) return;
  bool found = false;
  for (const auto& capture : call.driver.captures) {
    for (const auto& [other, clock] : capture->clocks) {
      if (other->context != stream.context || !other->blocking()) continue;
      capture->invalid = capture->invalid || breaks;
      found = true;
    }
  }
  require(!found, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

void refuse_capturing(const Stream& stream) {
  if (!stream.capture) return;
  stream.capture->invalid = true;
  pass(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void refuse_capturing_context(Call& call) {
  bool broken = false;
  for (const auto& stream : call.context->streams) {
    if (stream->capture) stream->capture->invalid = broken = true;
  }
  require(!broken, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void add_to_capture(Stream& stream, Node node) {
  Capture& capture = *stream.capture;
  require(!capture.invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  capture.graph.nodes.push_back(std::move(node));
  ++capture.clocks[&stream][&stream];
}

void wait_in_capture(const std::shared_ptr<Stream>& stream, const Event& event) {
  require(!event.capture->ended, CUDA_ERROR_CAPTURED_EVENT);
  require(!event.capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (stream->capture && stream->capture != event.capture) {
    stream->capture->invalid = event.capture->invalid = true;
    pass(CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  stream->capture = event.capture;
  CaptureClock& clock = event.capture->clocks[stream.get()];
  merge(clock, event.clock);
}

Graph end_capture(Driver& driver, const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  for (const auto& [stream, clock] : capture->clocks) stream->capture.reset();
  driver.captures.erase(capture);
  return std::exchange(capture->graph, {});
}

CUgraph graph_of(Driver& driver, Capture& capture) {
  if (!capture.target) {
    capture.target = std::make_shared<Graph>();
    capture.target_is_new = true;
    return driver.graphs.add(capture.target);
  }
  for (const auto& [handle, graph] : driver.graphs.all()) {
    if (graph == capture.target) return handle;
  }
  return nullptr;
}

void drop_new_graph(Driver& driver, Capture& capture) {
  if (!capture.target_is_new) return;
  driver.graphs.remove(graph_of(driver, capture));
  capture.target.reset();
}

void leave_capture(Driver& driver, Stream& stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture) return;
  capture->invalid = true;
  if (capture->origin == &stream) {
    (void)end_capture(driver, capture);
    drop_new_graph(driver, *capture);
  } else {
    capture->clocks.erase(&stream);
    stream.capture.reset();
  }
}

}  // namespace weir::standin

namespace {

using namespace weir::standin;

/// The result of a capture, or an error.
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

CUstreamCaptureStatus status_of(Call& call, const Stream& stream) {
  check_implicit(call, stream, false);
  if (!stream.capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

bool is_mode(CUstreamCaptureMode mode) {
  return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

void begin_capture(Call& call, CUstream handle, CUstreamCaptureMode mode,
                   std::shared_ptr<Graph> target) {
  const std::shared_ptr<Stream> stream = get_stream(call, handle);
  require(stream != call.context->legacy, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  require(is_mode(mode));
  require(!stream->capture, CUDA_ERROR_ILLEGAL_STATE);
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream.get();
  capture->id = call.driver.next_capture++;
  capture->clocks[stream.get()][stream.get()] = 0;
  capture->target = std::move(target);
  stream->capture = capture;
  call.driver.captures.insert(std::move(capture));
}

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// The handle of a capture's graph: that of the graph which it adds to, if any.
CUgraph keep_graph(Driver& driver, Capture& capture, Graph&& made) {
  if (!capture.target) return driver.graphs.add(std::make_shared<Graph>(std::move(made)));
  append(capture.target->nodes, std::move(made.nodes));
  append(capture.target->taken, std::move(made.taken));
  append(capture.target->given, std::move(made.given));
  return graph_of(driver, capture);  // null: destroyed meanwhile
}

/// The nodes that precede the stream's next one. A node is only a number here, and no function
/// takes it. Valid until the thread's next call, as with the driver.
const std::vector<CUgraphNode>& last_nodes(const Capture& capture, Stream* stream) {
  thread_local std::vector<CUgraphNode> nodes;
  nodes.clear();
  std::uintptr_t place = 0;
  const auto known = capture.clocks.find(stream);
  if (known == capture.clocks.end()) return nodes;
  for (const auto& [other, count] : known->second) {
    ++place;
    if (count == 0) continue;
    const std::uintptr_t handle = (std::uintptr_t{capture.id} << 40U) | (place << 32U) | count;
    nodes.push_back(reinterpret_cast<CUgraphNode>(handle));
  }
  return nodes;
}

}  // namespace

extern "C" {

// In the <cuda.h> of some toolkits only.
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, size_t* count);

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return api("cuStreamBeginCapture", Needs::kContext,
             [&](Call& call) { begin_capture(call, stream, mode, nullptr); });
}
WEIR_PTSZ(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), stream, mode)

#if CUDA_VERSION >= 12030
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode*,
                                     const CUgraphEdgeData*, size_t count,
                                     CUstreamCaptureMode mode) {
  return api("cuStreamBeginCaptureToGraph", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Graph> graph = call.driver.graphs.get(handle);
    // Nodes have no handles, and come after all existing ones.
    require(count == 0, CUDA_ERROR_NOT_SUPPORTED);
    begin_capture(call, stream, mode, graph);
  });
}
WEIR_PTSZ(cuStreamBeginCaptureToGraph,
          (CUstream stream, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* edges,
           size_t count, CUstreamCaptureMode mode),
          stream, graph, nodes, edges, count, mode)
#endif

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  return api("cuStreamEndCapture", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Stream> stream = get_stream(call, handle);
    given(graph) = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
                capture->thread == std::this_thread::get_id(),
            CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    if (capture->origin != stream.get()) {
      capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    const CUresult result = verdict(*capture);
    Graph made = end_capture(call.driver, capture);
    if (result == CUDA_SUCCESS) {
      *graph = keep_graph(call.driver, *capture, std::move(made));
    } else {
      drop_new_graph(call.driver, *capture);
    }
    return result;
  });
}
WEIR_PTSZ(cuStreamEndCapture, (CUstream stream, CUgraph* graph), stream, graph)

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return api("cuStreamIsCapturing", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Stream> stream = get_stream(call, handle);
    given(status) = status_of(call, *stream);
  });
}
WEIR_PTSZ(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus* status), stream, status)

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   size_t* count) {
  return api("cuStreamGetCaptureInfo", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Stream> stream = get_stream(call, handle);
    given(status) = status_of(call, *stream);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return;
    Capture& capture = *stream->capture;
    const std::vector<CUgraphNode>& last = last_nodes(capture, stream.get());
    if (dependencies != nullptr) *dependencies = last.data();
    if (count != nullptr) *count = last.size();
    if (id != nullptr) *id = capture.id;
    if (graph != nullptr) *graph = graph_of(call.driver, capture);
  });
}
WEIR_PTSZ(cuStreamGetCaptureInfo_v2,
          (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
           const CUgraphNode** dependencies, size_t* count),
          stream, status, id, graph, dependencies, count)

#if CUDA_VERSION >= 12030
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;  // none has data
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}
WEIR_PTSZ(cuStreamGetCaptureInfo_v3,
          (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
           const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count),
          stream, status, id, graph, dependencies, edges, count)
#endif

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return api("cuThreadExchangeStreamCaptureMode", Needs::kDriver, [&](Call& /*call*/) {
    require(is_mode(given(mode)));
    std::swap(*mode, this_thread().capture_mode);
  });
}

}  // extern "C"
