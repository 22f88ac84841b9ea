// Stream capture, and the resulting graphs, whose nodes run in the order of the capture.

#include <algorithm>
#include <iterator>

#include "tests/standin/driver/memory/graph_memory.hpp"
#include "tests/standin/driver/per_thread.hpp"
#include "tests/standin/driver/streams/capture.hpp"
#include "tests/standin/driver/streams/stream.hpp"

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

CUresult begin_capture(Call& call, CUstream handle, CUstreamCaptureMode mode,
                       std::shared_ptr<Graph> target) {
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
  capture->target = std::move(target);
  stream->capture = capture;
  call.driver.captures.insert(std::move(capture));
  return CUDA_SUCCESS;
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

bool allocates_memory(const Graph& graph) { return !graph.taken.empty() || !graph.given.empty(); }

/// A graph that allocates memory can be instantiated once at a time.
bool is_instantiated(Driver& driver, const Graph& graph) {
  const auto overlap = [](const auto& one, const auto& other) {
    return std::find_first_of(one.begin(), one.end(), other.begin(), other.end()) != one.end();
  };
  const auto& execs = driver.graph_execs.all();
  return std::any_of(execs.begin(), execs.end(), [&](const auto& entry) {
    const Graph& other = *entry.second.graph;
    return overlap(graph.taken, other.taken) || overlap(graph.given, other.given);
  });
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

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return api("cuStreamBeginCapture", Needs::kContext,
             [&](Call& call) { return begin_capture(call, handle, mode, nullptr); });
}

#if CUDA_VERSION >= 12030
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode*,
                                     const CUgraphEdgeData*, size_t count,
                                     CUstreamCaptureMode mode) {
  return api("cuStreamBeginCaptureToGraph", Needs::kContext, [&](Call& call) {
    const auto* graph = call.driver.graphs.find(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Nodes have no handles, and come after all existing ones.
    if (count != 0) return CUDA_ERROR_NOT_SUPPORTED;
    return begin_capture(call, stream, mode, *graph);
  });
}
#endif

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
    Graph made = end_capture(call.driver, capture);
    if (result == CUDA_SUCCESS) {
      *graph = keep_graph(call.driver, *capture, std::move(made));
    } else {
      drop_new_graph(call.driver, *capture);
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

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   size_t* count) {
  return api("cuStreamGetCaptureInfo", Needs::kContext, [&](Call& call) {
    std::shared_ptr<Capture> capture;
    const CUresult code = status_of(call, handle, status, &capture);
    if (code != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return code;
    const std::vector<CUgraphNode>& last = last_nodes(*capture, find_stream(call, handle).get());
    if (dependencies != nullptr) *dependencies = last.data();
    if (count != nullptr) *count = last.size();
    if (id != nullptr) *id = capture->id;
    if (graph != nullptr) *graph = graph_of(call.driver, *capture);
    return code;
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

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  return api("cuGraphCreate", Needs::kDriver, [&](Call& call) {
    if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *graph = call.driver.graphs.add(std::make_shared<Graph>());
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph handle, unsigned long long flags) {
  return api("cuGraphInstantiate", Needs::kContext, [&](Call& call) {
    const auto* graph = call.driver.graphs.find(handle);
    if (graph == nullptr || exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (is_instantiated(call.driver, **graph)) return CUDA_ERROR_NOT_SUPPORTED;
    // A copy: later additions to the graph do not affect the executable one.
    *exec = call.driver.graph_execs.add(
        {.graph = std::make_shared<Graph>(**graph),
         .frees_on_launch = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0});
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return api("cuGraphLaunch", Needs::kContext, [&](Call& call) {
    const auto* found = call.driver.graph_execs.find(handle);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Graph> graph = found->graph;
    const std::shared_ptr<Stream> stream = find_stream(call, stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult refused = check_implicit(call, *stream);
    if (refused != CUDA_SUCCESS) return refused;
    if (allocates_memory(*graph)) {
      // A nested graph must not allocate.
      if (stream->capture) return CUDA_ERROR_NOT_SUPPORTED;
      const CUresult had = launch_memory(call.driver, *found);
      if (had != CUDA_SUCCESS) return had;
    }
    for (const Node& node : graph->nodes) {
      const CUresult submitted = submit(call, stream,
                                        {.work = node.work,
                                         .is_kernel = node.is_kernel,
                                         .is_host_function = node.is_host_function,
                                         .touches = node.touches});
      if (submitted != CUDA_SUCCESS) return submitted;
    }
    // Its memory and objects stay until the launch is over, even if the graph is destroyed.
    if (allocates_memory(*graph) || !graph->objects.empty()) {
      enqueue(stream, {.settle = [graph] {}});
    }
    end_launch(call, stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return api("cuGraphGetNodes", Needs::kDriver, [&](Call& call) {
    const auto* graph = call.driver.graphs.find(handle);
    if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (nodes != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    *count = 0;
    for (const Node& node : (*graph)->nodes) *count += node.work || node.is_memory ? 1U : 0U;
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
#if CUDA_VERSION >= 12030
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                          const CUgraphEdgeData* edges, size_t count,
                                          CUstreamCaptureMode mode) {
  return cuStreamBeginCaptureToGraph(per_thread(stream), graph, nodes, edges, count, mode);
}
#endif
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return cuStreamEndCapture(per_thread(stream), graph);
}
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  return cuStreamIsCapturing(per_thread(stream), status);
}
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* status,
                                        cuuint64_t* id, CUgraph* graph,
                                        const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v2(per_thread(stream), status, id, graph, dependencies, count);
}
#if CUDA_VERSION >= 12030
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;  // none has data
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus* status,
                                        cuuint64_t* id, CUgraph* graph,
                                        const CUgraphNode** dependencies,
                                        const CUgraphEdgeData** edges, size_t* count) {
  return cuStreamGetCaptureInfo_v3(per_thread(stream), status, id, graph, dependencies, edges,
                                   count);
}
#endif
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return cuGraphLaunch(exec, per_thread(stream));
}

}  // extern "C"
