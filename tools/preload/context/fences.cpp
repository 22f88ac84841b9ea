#include "tools/preload/context/fences.hpp"

#include <algorithm>

#include "allocator/progress/pause.hpp"

namespace weir::preload {

StreamId Fences::find(CUstream stream, bool per_thread) {
  stream = named_stream(stream, per_thread);
  if (const auto last = FollowedStreams::found_last(&streams_, stream)) return *last;
  const Lock lock(mutex_);
  if (stream != CU_STREAM_PER_THREAD) return streams_.find_or_add(stream);
  use_own_stream();
  if (const FollowedStream* const own = streams_.find_own()) return own->id;
  if (recorder_.works() && !InCallback::now()) {  // the driver does not report ended threads
    const Scope here(*this);
    if (here.scope.good()) recorder_.forget_gone();
  }
  return streams_.add(stream, thread_number()).id;
}

std::optional<StreamId> Fences::find_known(CUstream stream, bool per_thread) {
  const bool default_stream =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  if (default_stream) return find(stream, per_thread);
  const Lock lock(mutex_);
  const FollowedStream* const found = streams_.find(stream);
  return found != nullptr ? std::optional(found->id) : std::nullopt;
}

CUstream Fences::handle(StreamId stream) const noexcept {
  const Lock lock(mutex_);
  const FollowedStream* const found = streams_.find(stream);
  const bool named = found != nullptr && !found->removed && found->is_created();
  return named ? found->handle : nullptr;
}

CUresult Fences::remove(CUstream stream) noexcept {
  const Lock lock(mutex_);
  FollowedStream* const gone = streams_.find(stream);
  if (gone == nullptr || stream == CU_STREAM_LEGACY) return CUDA_SUCCESS;
  const bool captured = captures_.has(gone->id);
  if (captures_.remove(gone->id)) {
    ContextCaptures::expect_unknown();  // it lasts until the driver has destroyed the stream
    recorder_.end_captured(*gone);
  } else {
    const Scope here(*this);
    const bool works = recorder_.works() && here.scope.good();
    // Record the last fence even if nobody asked: later it is impossible. Another stream's capture
    // is not affected; one that this stream is part of would be broken.
    if (works && !is_captured(driver_, stream)) {
      const CUresult code = recorder_.record(*gone);
      if (code != CUDA_SUCCESS) return code;
      recorder_.forget_gone();  // not this one yet
    } else if (works && captured) {
      recorder_.end_captured(*gone);
    } else {
      gone->unfenced = true;
    }
  }
  streams_.remove(*gone);
  return CUDA_SUCCESS;
}

void Fences::fence_before_capture(StreamId stream) noexcept {
  FollowedStream* const found = streams_.find(stream);
  (void)captures_.any();
  if (found == nullptr || captures_.has(stream) || !recorder_.works()) return;
  if (found->handle == CU_STREAM_LEGACY) return;  // never captured; its fence asks all streams
  const Scope here(*this);
  found->unfenced = !here.scope.good() || recorder_.record(*found) != CUDA_SUCCESS;
  // So that fences do not pile up if one waits again and again.
  if (!found->unfenced) recorder_.sweep(*found);
}

std::vector<CUevent> Fences::events_of(StreamId stream) {
  const Lock lock(mutex_);
  const Scope here(*this);
  if (!here.scope.good() || streams_.ended()) return {};
  if (captures_.forbid_asking()) throw CaptureUnderWay("no fence can be recorded now");
  if (!recorder_.works()) throw Error("no fence can be recorded now");
  FollowedStream* const found = streams_.find(stream);
  return found != nullptr ? recorder_.events_of(*found) : std::vector<CUevent>{};
}

void Fences::adopt(const std::vector<CUevent>& events) {
  if (events.empty()) return;
  const Lock lock(mutex_);
  const Scope here(*this);
  recorder_.adopt(events, here.scope.good() && !streams_.ended());
}

std::optional<Point> Fences::last_parked() {
  const Lock lock(mutex_);
  FollowedStream* const its = streams_.find(parked_);
  if (its == nullptr) return std::nullopt;
  // Points parked from now on are behind more work than the caller will cover.
  if (its->queue.points() != 0) (void)its->queue.skip();
  const Point last{parked_, its->queue.last()};
  return streams_.is_parked(last) ? std::optional(last) : std::nullopt;
}

bool Fences::finish_parked(Point last) {
  const Lock lock(mutex_);
  if (!streams_.is_parked(last)) return true;
  if (!recorder_.can_ask()) return false;
  const Scope here(*this);
  return here.scope.good() && recorder_.finish_parked(last);
}

void Fences::fence(StreamId stream) noexcept {
  const Lock lock(mutex_);
  FollowedStream* const found = streams_.find(stream);
  if (found != nullptr && found->queue.points() != 0 && !found->removed) record_early(*found);
}

Fences::Clock::time_point Fences::recorded(Point point) const {
  const Lock lock(mutex_);
  const FollowedStream* const found = streams_.find(point.stream);
  if (found != nullptr) {
    for (const Fence& fence : found->queue.fences()) {
      if (fence.sequence >= point.sequence) return fence.recorded;
    }
  }
  return Clock::now();
}

Point Fences::record(StreamId stream) {
  if (stream == sync_) return {stream, 0};
  const Lock lock(mutex_);
  if (stream == parked_) return {parked_, streams_.park().queue.add_point()};
  FollowedStream* const found = streams_.find(stream);
  if (found == nullptr) return {stream, 0};
  // Its last fence covers all its work.
  if (found->removed) return {stream, found->queue.next() - (found->unfenced ? 0 : 1)};
  const Point point{stream, found->queue.add_point()};
  if (found->queue.points() >= streams_.most_points(*found)) record_early(*found);
  return point;
}

void Fences::record_early(FollowedStream& stream) noexcept {
  if (!recorder_.can_ask()) return;
  const Scope here(*this);
  if (!here.scope.good()) return;
  (void)recorder_.record(stream);  // if not now, then when it is asked for
  recorder_.sweep(stream);         // so that fences are used again though nobody asks
}

std::uint64_t Fences::passed_locked(StreamId stream, bool record) noexcept {
  FollowedStream* const found = streams_.find(stream);
  // The highest: points without a fence.
  if (streams_.ended() || found == nullptr) return UINT64_MAX - 1;
  const FenceQueue<Fence>& queue = found->queue;
  if (!recorder_.can_ask() || queue.idle()) return queue.passed();
  const Scope here(*this);
  if (!here.scope.good()) return queue.passed();
  recorder_.sweep(*found);
  const bool wanted = record && queue.fences().empty() && queue.points() != 0 && !found->removed &&
                      stream != parked_;
  if (wanted && recorder_.record(*found) == CUDA_SUCCESS) recorder_.sweep(*found);
  return queue.passed();
}

Progress::Known Fences::known_passed(StreamId stream) {
  if (stream == sync_) return {};
  const Lock lock(mutex_);
  const bool costly = streams_.is_costly(stream);
  return {.passed = passed_locked(stream, !costly), .is_all = !costly};
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
      if (!recorder_.can_ask()) return false;
      FollowedStream* const found = streams_.find(point.stream);
      if (found != nullptr && !found->removed && found->queue.next() == point.sequence &&
          point.stream != parked_) {
        const Scope here(*this);
        if (here.scope.good()) (void)recorder_.record(*found);
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
  const FollowedStream* const found = streams_.find(waiter);
  if (found == nullptr || found->removed) throw Error("the waiting stream is gone");
  if (!recorder_.can_ask()) throw Error("no fence can be waited for now");
  const Scope here(*this);
  if (!here.scope.good()) throw Error("the context is gone");
  recorder_.make_wait(*found, point);
}

}  // namespace weir::preload
