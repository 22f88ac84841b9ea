// How fences are recorded, queried and waited for. One long file: every function depends on the
// same rules of fences.hpp, under one lock.

#include "tools/preload/context/fences.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "allocator/base/log.hpp"
#include "allocator/progress/pause.hpp"
#include "tools/preload/context/last_found.hpp"

namespace weir::preload {
namespace {

/// How often a handle got or lost its stream, in any context. Changes under that context's lock.
constinit std::atomic<std::uint64_t> changes_of_handles{0};

}  // namespace

std::size_t Fences::room_for_new(std::size_t live, std::size_t behind) noexcept {
  return std::max({kFewStreams, live, behind / 4});
}

Fences::Fences(const Driver& driver, CUcontext context)
    : driver_(driver), context_(context), events_(EventFunctions(driver)) {
  contexts.fetch_add(1);
  const Lock lock(mutex_);
  streams_[everything_.value].id = everything_;
  (void)add(CU_STREAM_LEGACY, 0);
}

const Fences::Followed* Fences::followed(StreamId id) const {
  const auto found = streams_.find(id.value);
  return found != streams_.end() ? &found->second : nullptr;
}

Fences::Followed* Fences::followed(StreamId id) {
  const auto found = streams_.find(id.value);
  return found != streams_.end() ? &found->second : nullptr;
}

Fences::Followed& Fences::add(CUstream stream, std::uint64_t owner) {
  ThreadEnded ended = owner != 0 ? end_of_this_thread() : nullptr;
  const StreamId id = StreamId::next();
  Followed& its = streams_[id.value];
  its.id = id;
  its.handle = stream;
  its.owner = owner;
  its.ended = std::move(ended);
  if (owner != 0) {
    by_thread_.insert_or_assign(owner, &its);
  } else {
    by_handle_.insert_or_assign(stream, &its);
    changes_of_handles.fetch_add(1, std::memory_order_release);
  }
  return its;
}

void Fences::use_per_thread() noexcept { use_own_stream(); }

StreamId Fences::find(CUstream stream, bool per_thread) {
  stream = named_stream(stream, per_thread);
  const bool same = last_found.fences == this && last_found.handle == stream;
  if (same && last_found.changes == changes_of_handles.load(std::memory_order_acquire)) {
    return last_found.id;
  }
  const Lock lock(mutex_);
  if (stream == CU_STREAM_PER_THREAD) {
    use_per_thread();
    const auto found = by_thread_.find(thread_number());
    if (found != by_thread_.end()) return found->second->id;
    forget_ended();
    return add(stream, thread_number()).id;
  }
  const auto found = by_handle_.find(stream);
  if (found == by_handle_.end()) {
    streams_unknown_ = true;
    return add(stream, 0).id;
  }
  const StreamId id = found->second->id;
  last_found.fences = this;
  last_found.handle = stream;
  last_found.changes = changes_of_handles.load(std::memory_order_relaxed);
  last_found.id = id;
  return id;
}

std::optional<StreamId> Fences::find_known(CUstream stream, bool per_thread) {
  const bool default_stream =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  if (default_stream) return find(stream, per_thread);
  const Lock lock(mutex_);
  const auto found = by_handle_.find(stream);
  return found != by_handle_.end() ? std::optional(found->second->id) : std::nullopt;
}

CUstream Fences::handle(StreamId stream) const noexcept {
  const Lock lock(mutex_);
  const Followed* const found = followed(stream);
  if (found == nullptr || found->removed || found->owner != 0) return nullptr;
  return found->handle == CU_STREAM_LEGACY ? nullptr : found->handle;
}

std::vector<CUevent> Fences::events_of(StreamId stream) {
  const Lock lock(mutex_);
  Fence fence;
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  if (!scope.good() || gone_) return {};
  if (forbidden_now()) throw CaptureUnderWay("no fence can be recorded now");
  if (lost_) throw Error("no fence can be recorded now");
  Followed* const found = followed(stream);
  if (found == nullptr) return {};
  if (found->removed) throw Error("the stream is gone");
  // Events that this context adopted stay with it, for its own next fence.
  try {
    cover(fence, *found, Reach::kAll);
    if (!fence.others.empty()) carry_others(fence);
  } catch (...) {
    events_.give_back(fence.events);
    throw;
  }
  events_.disown(fence.events.size());
  return {fence.events.begin(), fence.events.end()};  // the adopter destroys them
}

CUstream Fences::carrier() {
  if (carrier_ == nullptr) {
    const CUresult made = driver_.cuStreamCreate(&carrier_, CU_STREAM_NON_BLOCKING);
    if (made != CUDA_SUCCESS) throw DriverError("cuStreamCreate", made);
  }
  return carrier_;
}

/// Events of gone streams belong to their fences and are reused when those are passed, so another
/// context needs its own event. Records it on a stream of ours: it would make a program's stream
/// wait.
void Fences::carry_others(Fence& fence) {
  for (const Point& point : fence.others) {
    for (const Fence& left : followed(point.stream)->queue.fences()) {
      for (const CUevent event : left.events) {
        const CUresult code = driver_.cuStreamWaitEvent(carrier(), event, 0);
        if (code != CUDA_SUCCESS) throw DriverError("cuStreamWaitEvent", code);
      }
    }
  }
  fence.others.clear();
  record_event(fence, carrier());
}

void Fences::adopt(const std::vector<CUevent>& events) {
  if (events.empty()) return;
  const Lock lock(mutex_);
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  CUresult code = CUDA_SUCCESS;
  // An event ends with its context. An enqueued wait no longer needs it.
  for (const CUevent event : events) {
    if (scope.good() && !gone_ && code == CUDA_SUCCESS) {
      code = driver_.cuStreamWaitEvent(carrier(), event, 0);
      adopted_ = true;
    }
    (void)driver_.cuEventDestroy_v2(event);
  }
  if (code != CUDA_SUCCESS) throw DriverError("cuStreamWaitEvent", code);
}

bool Fences::parked_point(Point point) const {
  const Followed* const its = point.stream == parked_ ? followed(parked_) : nullptr;
  if (its == nullptr || gone_ || its->queue.passed() >= point.sequence) return false;
  const auto& fences = its->queue.fences();
  return fences.empty() || fences.back().sequence < point.sequence;
}

std::optional<Point> Fences::last_parked() {
  const Lock lock(mutex_);
  Followed* const its = followed(parked_);
  if (its == nullptr) return std::nullopt;
  // Points parked from now on are behind more work than the caller will cover.
  if (its->queue.points() != 0) (void)its->queue.skip();
  const Point last{parked_, its->queue.last()};
  return parked_point(last) ? std::optional(last) : std::nullopt;
}

bool Fences::finish_parked(Point last) {
  const Lock lock(mutex_);
  if (!parked_point(last)) return true;
  if (forbidden_now() || lost_) return false;
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  Followed& all = *followed(everything_);
  FenceQueue<Fence>::Fences made(1);
  made.front().others.push_back({everything_, all.queue.next()});
  if (!scope.good() || !close(all)) return false;
  Followed& its = *followed(parked_);
  made.front().recorded = Clock::now();
  its.queue.push(made, last.sequence);
  sweep(its);
  return true;
}

void Fences::created(CUstream stream, bool blocking) {
  const Lock lock(mutex_);
  const auto found = by_handle_.find(stream);
  if (found != by_handle_.end()) found->second->removed = true;
  add(stream, 0).blocking = blocking;
}

CUresult Fences::remove(CUstream stream) noexcept {
  const Lock lock(mutex_);
  const auto found = by_handle_.find(stream);
  if (found == by_handle_.end() || stream == CU_STREAM_LEGACY) return CUDA_SUCCESS;
  Followed& gone = *found->second;
  const auto captured = captured_.find(gone.id);
  const bool seen = captured != captured_.end();
  if (seen && captured->second.began_it) {
    expect_unknown_captures();  // the capture lasts until the driver has destroyed the stream
    CapturesUnderWay::end(captured->second.capture);
    captured_.erase(captured);
    end_captured(gone);
  } else {
    captured_.erase(gone.id);
    const Inside inside;
    const ContextScope scope(driver_, context_, captures());
    // Record the last fence even if nobody asked: later it is impossible. Another stream's capture
    // is not affected; one that this stream is part of would be broken.
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const bool can = !gone_ && !lost_ && scope.good() &&
                     driver_.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
                     status == CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult code = can ? close_last(gone) : CUDA_SUCCESS;
    if (code != CUDA_SUCCESS) return code;
    if (can) {
      forget_gone();  // not this one yet
    } else if (seen && !gone_ && !lost_ && scope.good()) {
      end_captured(gone);
    } else {
      gone.unfenced = true;
    }
  }
  by_handle_.erase(found);
  changes_of_handles.fetch_add(1, std::memory_order_release);
  gone.removed = true;
  return CUDA_SUCCESS;
}

void Fences::end_captured(Followed& gone) noexcept {
  if (gone.unfenced || gone.queue.points() == 0) return;
  try {
    FenceQueue<Fence>::Fences made(1);
    made.front().recorded = Clock::now();
    gone.queue.push(made);
  } catch (const std::exception&) {
    gone.unfenced = true;
  }
}

void Fences::forget_ended() noexcept {
  if (gone_ || lost_ || InCallback::now()) return;
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  if (scope.good()) forget_gone();
}

void Fences::forget_gone() noexcept {
  if (streams_.size() < forget_at_ || forbidden_now()) return;
  for (auto& [id, each] : streams_) {
    if (!each.gone()) continue;
    // Nothing can be recorded for a destroyed stream, and nothing needs to be.
    if (!each.removed && each.queue.points() != 0) (void)close(each);
    sweep(each);
  }
  const auto forgotten = [](const Followed& stream) {
    return stream.gone() && stream.queue.idle() && !stream.unfenced;
  };
  std::size_t behind = 0;  // streams that are gone with work not passed
  // Ask `gone` once per stream: a thread can end at any time, and is gone from then on.
  for (auto each = streams_.begin(); each != streams_.end();) {
    if (!forgotten(each->second)) {
      if (each->second.gone()) ++behind;
      ++each;
      continue;
    }
    by_thread_.erase(each->second.owner);
    each = streams_.erase(each);
  }
  forget_at_ = streams_.size() + room_for_new(streams_.size() - behind, behind);
  forget_spares();
}

void Fences::forget_spares() noexcept {
  while (spare_.size() > forget_at_) spare_.pop_back();
  (void)events_.keep(forget_at_);
}

void Fences::fence_before_capture(StreamId stream) noexcept {
  Followed* const found = followed(stream);
  (void)captured_now();
  if (found == nullptr || captured_.contains(stream) || gone_ || lost_) return;
  if (found->handle == CU_STREAM_LEGACY) return;  // never captured; its fence asks all streams
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  found->unfenced = !scope.good() || close_last(*found) != CUDA_SUCCESS;
  if (!found->unfenced)
    sweep(*found);  // so that fences do not pile up if one waits again and again
}

void Fences::note_end_of_capture(StreamId stream, bool ended) noexcept {
  const Lock lock(mutex_);
  const Followed* const found = followed(stream);
  if (!ended && found != nullptr && !gone_) {
    // A broken capture has ended, too. But if, for example, the capture must end on another stream,
    // it goes on.
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const Inside inside;
    if (driver_.cuStreamIsCapturing(found->handle, &status) != CUDA_SUCCESS) {
      expect_unknown_captures();
    }
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) return;
  }
  const auto captured = captured_.find(stream);
  if (captured == captured_.end()) return;
  if (captured->second.began_it) CapturesUnderWay::end(captured->second.capture);
  captured_.erase(captured);
}

