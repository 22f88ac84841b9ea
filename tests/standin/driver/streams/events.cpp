// Events.

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

#undef cuEventElapsedTime  // later toolkits define it as the second version's name

namespace {

using namespace weir::standin;

CUresult record(const char* name, CUevent event_handle, CUstream stream_handle,
                unsigned int flags = 0) {
  return api(name, Needs::kContext, [&](Call& call) {
    require(flags == 0, CUDA_ERROR_NOT_SUPPORTED);
    const std::shared_ptr<Event> event = get_event(call.driver, event_handle);
    const std::shared_ptr<Stream> stream = get_stream(call, stream_handle);
    require(event->context->device == stream->context->device, CUDA_ERROR_INVALID_HANDLE);
    if (stream->capture) {
      add_to_capture(*stream, {});
      event->record = nullptr;
      event->capture = stream->capture;
      event->clock = stream->capture->clocks[stream.get()];
      return;
    }
    auto made = std::make_shared<Event::Record>();
    submit(call, stream, {.settle = [made] { made->at = std::chrono::steady_clock::now(); }});
    if ((event->flags & CU_EVENT_BLOCKING_SYNC) != 0) ++call.driver.blocking_records;
    made->point = {stream, stream->enqueued};
    event->record = made;
    event->capture = nullptr;
  });
}

/// Refuses a query of an event that was captured.
void refuse_captured(const Event& event) {
  if (!event.capture) return;
  event.capture->invalid = true;
  pass(CUDA_ERROR_CAPTURED_EVENT);
}

}  // namespace

std::shared_ptr<Event> weir::standin::get_event(Driver& driver, CUevent handle) {
  return driver.events.get(handle, CUDA_ERROR_INVALID_HANDLE);
}

extern "C" {

CUresult cuEventCreate(CUevent* handle, unsigned int flags) {
  return api("cuEventCreate", Needs::kContext, [&](Call& call) {
    require(handle != nullptr && flags <= 7);
    auto event = std::make_shared<Event>();
    event->context = call.context;
    event->flags = flags;
    *handle = call.driver.events.add(std::move(event));
  });
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return api("cuEventDestroy", Needs::kContext, [&](Call& call) {
    (void)get_event(call.driver, handle);
    call.driver.events.remove(handle);
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return record("cuEventRecord", event, stream);
}
WEIR_PTSZ(cuEventRecord, (CUevent event, CUstream stream), event, stream)

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  return record("cuEventRecordWithFlags", event, stream, flags);
}
WEIR_PTSZ(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags), event,
          stream, flags)

CUresult cuEventQuery(CUevent handle) {
  return api("cuEventQuery", Needs::kCanCapture, [&](Call& call) {
    const std::shared_ptr<Event> event = get_event(call.driver, handle);
    refuse_captured(*event);
    const bool ready = !event->record || event->record->point.passed();
    return ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return api("cuEventSynchronize", Needs::kCanCapture, [&](Call& call) {
    const std::shared_ptr<Event> event = get_event(call.driver, handle);
    refuse_captured(*event);
    // Waits for the current record, not for one made meanwhile.
    const std::shared_ptr<Event::Record> recorded = event->record;
    if (recorded) recorded->point.wait(call.lock);
    trim_pools(call.driver, *call.context->device);
    return call.context->broken;
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return api("cuEventElapsedTime", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Event> first = get_event(call.driver, start);
    const std::shared_ptr<Event> last = get_event(call.driver, end);
    float& out = given(milliseconds);
    require(((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) == 0 && first->record &&
                last->record,
            CUDA_ERROR_INVALID_HANDLE);
    require(first->record->point.passed() && last->record->point.passed(), CUDA_ERROR_NOT_READY);
    out = std::chrono::duration<float, std::milli>(last->record->at - first->record->at).count();
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime(milliseconds, start, end);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent event_handle, unsigned int flags) {
  return api("cuStreamWaitEvent", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Event> event = get_event(call.driver, event_handle);
    const std::shared_ptr<Stream> stream = get_stream(call, stream_handle);
    require(flags == 0, CUDA_ERROR_NOT_SUPPORTED);
    if (event->capture) return wait_in_capture(stream, *event);
    if (!event->record) return;
    if (stream->capture) {
      stream->capture->invalid = true;
      pass(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    submit(call, stream, {.after = {event->record->point}});
  });
}
WEIR_PTSZ(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), stream, event,
          flags)

}  // extern "C"
