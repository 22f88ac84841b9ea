#include "tests/standin/driver/streams/capture.hpp"

#include <algorithm>
#include <utility>

namespace weir::standin {
namespace {

void merge(CaptureClock& into, const CaptureClock& from) {
  for (const auto& [stream, count] : from) into[stream] = std::max(into[stream], count);
}

}  // namespace

CUresult refuse_unsafe(Driver& driver) {
  const CUstreamCaptureMode mode = this_thread().capture_mode;
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : driver.captures) {
    const bool own = capture->thread == std::this_thread::get_id() &&
                     capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool of_others =
        mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !of_others) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult check_implicit(Call& call, const Stream& stream, bool breaks) {
  if (&stream != stream.context->legacy.get()) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : call.driver.captures) {
    for (const auto& [other, clock] : capture->clocks) {
      if (other->context != stream.context || !other->blocking()) continue;
      capture->invalid = capture->invalid || breaks;
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return result;
}

CUresult refuse_capturing(const Stream& stream) {
  if (!stream.capture) return CUDA_SUCCESS;
  stream.capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuse_capturing_context(Call& call) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& stream : call.context->streams) {
    const CUresult refused = refuse_capturing(*stream);
    if (refused != CUDA_SUCCESS) result = refused;
  }
  return result;
}

CUresult add_to_capture(Stream& stream, Node node) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  capture.graph.nodes.push_back(std::move(node));
  ++capture.clocks[&stream][&stream];
  return CUDA_SUCCESS;
}

CUresult wait_in_capture(const std::shared_ptr<Stream>& stream, const Event& event) {
  if (event.capture->ended) return CUDA_ERROR_CAPTURED_EVENT;
  if (event.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture && stream->capture != event.capture) {
    stream->capture->invalid = event.capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  stream->capture = event.capture;
  CaptureClock& clock = event.capture->clocks[stream.get()];
  merge(clock, event.clock);
  return CUDA_SUCCESS;
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
