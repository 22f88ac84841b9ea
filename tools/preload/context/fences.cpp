// How fences are recorded, asked for and waited for. In one file, long as it is: every function
// here stands on the same few rules of fences.hpp, under one lock.

#include "tools/preload/context/fences.hpp"

#include <algorithm>
#include <ctime>
#include <thread>
#include <utility>

#include "allocator/base/log.hpp"
#include "allocator/base/no_cancel.hpp"

namespace weir::preload {
namespace {

/// When the calling thread's request began: also what waits behind others for its turn to wait is
/// told when it has waited long enough.
constinit thread_local Fences::Clock::time_point request_began{};
constinit thread_local const Fences::Request* this_request = nullptr;
/// Streams were not asked for it, since it can grow; and it wants them asked now.
constinit thread_local bool put_off = false;
constinit thread_local bool insists = false;

/// The steady clock to a tick of the kernel, which costs next to nothing.
Fences::Clock::time_point coarse_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return Fences::Clock::time_point(std::chrono::seconds(now.tv_sec) +
                                   std::chrono::nanoseconds(now.tv_nsec));
}

bool forbidden_by_capture(CUresult code) noexcept {
  return code >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         code <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

/// Short at first, since waking takes longer than many a kernel.
void pause_since(Fences::Clock::time_point start) {
  if (Fences::Clock::now() - start < std::chrono::microseconds(200)) {
    std::this_thread::yield();
  } else {
    const NoCancel no_cancel;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace

std::size_t Fences::room_for_new(std::size_t live, std::size_t behind) noexcept {
  return std::max({kFewStreams, live, behind / 4});
}

Fences::Fences(const Driver& driver, CUcontext context, std::chrono::nanoseconds max_wait)
    : driver_(driver), context_(context), max_wait_(max_wait) {
  followed.fetch_add(1);
  const Lock lock(mutex_);
  lanes_[everything_.value].id = everything_;
  (void)add(CU_STREAM_LEGACY, 0);
}

void Fences::begin_request(const Request* next) noexcept {
  request_began = coarse_now();
  this_request = next;
  put_off = insists = false;
}

bool Fences::insist() noexcept {
  insists = true;
  return std::exchange(put_off, false);
}

const Fences::Lane* Fences::lane(StreamId id) const {
  const auto found = lanes_.find(id.value);
  return found != lanes_.end() ? &found->second : nullptr;
}

Fences::Lane* Fences::lane(StreamId id) {
  const auto found = lanes_.find(id.value);
  return found != lanes_.end() ? &found->second : nullptr;
}

Fences::Lane& Fences::add(CUstream stream, std::uint64_t owner) {
  ThreadEnded ended = owner != 0 ? end_of_this_thread() : nullptr;
  const StreamId id = StreamId::next();
  Lane& lane = lanes_[id.value];
  lane.id = id;
  lane.stream = stream;
  lane.owner = owner;
  lane.ended = std::move(ended);
  if (owner != 0) {
    by_thread_.insert_or_assign(owner, &lane);
  } else {
    by_handle_.insert_or_assign(stream, &lane);
  }
  return lane;
}

void Fences::end_request() noexcept { this_request = nullptr; }

std::chrono::nanoseconds Fences::left_of_request(std::chrono::nanoseconds most) noexcept {
  return std::max<Clock::duration>(request_began + most - Clock::now(), Clock::duration::zero());
}

void Fences::use_per_thread() noexcept { use_own_stream(); }

StreamId Fences::find(CUstream stream, bool per_thread) {
  stream = named_stream(stream, per_thread);
  const Lock lock(mutex_);
  if (stream == CU_STREAM_PER_THREAD) {
    use_per_thread();
    const auto found = by_thread_.find(this_thread());
    if (found != by_thread_.end()) return found->second->id;
    forget_ended();
    return add(stream, this_thread()).id;
  }
  const auto found = by_handle_.find(stream);
  if (found != by_handle_.end()) return found->second->id;
  streams_unknown_ = true;
  return add(stream, 0).id;
}

std::optional<StreamId> Fences::find_known(CUstream stream, bool per_thread) {
  const bool default_stream =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  if (default_stream) return find(stream, per_thread);
  const Lock lock(mutex_);
  const auto found = by_handle_.find(stream);
  return found != by_handle_.end() ? std::optional(found->second->id) : std::nullopt;
}

std::vector<CUevent> Fences::events_of(StreamId stream) {
  const Lock lock(mutex_);
  Fence fence;
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  if (!scope.good() || gone_) return {};
  if (captured_now()) throw CaptureUnderWay("no fence can be recorded now");
  if (lost_) throw Error("no fence can be recorded now");
  Lane* const found = lane(stream);
  if (found == nullptr) return {};
  if (found->removed) throw Error("the stream is gone");
  // What this context has adopted stays with it: it is for its own next fence.
  try {
    cover(fence, *found, Reach::kAll);
    if (!fence.others.empty()) carry_others(fence);
  } catch (...) {
    free_events_.insert(free_events_.end(), fence.events.begin(), fence.events.end());
    throw;
  }
  events_made_ -= fence.events.size();
  return std::move(fence.events);  // whoever adopts them destroys them
}

CUstream Fences::carrier() {
  if (carrier_ == nullptr) {
    const CUresult made = driver_.cuStreamCreate(&carrier_, CU_STREAM_NON_BLOCKING);
    if (made != CUDA_SUCCESS) throw DriverError("cuStreamCreate", made);
  }
  return carrier_;
}

/// The events of streams that are gone belong to their fences, and are used again when those are
/// passed: somebody else needs one of its own. It is recorded on a stream of ours, since on one of
/// the program's it would make that wait.
void Fences::carry_others(Fence& fence) {
  for (const Point& point : fence.others) {
    for (const Fence& left : lane(point.stream)->fences) {
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
  // An event ends with its context. A wait for it that is enqueued here does not need it any more.
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
  const Lane* const its = point.stream == parked_ ? lane(parked_) : nullptr;
  if (its == nullptr || gone_ || its->passed >= point.sequence) return false;
  return its->fences.empty() || its->fences.back().sequence < point.sequence;
}

std::optional<Point> Fences::last_parked() {
  const Lock lock(mutex_);
  Lane* const its = lane(parked_);
  if (its == nullptr) return std::nullopt;
  // What is parked from now on is behind more than who asks will look at.
  if (its->points != 0) ++its->next;
  its->points = 0;
  const Point last{parked_, its->next - 1};
  return parked_point(last) ? std::optional(last) : std::nullopt;
}

bool Fences::finish_parked(Point last) {
  const Lock lock(mutex_);
  if (!parked_point(last)) return true;
  if (captured_now() || lost_) return false;
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  Lane& all = *lane(everything_);
  std::list<Fence> made(1);
  made.front().others.push_back({everything_, all.next});
  if (!scope.good() || !close(all)) return false;
  Lane& its = *lane(parked_);
  made.front().sequence = last.sequence;
  made.front().recorded = Clock::now();
  its.fences.splice(its.fences.end(), made);
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
  Lane& gone = *found->second;
  const auto captured = captured_.find(gone.id);
  const bool seen = captured != captured_.end();
  if (seen && captured->second.began_it) {
    expect_unknown_captures();  // it goes on until the driver has destroyed the stream
    CapturesUnderWay::end(captured->second.capture);
    captured_.erase(captured);
    end_captured(gone);
  } else {
    captured_.erase(gone.id);
    const Inside inside;
    const ContextScope scope(driver_, context_, captures());
    // Its last fence is recorded even where nobody asked yet: afterwards there is no way to. A
    // capture elsewhere is not touched by that, and one that it is a part of would be.
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
  gone.removed = true;
  return CUDA_SUCCESS;
}

void Fences::end_captured(Lane& gone) noexcept {
  if (gone.unfenced || gone.points == 0) return;
  try {
    gone.fences.emplace_back();
  } catch (const std::exception&) {
    gone.unfenced = true;
    return;
  }
  gone.fences.back().sequence = gone.next++;
  gone.fences.back().recorded = Clock::now();
  gone.points = 0;
}

void Fences::forget_ended() noexcept {
  if (gone_ || lost_ || InCallback::now()) return;
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  if (scope.good()) forget_gone();
}

void Fences::forget_gone() noexcept {
  if (lanes_.size() < forget_at_ || captured_now()) return;
  for (auto& [id, each] : lanes_) {
    if (!each.gone()) continue;
    // Of a stream that was destroyed nothing can be recorded any more, and nothing needs to be.
    if (!each.removed && each.points != 0) (void)close(each);
    sweep(each);
  }
  const auto forgotten = [](const Lane& lane) {
    return lane.gone() && lane.fences.empty() && lane.points == 0 && !lane.unfenced;
  };
  std::size_t behind = 0;  // gone, and the device has not passed them
  // Asked once of each: a thread can end at any time, and is gone from then on.
  for (auto each = lanes_.begin(); each != lanes_.end();) {
    if (!forgotten(each->second)) {
      if (each->second.gone()) ++behind;
      ++each;
      continue;
    }
    by_thread_.erase(each->second.owner);
    each = lanes_.erase(each);
  }
  forget_at_ = lanes_.size() + room_for_new(lanes_.size() - behind, behind);
  forget_spares();
}

void Fences::forget_spares() noexcept {
  while (spare_.size() > forget_at_) spare_.pop_back();
  while (free_events_.size() > forget_at_) {
    (void)driver_.cuEventDestroy_v2(free_events_.back());
    free_events_.pop_back();
    --events_made_;
  }
}

void Fences::fence_before_capture(StreamId stream) noexcept {
  Lane* const found = lane(stream);
  (void)captured_now();
  if (found == nullptr || captured_.contains(stream) || gone_ || lost_) return;
  if (found->stream == CU_STREAM_LEGACY) return;  // never captured, and it would ask every stream
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  found->unfenced = !scope.good() || close_last(*found) != CUDA_SUCCESS;
  if (!found->unfenced)
    sweep(*found);  // so that they do not pile up where one waits again and again
}

void Fences::note_end_of_capture(StreamId stream, bool ended) noexcept {
  const Lock lock(mutex_);
  const Lane* const found = lane(stream);
  if (!ended && found != nullptr && !gone_) {
    // A capture that broke has ended, too. One that was to end elsewhere goes on, for example.
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const Inside inside;
    if (driver_.cuStreamIsCapturing(found->stream, &status) != CUDA_SUCCESS) {
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
    // That of a thread's default stream ends with the thread.
    const Lane* const its = lane(stream);
    if (its != nullptr && !its->gone()) return false;
    CapturesUnderWay::end(captured.capture);
    return true;
  });
  return !captured_.empty();
}

CaptureId Fences::capture_here(StreamId stream) const noexcept {
  const Lane* const found = lane(stream);
  return found != nullptr ? capture_of(driver_, found->stream) : 0;
}

void Fences::expect_not_captured(CUstream stream) const {
  if (CapturesUnderWay::any() && is_captured(driver_, stream)) {
    throw CaptureUnderWay("the stream is captured");
  }
}

void Fences::forget() noexcept {
  const Lock lock(mutex_);
  gone_ = true;
  for (auto& [id, lane] : lanes_) lane.fences.clear();
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
    Lane& its = lanes_[parked_.value];
    its.id = parked_;
    ++its.points;
    return {parked_, its.next};
  }
  Lane* const found = lane(stream);
  if (found == nullptr) return {stream, 0};
  // Its last fence has all of its work.
  if (found->removed) return {stream, found->unfenced ? found->next : found->next - 1};
  const Point point{stream, found->next};
  const std::uint32_t most = asks_all(*found) ? points_of_a_fence(lanes_.size()) : kPointsOfAFence;
  if (++found->points < most || captured_now() || gone_ || lost_) return point;
  close_and_sweep(*found);
  return point;
}

void Fences::close_and_sweep(Lane& lane) noexcept {
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  if (!scope.good()) return;
  (void)close(lane);  // if not now, then when it is asked for
  sweep(lane);        // so that fences are used again though nobody asks
}

bool Fences::close(Lane& lane) noexcept {
  try {
    record_fence(lane);
    return true;
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("a fence is recorded later: ") + error.what());
    return false;
  }
}

CUresult Fences::close_last(Lane& lane) noexcept {
  try {
    record_fence(lane);
    return CUDA_SUCCESS;
  } catch (const DriverError& error) {
    return error.code();
  } catch (const std::exception&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

void Fences::record_fence(Lane& lane) {
  if (lane.id == parked_) throw CaptureUnderWay("another context is captured, or ends");
  // First: nothing may fail once events are recorded. Out of the list: what is found to be passed
  // meanwhile goes there.
  std::list<Fence> made;
  if (spare_.empty()) spare_.emplace_back();
  made.splice(made.begin(), spare_, spare_.begin());
  Fence& fence = made.front();
  fence.sequence = lane.next;
  fence.recorded = Clock::now();
  try {
    cover(fence, lane, Reach::kNext);
    if (lane.id == everything_) cover_adopted(fence);
  } catch (...) {
    free_events_.insert(free_events_.end(), fence.events.begin(), fence.events.end());
    fence.events.clear();
    fence.others.clear();
    spare_.splice(spare_.begin(), made);
    throw;
  }
  for (const Point& other : fence.others) this->lane(other.stream)->covered = true;
  lane.fences.splice(lane.fences.end(), made);
  lane.unfenced = false;
  ++lane.next;
  lane.points = 0;
  ++recorded_;
}

void Fences::cover(Fence& fence, Lane& lane, Reach all) {
  if (lane.id == everything_) {
    cover_everything(fence, all);
  } else if (lane.owner != 0 && lane.owner != this_thread()) {
    record_event(fence, CU_STREAM_LEGACY);  // waits for every thread's default stream
  } else if (lane.stream == CU_STREAM_LEGACY && !captured_now()) {
    cover_streams(fence, Reach::kBlocking);  // its order is behind all of theirs
  } else if (captured_now() || busy(lane.stream) || is_behind_others(lane)) {
    record_event(fence, lane.stream);
  }
}

/// What a blocking stream has to wait for may be in the legacy stream, and behind that in others.
/// An event that nothing needs would take the device a moment to pass: who synchronizes and trims
/// is to get all of it.
bool Fences::is_behind_others(Lane& lane) {
  if (lane.owner == 0 && !is_blocking(lane)) return false;
  const OwnStreams own = own_streams();
  return own.here || own.elsewhere || own.ended != threads_ended_ || busy(CU_STREAM_LEGACY);
}

void Fences::cover_everything(Fence& fence, Reach reach) {
  cover_streams(fence, reach);
  std::erase_if(lanes_, [](const auto& each) {
    const Lane& lane = each.second;
    return lane.removed && lane.fences.empty();
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
  for (auto& [id, lane] : lanes_) {
    const bool is_default =
        lane.stream == nullptr || lane.stream == CU_STREAM_LEGACY || lane.owner != 0;
    if (lane.removed) {
      cover_removed(fence, lane, reach, blocking);
    } else if (!is_default && (all || is_blocking(lane)) && busy(lane.stream)) {
      record_event(fence, lane.stream);
      blocking.event_on_blocking = blocking.event_on_blocking || is_blocking(lane);
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

void Fences::cover_removed(Fence& fence, Lane& lane, Reach reach, BlockingStreams& blocking) {
  if (lane.unfenced && reach != Reach::kBlocking) {
    throw Error("a stream went without a last fence");
  }
  if (lane.covered && reach == Reach::kNext) return;
  sweep(lane);
  if (lane.fences.empty() && !lane.unfenced) return;
  if (reach == Reach::kBlocking) {
    blocking.nameless = true;  // the events have to stand for all: they may be given away
  } else {
    fence.others.push_back({lane.id, lane.next - 1});
  }
}

bool Fences::busy(CUstream stream) const {
  if (CapturesUnderWay::any() && is_captured(driver_, stream)) return true;
  const CUresult code = driver_.cuStreamQuery(stream);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY) return code != CUDA_SUCCESS;
  throw DriverError("cuStreamQuery", code);
}

bool Fences::is_blocking(Lane& lane) const {
  if (!lane.blocking) {
    unsigned int flags = 0;
    const CUresult code = driver_.cuStreamGetFlags(lane.stream, &flags);
    if (code != CUDA_SUCCESS) throw DriverError("cuStreamGetFlags", code);
    lane.blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  }
  return *lane.blocking;
}

void Fences::record_event(Fence& fence, CUstream stream) {
  expect_not_captured(stream);
  fence.events.reserve(fence.events.size() + 1);
  CUevent event = nullptr;
  if (!free_events_.empty()) {
    event = free_events_.back();
    free_events_.pop_back();
  } else {
    // Room for all of them on their way back, whichever comes first.
    if (free_events_.capacity() <= events_made_) free_events_.reserve(2 * events_made_ + 8);
    const CUresult made = driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (made != CUDA_SUCCESS) throw DriverError("cuEventCreate", made);
    ++events_made_;
  }
  const CUresult code = driver_.cuEventRecord(event, stream);
  if (code != CUDA_SUCCESS) {
    free_events_.push_back(event);
    throw DriverError("cuEventRecord", code);
  }
  fence.events.push_back(event);
}

bool Fences::is_passed(Fence& fence) noexcept {
  while (!fence.events.empty()) {
    const CUresult code = driver_.cuEventQuery(fence.events.back());
    if (code == CUDA_ERROR_NOT_READY) return false;
    if (forbidden_by_capture(code)) {
      expect_unknown_captures();  // and asked again
      CapturesUnderWay::expect_unknown();
      return false;
    }
    if (code != CUDA_SUCCESS) {
      lost_ = true;  // the program meets the same error in its own next call
      return false;
    }
    free_events_.push_back(fence.events.back());
    fence.events.pop_back();
  }
  while (!fence.others.empty()) {
    const Point point = fence.others.back();
    Lane* const other = lane(point.stream);
    if (other != nullptr) {
      sweep(*other);
      if (other->passed < point.sequence) return false;
    }
    fence.others.pop_back();
  }
  return true;
}

void Fences::sweep(Lane& lane) noexcept {
  while (!lane.fences.empty() && !lost_) {
    Fence& fence = lane.fences.front();
    const bool was_idle = fence.events.empty() && fence.others.empty();
    if (!is_passed(fence)) return;
    // Nothing was under way when it was recorded: that spares the clock on the way of each
    // cuMemAlloc that follows its block's cuMemFree.
    if (lane.id == everything_) {
      tell_measures(fence.sequence, was_idle ? fence.recorded : Clock::now());
      threads_ended_ = fence.threads_ended;
    }
    lane.passed = fence.sequence;
    spare_.splice(spare_.begin(), lane.fences, lane.fences.begin());
  }
}

void Fences::tell_measures(std::uint64_t sequence, Clock::time_point now) noexcept {
  std::erase_if(measures_, [&](const Measure& measure) WEIR_REQUIRES(mutex_) {
    if (measure.sequence > sequence) return false;
    const auto took = now - std::max(measure.since, everything_passed_);
    measure.device_time->fetch_add(std::max<std::int64_t>(took.count(), 1),
                                   std::memory_order_relaxed);
    return true;
  });
  everything_passed_ = now;
}

bool Fences::is_costly(StreamId stream) const noexcept {
  const Lane* const found = lane(stream);
  return found != nullptr && asks_all(*found) && found->points != 0 &&
         !pays(found->points, lanes_.size());
}

std::uint64_t Fences::passed_locked(StreamId stream, bool record) noexcept {
  Lane* const found = lane(stream);
  if (gone_ || found == nullptr) return UINT64_MAX - 1;  // the highest is of points without a fence
  if (captured_now() || lost_) return found->passed;
  if (found->fences.empty() && found->points == 0) return found->passed;
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  if (!scope.good()) return found->passed;
  sweep(*found);
  const bool wanted =
      record && found->fences.empty() && found->points != 0 && !found->removed && stream != parked_;
  if (wanted && close(*found)) sweep(*found);
  return found->passed;
}

std::uint64_t Fences::passed(StreamId stream) {
  if (stream == sync_) return 0;
  Lock lock(mutex_);
  bool record = true;
  if (this_request != nullptr && !insists && is_costly(stream)) {
    lock.unlock();  // it looks at the pool
    record = !this_request->can_grow();
    if (!record) put_off = true;
    lock.lock();
  }
  return passed_locked(stream, record);
}

void Fences::fence(StreamId stream) noexcept {
  const Lock lock(mutex_);
  Lane* const found = lane(stream);
  if (found == nullptr || found->points == 0 || found->removed) return;
  if (captured_now() || gone_ || lost_) return;
  close_and_sweep(*found);
}

Fences::Clock::time_point Fences::recorded(Point point) const {
  const Lock lock(mutex_);
  const Lane* const found = lane(point.stream);
  if (found != nullptr) {
    for (const Fence& fence : found->fences) {
      if (fence.sequence >= point.sequence) return fence.recorded;
    }
  }
  return Clock::now();
}

void Fences::measure(std::atomic<std::int64_t>& device_time, Clock::time_point since) {
  const Lock lock(mutex_);
  const Lane* const all = lane(everything_);
  measures_.push_back({&device_time, since, all->next});
}

bool Fences::wait(Point point, std::stop_token stop) {
  const auto start = Clock::now();
  const auto wait_until = request_began + max_wait_;
  if (this_request != nullptr && this_request->is_hopeless()) return false;
  for (;;) {
    {
      const Lock lock(mutex_);
      if (point.stream == sync_ || passed_locked(point.stream) >= point.sequence) return true;
      if (captured_now() || lost_) return false;
      Lane* const found = lane(point.stream);
      if (found != nullptr && !found->removed && found->next == point.sequence &&
          point.stream != parked_) {
        const Inside inside;
        const ContextScope scope(driver_, context_, captures());
        if (scope.good()) (void)close(*found);
      }
    }
    if (InCallback::now() || stop.stop_requested() || Clock::now() >= wait_until) return false;
    if (this_request != nullptr && this_request->has_new_room()) return false;
    pause_since(start);
  }
}

void Fences::make_wait(StreamId waiter, Point point) {
  if (waiter == sync_) {
    // Whoever gets the memory may use it on a stream that does not exist yet, or on the host.
    if (!wait(point, {})) throw Error("the device did not come so far in time");
    return;
  }
  const Lock lock(mutex_);
  if (passed_locked(point.stream) >= point.sequence) return;
  const Lane* const found = lane(waiter);
  if (found == nullptr || found->removed) throw Error("the stream that is to wait is gone");
  if (captured_now() || lost_) throw Error("no fence can be waited for now");
  const Inside inside;
  const ContextScope scope(driver_, context_, captures());
  if (!scope.good()) throw Error("the context is gone");
  wait_on_device(*found, point);
}

void Fences::wait_on_device(const Lane& waiter, Point point) {
  Lane* const behind = lane(point.stream);
  if (behind == nullptr) return;
  if (behind->next == point.sequence && (behind->removed || !close(*behind))) {
    throw Error("no fence can be recorded now");
  }
  if (parked_point(point)) throw CaptureUnderWay("another context is captured, or ends");
  expect_not_captured(waiter.stream);
  for (const Fence& fence : behind->fences) {
    // A fence on everything leaves out what those before it cover.
    if (fence.sequence < point.sequence && behind->id != everything_) continue;
    for (const CUevent event : fence.events) {
      const CUresult code = driver_.cuStreamWaitEvent(waiter.stream, event, 0);
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