bool Fences::capturing() const {
  const Lock lock(mutex_);
  return captured_now();
}

bool Fences::captured_now() const {
  if (captured_.empty()) return false;
  std::erase_if(captured_, [this](const auto& each) WEIR_REQUIRES(mutex_) {
    const auto& [stream, captured] = each;
    if (!captured.began_it) return !CapturesUnderWay::has(captured.capture);
    // A capture of a thread's default stream ends with the thread.
    const Followed* const its = followed(stream);
    if (its != nullptr && !its->gone()) return false;
    CapturesUnderWay::end(captured.capture);
    return true;
  });
  return !captured_.empty();
}

bool Fences::forbidden_now() const {
  return captured_now() && std::ranges::any_of(captured_, [](const auto& each) {
           return each.second.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
         });
}

CUstreamCaptureMode Fences::mode_of(CaptureId capture) const noexcept {
  for (const auto& [stream, captured] : captured_) {
    if (captured.began_it && captured.capture == capture) return captured.mode;
  }
  return CU_STREAM_CAPTURE_MODE_GLOBAL;
}

std::string Fences::captures_text() const {
  constexpr std::array kModes{"global", "thread-local", "relaxed"};
  std::string text;
  const Lock lock(mutex_);
  if (!captured_now()) return text;
  for (const auto& [stream, captured] : captured_) {
    const Followed* const its = followed(stream);
    if (!captured.began_it || its == nullptr) continue;
    const auto since = std::chrono::duration<double>(Clock::now() - captured.since);
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(),
                  "a capture of stream %p (mode %s) has been open for %.1f s",
                  static_cast<void*>(its->handle),
                  kModes.at(static_cast<std::size_t>(captured.mode)), since.count());
    text += (text.empty() ? "" : ", ") + std::string(line.data());
  }
  return text;
}

