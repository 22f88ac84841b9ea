// Events.

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/per_thread.hpp"
#include "tests/standin/driver/streams/capture.hpp"
#include "tests/standin/driver/streams/stream.hpp"

#undef cuEventElapsedTime  // later toolkits define it as the second version's name

namespace {

using namespace weir::standin;

std::shared_ptr<Event> find_event(Driver& driver, CUevent handle) {
  const auto* found = driver.events.find(handle);
  return found == nullptr ? nullptr : *found;
}

CUresult record(const char* name, CUevent event_handle, CUstream stream_handle,
                unsigned int flags = 0) {
  return api(name, Needs::kContext, [&](Call& call) {
    if (flags != 0) return CUDA_ERROR_NOT_SUPPORTED;
    const std::shared_ptr<Event> event = find_event(call.driver, event_handle);
    const std::shared_ptr<Stream> stream = find_stream(call, stream_handle);
    if (!event || !stream) return CUDA_ERROR_INVALID_HANDLE;
    if (event->context->device != stream->context->device) return CUDA_ERROR_INVALID_HANDLE;
    auto made = std::make_shared<Event::Record>();
    if (stream->capture) {
      const CUresult added = add_to_capture(*stream, {});
      if (added != CUDA_SUCCESS) return added;
      event->record = nullptr;
      event->capture = stream->capture;
      event->clock = stream->capture->clocks[stream.get()];
      return CUDA_SUCCESS;
    }
    const CUresult submitted =
        submit(call, stream, {.settle = [made] { made->at = std::chrono::steady_clock::now(); }});
    if (submitted != CUDA_SUCCESS) return submitted;
    if ((event->flags & CU_EVENT_BLOCKING_SYNC) != 0) ++call.driver.blocking_records;
    made->point = {stream, stream->enqueued};
    event->record = made;
    event->capture = nullptr;
    return CUDA_SUCCESS;
  });
}

/// The error of a capture for a query of this event.
CUresult refuse_captured(const Event& event) {
  if (!event.capture) return CUDA_SUCCESS;
  event.capture->invalid = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult elapsed(const char* name, float* milliseconds, CUevent start, CUevent end) {
  return api(name, Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Event> first = find_event(call.driver, start);
    const std::shared_ptr<Event> last = find_event(call.driver, end);
    if (!first || !last) return CUDA_ERROR_INVALID_HANDLE;
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!first->record || !last->record) return CUDA_ERROR_INVALID_HANDLE;
    if (!first->record->point.passed() || !last->record->point.passed()) {
      return CUDA_ERROR_NOT_READY;
    }
    *milliseconds =
        std::chrono::duration<float, std::milli>(last->record->at - first->record->at).count();
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

CUresult cuEventCreate(CUevent* handle, unsigned int flags) {
  return api("cuEventCreate", Needs::kContext, [&](Call& call) {
    if (handle == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->context = call.context;
    event->flags = flags;
    *handle = call.driver.events.add(std::move(event));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return api("cuEventDestroy", Needs::kContext, [&](Call& call) {
    if (!find_event(call.driver, handle)) return CUDA_ERROR_INVALID_HANDLE;
    call.driver.events.remove(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return record("cuEventRecord", event, stream);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  return record("cuEventRecordWithFlags", event, stream, flags);
}

CUresult cuEventQuery(CUevent handle) {
  return api("cuEventQuery", Needs::kCanCapture, [&](Call& call) {
    const std::shared_ptr<Event> event = find_event(call.driver, handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult refused = refuse_captured(*event);
    if (refused != CUDA_SUCCESS) return refused;
    if (!event->record || event->record->point.passed()) return CUDA_SUCCESS;
    return CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return api("cuEventSynchronize", Needs::kCanCapture, [&](Call& call) {
    const std::shared_ptr<Event> event = find_event(call.driver, handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult refused = refuse_captured(*event);
    if (refused != CUDA_SUCCESS) return refused;
    // Waits for the current record, not for one made meanwhile.
    const std::shared_ptr<Event::Record> recorded = event->record;
    if (recorded) recorded->point.wait(call.lock);
    trim_pools(call.driver, *call.context->device);
    return call.context->broken;
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return elapsed("cuEventElapsedTime", milliseconds, start, end);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return elapsed("cuEventElapsedTime", milliseconds, start, end);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent event_handle, unsigned int flags) {
  return api("cuStreamWaitEvent", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Event> event = find_event(call.driver, event_handle);
    const std::shared_ptr<Stream> stream = find_stream(call, stream_handle);
    if (!event || !stream) return CUDA_ERROR_INVALID_HANDLE;
    if (flags != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (event->capture) return wait_in_capture(stream, *event);
    if (!event->record) return CUDA_SUCCESS;
    if (stream->capture) {
      stream->capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    return submit(call, stream, {.after = {event->record->point}});
  });
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  return cuEventRecord(event, per_thread(stream));
}
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags) {
  return cuEventRecordWithFlags(event, per_thread(stream), flags);
}
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags) {
  return cuStreamWaitEvent(per_thread(stream), event, flags);
}

}  // extern "C"
