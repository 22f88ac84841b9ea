#include "tools/preload/context/fence_recorder.hpp"

#include <algorithm>

namespace weir::preload {
namespace {

static_assert(event_state(CUDA_SUCCESS) == EventState::kPassed);
static_assert(event_state(CUDA_ERROR_NOT_READY) == EventState::kNotPassed);
static_assert(event_state(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) == EventState::kCaptured);
static_assert(event_state(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) == EventState::kCaptured);
static_assert(event_state(CUDA_ERROR_ILLEGAL_ADDRESS) == EventState::kFailed);

void check(const char* call, CUresult code) {
  if (code != CUDA_SUCCESS) throw DriverError(call, code);
}

}  // namespace

CUresult FenceRecorder::record(FollowedStream& stream) noexcept {
  try {
    record_or_throw(stream);
    return CUDA_SUCCESS;
  } catch (const std::exception& error) {
    log_failure(LogLevel::kDebug, "no fence can be recorded now", error);
    const auto* const refused = dynamic_cast<const DriverError*>(&error);
    return refused != nullptr ? refused->code() : CUDA_ERROR_OUT_OF_MEMORY;
  }
}

void FenceRecorder::record_or_throw(FollowedStream& stream) {
  if (stream.id == streams_.parked()) {
    throw CaptureUnderWay("another context is captured, or ends");
  }
  // First, since nothing may fail after events are recorded. Out of the list, since fences found
  // passed meanwhile go there.
  FenceQueue<Fence>::Fences made;
  if (spare_.empty()) spare_.emplace_back();
  made.splice(made.begin(), spare_, spare_.begin());
  Fence& fence = made.front();
  fence.recorded = Clock::now();
  try {
    cover(fence, stream, Reach::kNext);
    if (adopted_ && stream.id == streams_.everything()) {
      record_event(fence, carrier());
      adopted_ = false;
    }
  } catch (...) {
    events_.give_back(fence.events);
    fence.others.clear();
    spare_.splice(spare_.begin(), made);
    throw;
  }
  for (const Point& other : fence.others) {
    FollowedStream& its = *streams_.find(other.stream);
    its.covered = its.removed;  // a captured one goes on
  }
  stream.queue.push(made);
  stream.unfenced = false;
}

void FenceRecorder::cover(Fence& fence, FollowedStream& stream, Reach all) {
  if (stream.id == streams_.everything()) {
    cover_streams(fence, all);
    streams_.forget_passed();
  } else if (stream.owner != 0 && stream.owner != thread_number()) {
    record_event(fence, CU_STREAM_LEGACY);  // it waits for every thread's default stream
  } else if (stream.handle == CU_STREAM_LEGACY && !captures_.forbid_asking()) {
    cover_streams(fence, Reach::kBlocking);  // its order is behind all of theirs
  } else if (captures_.forbid_asking() || busy(stream.handle) || is_behind_others(stream)) {
    record_event(fence, stream.handle);
  }
}

/// A blocking stream may wait for work in the legacy stream, and through it for other streams.
/// Avoids needless events, which take the device a moment to pass: a program that synchronizes and
/// then trims should get all its memory.
bool FenceRecorder::is_behind_others(FollowedStream& stream) {
  if (stream.owner == 0 && !is_blocking(stream)) return false;
  const OwnStreams own = own_streams();
  return own.here || own.elsewhere || own.ended != threads_ended_ || busy(CU_STREAM_LEGACY);
}

void FenceRecorder::cover_streams(Fence& fence, Reach reach) {
  const bool all = reach != Reach::kBlocking;
  BlockingStreams blocking{.streams_unknown = streams_.some_unknown()};
  for (auto& [id, stream] : streams_.all()) {
    if (stream.removed) {
      cover_removed(fence, stream, reach, blocking);
    } else if (captures_.has(stream.id)) {
      if (all || is_blocking(stream)) cover_captured(fence, stream, reach);
    } else if (stream.is_created() && (all || is_blocking(stream)) && busy(stream.handle)) {
      record_event(fence, stream.handle);
      blocking.event_on_blocking = blocking.event_on_blocking || is_blocking(stream);
    }
  }
  // Of threads' default streams, even of ended threads: only the thread itself can name its own.
  const OwnStreams own = own_streams();
  fence.threads_ended = own.ended;
  if (own.elsewhere || own.ended != threads_ended_) {
    blocking.nameless = true;
  } else if (own.here && busy(CU_STREAM_PER_THREAD)) {
    record_event(fence, CU_STREAM_PER_THREAD);
    blocking.event_on_blocking = true;
  }
  blocking.busy = blocking.nameless || busy(CU_STREAM_LEGACY);
  if (needs_legacy_event(blocking)) record_event(fence, CU_STREAM_LEGACY);
}

/// Its work until the capture has a fence; the captured work is none of the device's.
void FenceRecorder::cover_captured(Fence& fence, FollowedStream& stream, Reach reach) {
  sweep(stream);
  const bool waits = stream.unfenced || !stream.queue.fences().empty();
  // The events of one that is given away must cover everything.
  if (stream.unfenced || (waits && reach == Reach::kBlocking)) {
    throw CaptureUnderWay("the stream is captured");
  }
  if (waits) fence.others.push_back({stream.id, stream.queue.next() - 1});
}

void FenceRecorder::cover_removed(Fence& fence, FollowedStream& stream, Reach reach,
                                  BlockingStreams& blocking) {
  if (stream.unfenced && reach != Reach::kBlocking) {
    throw Error("a stream ended without a last fence");
  }
  if (stream.covered && reach == Reach::kNext) return;
  sweep(stream);
  if (stream.queue.fences().empty() && !stream.unfenced) return;
  if (reach == Reach::kBlocking) {
    blocking.nameless = true;  // the events must cover everything, since they may be given away
  } else {
    fence.others.push_back({stream.id, stream.queue.next() - 1});
  }
}

bool FenceRecorder::busy(CUstream stream) const {
  if (CapturesUnderWay::any() && is_captured(driver_, stream)) return true;
  const CUresult code = driver_.cuStreamQuery(stream);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY) return code != CUDA_SUCCESS;
  throw DriverError("cuStreamQuery", code);
}