CaptureId Fences::capture_here(StreamId stream) const noexcept {
  const Followed* const found = followed(stream);
  return found != nullptr ? capture_of(driver_, found->handle) : 0;
}

void Fences::expect_not_captured(CUstream stream) const {
  if (CapturesUnderWay::any() && is_captured(driver_, stream)) {
    throw CaptureUnderWay("the stream is captured");
  }
}

void Fences::forget() noexcept {
  const Lock lock(mutex_);
  gone_ = true;
  for (auto& [id, stream] : streams_) stream.queue.fences().clear();
  for (const auto& [id, captured] : captured_) {
    if (captured.began_it) CapturesUnderWay::end(captured.capture);
  }
  captured_.clear();
  measures_.clear();
  carrier_ = nullptr;
  adopted_ = false;
}

Point Fences::record(StreamId stream) {
  if (stream == sync_) return {stream, 0};
  const Lock lock(mutex_);
  if (stream == parked_) {
    Followed& its = streams_[parked_.value];
    its.id = parked_;
    return {parked_, its.queue.add_point()};
  }
  Followed* const found = followed(stream);
  if (found == nullptr) return {stream, 0};
  // Its last fence covers all its work.
  if (found->removed) return {stream, found->queue.next() - (found->unfenced ? 0 : 1)};
  const Point point{stream, found->queue.add_point()};
  const std::uint32_t most =
      asks_all(*found) ? points_of_a_fence(streams_.size()) : kPointsOfAFence;
  if (found->queue.points() < most || forbidden_now() || gone_ || lost_) return point;
  close_and_sweep(*found);
  return point;
}