bool FenceRecorder::is_blocking(FollowedStream& stream) const {
  if (!stream.blocking) {
    unsigned int flags = 0;
    check("cuStreamGetFlags", driver_.cuStreamGetFlags(stream.handle, &flags));
    stream.blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  }
  return *stream.blocking;
}

void FenceRecorder::record_event(Fence& fence, CUstream stream) {
  expect_not_captured(stream);
  check("cuEventRecord", events_.record(fence.events, stream));
}

void FenceRecorder::expect_not_captured(CUstream stream) const {
  if (CapturesUnderWay::any() && is_captured(driver_, stream)) {
    throw CaptureUnderWay("the stream is captured");
  }
}

bool FenceRecorder::is_passed(Fence& fence) noexcept {
  switch (event_state(events_.take_passed(fence.events))) {
    case EventState::kPassed:
      break;
    case EventState::kNotPassed:
      return false;
    case EventState::kCaptured:
      ContextCaptures::expect_unknown();  // and asks again later
      CapturesUnderWay::expect_unknown();
      return false;
    case EventState::kFailed:
      lost_ = true;  // the program gets the same error from its next call
      return false;
  }
  while (!fence.others.empty()) {
    const Point point = fence.others.back();
    FollowedStream* const other = streams_.find(point.stream);
    if (other != nullptr) {
      sweep(*other);
      if (other->queue.passed() < point.sequence) return false;
    }
    fence.others.pop_back();
  }
  return true;
}

void FenceRecorder::sweep(FollowedStream& stream) noexcept {
  bool was_idle = false;
  const auto passes = [&](Fence& fence) {
    was_idle = fence.events.empty() && fence.others.empty();
    return !lost_ && is_passed(fence);
  };
  while (stream.queue.take_passed(spare_, passes)) {
    if (stream.id != streams_.everything()) continue;
    // Nothing was under way when the fence was recorded. Saves reading the clock for each
    // cuMemAlloc after the cuMemFree of its block.
    const Fence& fence = spare_.front();
    tell_measures(fence.sequence, was_idle ? fence.recorded : Clock::now());
    threads_ended_ = fence.threads_ended;
  }
}

void FenceRecorder::tell_measures(std::uint64_t sequence, Clock::time_point now) noexcept {
  const bool was_used = everything_passed_ != Clock::time_point{};
  std::erase_if(measures_, [&](const Measure& measure) {
    if (measure.sequence > sequence) return false;
    const auto began = std::max(measure.since, everything_passed_);
    const auto idle = was_used ? began - everything_passed_ : Clock::duration{};
    measure.batch->note_ran(StreamRole::kCompute,
                            {.device_time = std::max(now - began, Clock::duration(1)),
                             .gap = idle,
                             .starved = idle,
                             .end = now});
    return true;
  });
  everything_passed_ = now;
}