void Fences::close_and_sweep(Followed& stream) noexcept {
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  if (!scope.good()) return;
  (void)close(stream);  // if not now, then when it is asked for
  sweep(stream);        // so that fences are used again though nobody asks
}

bool Fences::close(Followed& stream) noexcept {
  try {
    record_fence(stream);
    return true;
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("a fence is recorded later: ") + error.what());
    return false;
  }
}

CUresult Fences::close_last(Followed& stream) noexcept {
  try {
    record_fence(stream);
    return CUDA_SUCCESS;
  } catch (const DriverError& error) {
    return error.code();
  } catch (const std::exception&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

void Fences::record_fence(Followed& stream) {
  if (stream.id == parked_) throw CaptureUnderWay("another context is captured, or ends");
  // First, since nothing may fail after events are recorded. Out of the list, since fences found
  // passed meanwhile go there.
  FenceQueue<Fence>::Fences made;
  if (spare_.empty()) spare_.emplace_back();
  made.splice(made.begin(), spare_, spare_.begin());
  Fence& fence = made.front();
  fence.recorded = Clock::now();
  try {
    cover(fence, stream, Reach::kNext);
    if (stream.id == everything_) cover_adopted(fence);
  } catch (...) {
    events_.give_back(fence.events);
    fence.others.clear();
    spare_.splice(spare_.begin(), made);
    throw;
  }
  for (const Point& other : fence.others) {
    Followed& its = *followed(other.stream);
    its.covered = its.removed;  // a captured one goes on
  }
  stream.queue.push(made);
  stream.unfenced = false;
  ++recorded_;
}

void Fences::cover(Fence& fence, Followed& stream, Reach all) {
  if (stream.id == everything_) {
    cover_everything(fence, all);
  } else if (stream.owner != 0 && stream.owner != thread_number()) {
    record_event(fence, CU_STREAM_LEGACY);  // it waits for every thread's default stream
  } else if (stream.handle == CU_STREAM_LEGACY && !forbidden_now()) {
    cover_streams(fence, Reach::kBlocking);  // its order is behind all of theirs
  } else if (forbidden_now() || busy(stream.handle) || is_behind_others(stream)) {
    record_event(fence, stream.handle);
  }
}

/// A blocking stream may wait for work in the legacy stream, and through it for other streams.
/// Avoids needless events, which take the device a moment to pass: a program that synchronizes and
/// then trims should get all its memory.
bool Fences::is_behind_others(Followed& stream) {
  if (stream.owner == 0 && !is_blocking(stream)) return false;
  const OwnStreams own = own_streams();
  return own.here || own.elsewhere || own.ended != threads_ended_ || busy(CU_STREAM_LEGACY);
}

void Fences::cover_everything(Fence& fence, Reach reach) {
  cover_streams(fence, reach);
  std::erase_if(streams_, [](const auto& each) {
    const Followed& stream = each.second;
    return stream.removed && stream.queue.fences().empty();
  });
}

void Fences::cover_adopted(Fence& fence) {
  if (!adopted_) return;
  record_event(fence, carrier());
  adopted_ = false;
}

void Fences::cover_streams(Fence& fence, Reach reach) {
  const bool all = reach != Reach::kBlocking;
  BlockingStreams blocking{.streams_unknown = streams_unknown_};
  for (auto& [id, stream] : streams_) {
    const bool is_default =
        stream.handle == nullptr || stream.handle == CU_STREAM_LEGACY || stream.owner != 0;
    if (stream.removed) {
      cover_removed(fence, stream, reach, blocking);
    } else if (captured_.contains(stream.id)) {
      if (all || is_blocking(stream)) cover_captured(fence, stream, reach);
    } else if (!is_default && (all || is_blocking(stream)) && busy(stream.handle)) {
      record_event(fence, stream.handle);
      blocking.event_on_blocking = blocking.event_on_blocking || is_blocking(stream);
    }
  }
  cover_threads(fence, blocking);
  blocking.busy = blocking.nameless || busy(CU_STREAM_LEGACY);
  if (needs_legacy_event(blocking)) record_event(fence, CU_STREAM_LEGACY);
}

void Fences::cover_threads(Fence& fence, BlockingStreams& blocking) {
  const OwnStreams own = own_streams();
  fence.threads_ended = own.ended;
  if (own.elsewhere || own.ended != threads_ended_) {
    blocking.nameless = true;
  } else if (own.here && busy(CU_STREAM_PER_THREAD)) {
    record_event(fence, CU_STREAM_PER_THREAD);
    blocking.event_on_blocking = true;
  }
}

/// Its work until the capture has a fence; the captured work is none of the device's.
void Fences::cover_captured(Fence& fence, Followed& stream, Reach reach) {
  sweep(stream);
  const bool waits = stream.unfenced || !stream.queue.fences().empty();
  // The events of one that is given away must cover everything.
  if (stream.unfenced || (waits && reach == Reach::kBlocking)) {
    throw CaptureUnderWay("the stream is captured");
  }
  if (waits) fence.others.push_back({stream.id, stream.queue.next() - 1});
}

void Fences::cover_removed(Fence& fence, Followed& stream, Reach reach, BlockingStreams& blocking) {
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

bool Fences::busy(CUstream stream) const {
  if (CapturesUnderWay::any() && is_captured(driver_, stream)) return true;
  const CUresult code = driver_.cuStreamQuery(stream);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY) return code != CUDA_SUCCESS;
  throw DriverError("cuStreamQuery", code);
}

bool Fences::is_blocking(Followed& stream) const {
  if (!stream.blocking) {
    unsigned int flags = 0;
    const CUresult code = driver_.cuStreamGetFlags(stream.handle, &flags);
    if (code != CUDA_SUCCESS) throw DriverError("cuStreamGetFlags", code);
    stream.blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  }
  return *stream.blocking;
}

void Fences::record_event(Fence& fence, CUstream stream) {
  expect_not_captured(stream);
  const CUresult code = events_.record(fence.events, stream);
  if (code != CUDA_SUCCESS) throw DriverError("cuEventRecord", code);
}

bool Fences::is_passed(Fence& fence) noexcept {
  switch (event_state(events_.take_passed(fence.events))) {
    case EventState::kPassed:
      break;
    case EventState::kNotPassed:
      return false;
    case EventState::kCaptured:
      expect_unknown_captures();  // and asks again later
      CapturesUnderWay::expect_unknown();
      return false;
    case EventState::kFailed:
      lost_ = true;  // the program gets the same error from its next call
      return false;
  }
  while (!fence.others.empty()) {
    const Point point = fence.others.back();
    Followed* const other = followed(point.stream);
    if (other != nullptr) {
      sweep(*other);
      if (other->queue.passed() < point.sequence) return false;
    }
    fence.others.pop_back();
  }
  return true;
}

void Fences::sweep(Followed& stream) noexcept {
  bool was_idle = false;
  const auto passes = [&](Fence& fence) WEIR_REQUIRES(mutex_) {
    was_idle = fence.events.empty() && fence.others.empty();
    return !lost_ && is_passed(fence);
  };
  while (stream.queue.take_passed(spare_, passes)) {
    if (stream.id != everything_) continue;
    // Nothing was under way when the fence was recorded. Saves reading the clock for each
    // cuMemAlloc after the cuMemFree of its block.
    const Fence& fence = spare_.front();
    tell_measures(fence.sequence, was_idle ? fence.recorded : Clock::now());
    threads_ended_ = fence.threads_ended;
  }
}

void Fences::tell_measures(std::uint64_t sequence, Clock::time_point now) noexcept {
  std::erase_if(measures_, [&](const Measure& measure) WEIR_REQUIRES(mutex_) {
    if (measure.sequence > sequence) return false;
    const bool was_used = everything_passed_ != Clock::time_point{};
    const auto idle = was_used ? std::max(measure.since - everything_passed_, Clock::duration{})
                               : Clock::duration{};
    const auto took = now - std::max(measure.since, everything_passed_);
    measure.batch->note_ran(StreamRole::kCompute,
                            {.device_time = std::max(took, Clock::duration(1)),
                             .gap = idle,
                             .starved = idle,
                             .end = now});
    return true;
  });
  everything_passed_ = now;
}

bool Fences::is_costly(StreamId stream) const noexcept {
  const Followed* const found = followed(stream);
  return found != nullptr && asks_all(*found) && found->queue.points() != 0 &&
         !pays(found->queue.points(), streams_.size());
}

std::uint64_t Fences::passed_locked(StreamId stream, bool record) noexcept {
  Followed* const found = followed(stream);
  if (gone_ || found == nullptr) return UINT64_MAX - 1;  // the highest: points without a fence
  const FenceQueue<Fence>& queue = found->queue;
  if (forbidden_now() || lost_ || queue.idle()) return queue.passed();
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  if (!scope.good()) return queue.passed();
  sweep(*found);
  const bool wanted = record && queue.fences().empty() && queue.points() != 0 && !found->removed &&
                      stream != parked_;
  if (wanted && close(*found)) sweep(*found);
  return queue.passed();
}

std::uint64_t Fences::passed(StreamId stream) {
  if (stream == sync_) return 0;
  const Lock lock(mutex_);
  return passed_locked(stream);
}

Progress::Known Fences::known_passed(StreamId stream) {
  if (stream == sync_) return {};
  const Lock lock(mutex_);
  const bool costly = is_costly(stream);
  return {.passed = passed_locked(stream, !costly), .is_all = !costly};
}

void Fences::fence(StreamId stream) noexcept {
  const Lock lock(mutex_);
  Followed* const found = followed(stream);
  if (found == nullptr || found->queue.points() == 0 || found->removed) return;
  if (forbidden_now() || gone_ || lost_) return;
  close_and_sweep(*found);
}

Fences::Clock::time_point Fences::recorded(Point point) const {
  const Lock lock(mutex_);
  const Followed* const found = followed(point.stream);
  if (found != nullptr) {
    for (const Fence& fence : found->queue.fences()) {
      if (fence.sequence >= point.sequence) return fence.recorded;
    }
  }
  return Clock::now();
}

void Fences::measure(Ticket& batch, Clock::time_point since) {
  const Lock lock(mutex_);
  const Followed* const all = followed(everything_);
  measures_.push_back({&batch, since, all->queue.next()});
}

bool Fences::wait(Point point, const WaitLimit& limit) {
  const auto start = Clock::now();
  const auto until = shortened(point, start, limit.until);
  for (Pause pause(std::chrono::microseconds(200));; pause()) {
    {
      const Lock lock(mutex_);
      if (point.stream == sync_ || passed_locked(point.stream) >= point.sequence) {
        ran_out_ = 0;
        return true;
      }
      if (forbidden_now() || lost_) return false;
      Followed* const found = followed(point.stream);
      if (found != nullptr && !found->removed && found->queue.next() == point.sequence &&
          point.stream != parked_) {
        const Inside inside;
        const ContextScope scope(driver_, context_, captures());
        if (scope.good()) (void)close(*found);
      }
      if (Clock::now() >= until) {
        if (until > start) {
          stuck_ = point;
          ran_out_ = std::min(ran_out_ + 1, kMostHalvings);
        }
        return false;
      }
    }
    if (InCallback::now() || limit.over()) return false;
  }
}

// What is awaited may itself wait for this thread, which would wait in vain for each request.
Fences::Clock::time_point Fences::shortened(Point point, Clock::time_point from,
                                            Clock::time_point until) const {
  const Lock lock(mutex_);
  if (ran_out_ == 0 || until <= from) return until;
  if (stuck_ == point) return std::min(until, from + kShortWait);
  return from + (until - from) / (1 << ran_out_);
}

void Fences::make_wait(StreamId waiter, Point point) {
  // Its owner may use the memory on a stream that does not exist yet, or on the host.
  if (waiter == sync_) throw Error("memory for every stream is not handed over");
  const Lock lock(mutex_);
  if (passed_locked(point.stream) >= point.sequence) return;
  const Followed* const found = followed(waiter);
  if (found == nullptr || found->removed) throw Error("the waiting stream is gone");
  if (forbidden_now() || lost_) throw Error("no fence can be waited for now");
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  if (!scope.good()) throw Error("the context is gone");
  wait_on_device(*found, point);
}

void Fences::wait_on_device(const Followed& waiter, Point point) {
  Followed* const behind = followed(point.stream);
  if (behind == nullptr) return;
  if (behind->queue.next() == point.sequence && (behind->removed || !close(*behind))) {
    throw Error("no fence can be recorded now");
  }
  if (parked_point(point)) throw CaptureUnderWay("another context is captured, or ends");
  expect_not_captured(waiter.handle);
  for (const Fence& fence : behind->queue.fences()) {
    // A fence on everything omits what earlier ones cover.
    if (fence.sequence < point.sequence && behind->id != everything_) continue;
    for (const CUevent event : fence.events) {
      const CUresult code = driver_.cuStreamWaitEvent(waiter.handle, event, 0);
      if (code != CUDA_SUCCESS) throw DriverError("cuStreamWaitEvent", code);
    }
    for (const Point other : fence.others) wait_on_device(waiter, other);
    if (fence.sequence >= point.sequence) return;
  }
}

std::uint64_t Fences::fences_recorded() const {
  const Lock lock(mutex_);
  return recorded_;
}

}  // namespace weir::preload