void FenceRecorder::measure(Ticket& batch, Clock::time_point since) {
  measures_.push_back({&batch, since, streams_.find(streams_.everything())->queue.next()});
}

void FenceRecorder::make_wait(const FollowedStream& waiter, Point point) {
  FollowedStream* const behind = streams_.find(point.stream);
  if (behind == nullptr) return;
  if (behind->queue.next() == point.sequence &&
      (behind->removed || record(*behind) != CUDA_SUCCESS)) {
    throw Error("no fence can be recorded now");
  }
  if (streams_.is_parked(point)) throw CaptureUnderWay("another context is captured, or ends");
  expect_not_captured(waiter.handle);
  for (const Fence& fence : behind->queue.fences()) {
    // A fence on everything omits what earlier ones cover.
    if (fence.sequence < point.sequence && behind->id != streams_.everything()) continue;
    for (const CUevent event : fence.events) {
      check("cuStreamWaitEvent", driver_.cuStreamWaitEvent(waiter.handle, event, 0));
    }
    for (const Point other : fence.others) make_wait(waiter, other);
    if (fence.sequence >= point.sequence) return;
  }
}

void FenceRecorder::end_captured(FollowedStream& gone) noexcept {
  if (gone.unfenced || gone.queue.points() == 0) return;
  try {
    FenceQueue<Fence>::Fences made(1);
    made.front().recorded = Clock::now();
    gone.queue.push(made);
  } catch (const std::exception&) {
    gone.unfenced = true;
  }
}

bool FenceRecorder::finish_parked(Point last) {
  FollowedStream& all = *streams_.find(streams_.everything());
  FenceQueue<Fence>::Fences made(1);
  made.front().others.push_back({all.id, all.queue.next()});
  if (record(all) != CUDA_SUCCESS) return false;
  FollowedStream& parked = streams_.park();
  made.front().recorded = Clock::now();
  parked.queue.push(made, last.sequence);
  sweep(parked);
  return true;
}

void FenceRecorder::forget_gone() noexcept {
  if (!streams_.many() || captures_.forbid_asking()) return;
  for (auto& [id, each] : streams_.all()) {
    if (!each.gone()) continue;
    // Nothing can be recorded for a destroyed stream, and nothing needs to be.
    if (!each.removed && each.queue.points() != 0) (void)record(each);
    sweep(each);
  }
  const std::size_t most = streams_.forget_gone();
  while (spare_.size() > most) spare_.pop_back();
  (void)events_.keep(most);
}

std::vector<CUevent> FenceRecorder::events_of(FollowedStream& stream) {
  if (stream.removed) throw Error("the stream is gone");
  Fence fence;
  // Events that this context adopted stay with it, for its own next fence.
  try {
    cover(fence, stream, Reach::kAll);
    if (!fence.others.empty()) carry_others(fence);
  } catch (...) {
    events_.give_back(fence.events);
    throw;
  }
  events_.disown(fence.events.size());
  return {fence.events.begin(), fence.events.end()};
}

/// Events of gone streams belong to their fences and are reused when those are passed, so another
/// context needs its own event. Records it on a stream of ours: it would make a program's stream
/// wait.
void FenceRecorder::carry_others(Fence& fence) {
  for (const Point& point : fence.others) {
    for (const Fence& left : streams_.find(point.stream)->queue.fences()) {
      for (const CUevent event : left.events) {
        check("cuStreamWaitEvent", driver_.cuStreamWaitEvent(carrier(), event, 0));
      }
    }
  }
  fence.others.clear();
  record_event(fence, carrier());
}

void FenceRecorder::adopt(const std::vector<CUevent>& events, bool alive) {
  CUresult code = CUDA_SUCCESS;
  // An event ends with its context. An enqueued wait no longer needs it.
  for (const CUevent event : events) {
    if (alive && code == CUDA_SUCCESS) {
      code = driver_.cuStreamWaitEvent(carrier(), event, 0);
      adopted_ = true;
    }
    (void)driver_.cuEventDestroy_v2(event);
  }
  check("cuStreamWaitEvent", code);
}

CUstream FenceRecorder::carrier() {
  if (carrier_ == nullptr) {
    check("cuStreamCreate", driver_.cuStreamCreate(&carrier_, CU_STREAM_NON_BLOCKING));
  }
  return carrier_;
}

}  // namespace weir::preload
