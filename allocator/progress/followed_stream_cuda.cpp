// One file: each function here changes the one queue of marks, under its lock.

#include "allocator/progress/followed_stream_cuda.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/error_cuda.hpp"
#include "allocator/base/log.hpp"

namespace weir {

FollowedCudaStream::FollowedCudaStream(StreamId id, int device, cudaStream_t stream, CudaWork work,
                                       CudaCompletion* completion)
    : id_(id),
      device_(device),
      stream_(stream),
      work_(work),
      completion_(completion),
      events_(CudaEventCalls(device, CudaEventWait::kSpins)),
      sleepers_(CudaEventCalls(device, CudaEventWait::kSleeps)) {}

FollowedCudaStream::~FollowedCudaStream() {
  const Lock lock(mutex_);
  for (Mark& mark : marks_.fences()) give_back(mark);
  for (CudaEvents* const events : {&events_, &sleepers_}) {
    const cudaError_t code = events->keep(0);
    if (code == cudaSuccess) continue;
    log(LogLevel::kError, "CUDA events are leaked: cudaEventDestroy: " + describe_cuda_error(code));
  }
}

CudaEvents& FollowedCudaStream::events_of(CudaEventWait wait) noexcept {
  return wait == CudaEventWait::kSleeps ? sleepers_ : events_;
}

void FollowedCudaStream::give_back(Mark& mark) noexcept {
  if (mark.wait == CudaEventWait::kSleeps && !mark.events.empty()) --open_sleepers_;
  events_of(mark.wait).give_back(mark.events);
}

bool FollowedCudaStream::try_record(CudaEvents::Events& event, CudaEventWait wait) noexcept {
  // An event recorded now would become part of the captured graph and never be passed.
  refused_ = captured();
  if (refused_ != cudaSuccess) return false;
  try {
    refused_ = events_of(wait).record(event, stream_);
  } catch (...) {
    refused_ = cudaErrorMemoryAllocation;
  }
  // Another thread may have begun a capture since the first check.
  if (refused_ == cudaSuccess) refused_ = captured();
  if (refused_ != cudaSuccess) events_of(wait).give_back(event);
  return refused_ == cudaSuccess;
}

void FollowedCudaStream::attach(Mark& mark, CudaEvents::Events& event,
                                CudaEventWait wait) noexcept {
  if (wait == CudaEventWait::kSleeps) open_sleepers_ += event.size();
  mark.events.splice(mark.events.end(), event);
  mark.wait = wait;
}

void FollowedCudaStream::reserve() {
  while (spare_.size() <= expected_) spare_.emplace_back();
}

FollowedCudaStream::Mark& FollowedCudaStream::push() noexcept {
  Marks made;
  made.splice(made.begin(), spare_, spare_.begin());
  static_cast<Told&>(made.front()) = {};
  marks_.push(made);
  marked_.store(marks_.last(), std::memory_order_release);
  return marks_.fences().back();
}

std::uint64_t FollowedCudaStream::push(void* tag, Clock::time_point since) noexcept {
  const bool sleeps = tag != nullptr && spacing_.due(open_sleepers_);
  const CudaEventWait wait = sleeps ? CudaEventWait::kSleeps : CudaEventWait::kSpins;
  CudaEvents::Events event;
  (void)try_record(event, wait);
  Mark& mark = push();
  attach(mark, event, wait);
  mark.tag = tag;
  mark.enqueued = since;
  return mark.sequence;
}

void FollowedCudaStream::expect_mark() {
  const Lock lock(mutex_);
  reserve();
  ++expected_;
}

std::uint64_t FollowedCudaStream::mark(void* tag, Clock::time_point since) noexcept {
  Lock lock(mutex_);
  --expected_;
  // Record and queue in one step: the queue follows the stream's order.
  if (failed_ == cudaSuccess) return push(tag, since);
  const std::uint64_t never_passed = marks_.skip();
  marked_.store(never_passed, std::memory_order_release);
  lock.unlock();
  if (tag != nullptr) completion_->completed(tag, {});
  return never_passed;
}

Point FollowedCudaStream::record() {
  Lock lock(mutex_);
  if (closed_) return {id_, 0};
  require_working();
  if (work_ == CudaWork::kMarked) {
    const std::uint64_t last = marks_.last();
    if (last > marks_.passed()) require_found(covering(last));
    return {id_, last};
  }
  reserve();  // may throw here: a free then has no point yet, and keeps its block
  const Point point{id_, marks_.add_point()};
  marked_.store(point.sequence, std::memory_order_release);
  if (marks_.points() % kPointsOfAnEvent != 0) return point;
  (void)covering(point.sequence);  // if this fails, a later request for the point records it
  lock.unlock();
  sweep();  // reuses events even if nobody asks
  return point;
}

void FollowedCudaStream::require_working() const {
  if (failed_ != cudaSuccess) throw CudaError("cudaEventQuery", failed_);
}

void FollowedCudaStream::require_found(const Mark* mark) const {
  if (mark == nullptr) throw CudaError("cudaEventRecord", refused_);
}

FollowedCudaStream::Mark* FollowedCudaStream::covering(std::uint64_t sequence) noexcept {
  Marks& marks = marks_.fences();
  if (!marks.empty() && marks.front().sequence >= sequence && !marks.front().events.empty()) {
    return &marks.front();
  }
  Mark* first = nullptr;
  for (auto mark = marks.rbegin(); mark != marks.rend() && mark->sequence >= sequence; ++mark) {
    if (!mark->events.empty()) first = &*mark;
  }
  if (first != nullptr) return first;
  CudaEvents::Events event;
  if (!try_record(event, CudaEventWait::kSpins)) return nullptr;
  // Belongs to the points that wait for an event, and also covers marks without one.
  Mark& last = marks_.points() != 0 ? push() : marks.back();
  attach(last, event, CudaEventWait::kSpins);
  return &last;
}

FollowedCudaStream::Mark* FollowedCudaStream::sleeper() noexcept {
  if (open_sleepers_ != 0) {  // the queue may be a thousand marks long
    for (Mark& mark : marks_.fences()) {
      if (mark.wait == CudaEventWait::kSleeps && !mark.events.empty()) return &mark;
    }
  }
  if (!spacing_.soon(marks_.fences().size())) return nullptr;
  CudaEvents::Events event;
  if (!try_record(event, CudaEventWait::kSleeps)) return nullptr;
  try {
    reserve();
  } catch (...) {
    sleepers_.give_back(event);
    return nullptr;
  }
  Mark& last = push();
  attach(last, event, CudaEventWait::kSleeps);
  return &last;
}

cudaError_t FollowedCudaStream::captured() const noexcept {
  if (work_ == CudaWork::kMarked) return cudaSuccess;  // only its owner could capture it
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t code =
      code_for_stream(stream_, device_, [&] { return cudaStreamIsCapturing(stream_, &status); });
  if (code != cudaSuccess || status == cudaStreamCaptureStatusNone) return code;
  return cudaErrorStreamCaptureUnsupported;
}

void FollowedCudaStream::require_not_captured(std::string_view call) const {
  const cudaError_t code = captured();
  if (code == cudaErrorStreamCaptureUnsupported) {
    throw CudaError(call, code, "the stream is being captured");
  }
  check_cuda(code, "cudaStreamIsCapturing");
}

std::uint64_t FollowedCudaStream::passed() noexcept {
  if (passed_.load(std::memory_order_acquire) != marked()) sweep();
  return passed_.load(std::memory_order_acquire);
}

void FollowedCudaStream::sweep() noexcept {
  const CudaRelaxed relaxed;
  {
    const Lock lock(mutex_);
    if (std::exchange(sweeping_, true)) return;
  }
  Told done;
  cudaError_t code = cudaSuccess;
  while ((code = take_done(done)) == cudaSuccess) {
    tell(done);
    passed_.store(done.sequence, std::memory_order_release);
  }
  if (code != cudaErrorNotReady) tell_of_loss(code);
}

cudaError_t FollowedCudaStream::take_done(Told& done) noexcept {
  const Lock lock(mutex_);
  cudaError_t code = cudaErrorNotReady;
  Marks taken;
  if (failed_ == cudaSuccess && !marks_.idle()) {
    if (marks_.fences().empty()) (void)covering(marks_.next());
    (void)marks_.take_passed(taken, [&](const Mark& mark) WEIR_REQUIRES(mutex_) {
      code = ask(mark);
      return code == cudaSuccess;
    });
  }
  if (code == cudaSuccess) {
    done = static_cast<const Told&>(taken.front());
    put_away(taken);
  } else if (code == cudaErrorNotReady) {
    sweeping_ = false;
  } else {
    failed_ = code;
  }
  return code;
}

cudaError_t FollowedCudaStream::ask(const Mark& mark) noexcept {
  if (mark.sequence <= through_) return cudaSuccess;
  Mark* const behind = covering(mark.sequence);
  if (behind == nullptr) return cudaErrorNotReady;
  const cudaError_t code = events_.query(behind->events.front());
  if (code == cudaSuccess) through_ = behind->sequence;
  if (event_state(code) != EventState::kCaptured) return code;
  // The query gave no answer about the device, so a later event must cover the work. Waiters get
  // the same error and ask again.
  if (behind->waiters == 0) give_back(*behind);
  return cudaErrorNotReady;
}

void FollowedCudaStream::tell_of_loss(cudaError_t why) noexcept {
  log(LogLevel::kError, "the GPU failed and does no more work for this program: cudaEventQuery: " +
                            describe_cuda_error(why));
  // If the device still works, it may use its memory until it is done.
  (void)code_for_stream(stream_, device_, [&] { return cudaStreamSynchronize(stream_); });
  Lock lock(mutex_);
  while (!marks_.fences().empty()) {  // no more are pushed
    Marks lost;
    lost.splice(lost.begin(), marks_.fences(), marks_.fences().begin());
    const auto told = static_cast<const Told&>(lost.front());
    put_away(lost);
    lock.unlock();
    tell(told);
    lock.lock();
  }
  if (marks_.points() != 0) (void)marks_.skip();  // never passed; `drain` must not await them
  sweeping_ = false;
  lost_.store(why, std::memory_order_release);
}

void FollowedCudaStream::tell(const Told& done) noexcept {
  if (work_ == CudaWork::kUnmarked) return;  // its time is not measured
  const Clock::time_point now = Clock::now();
  const Clock::time_point begin = std::max(idle_since_, done.enqueued);
  if (last_end_) starved_ += begin - idle_since_;
  idle_since_ = now;
  if (done.tag == nullptr) return;  // a wait for another stream, not work
  const auto took = now - begin;
  const auto gap = last_end_ ? begin - *last_end_ : Clock::duration{};
  last_end_ = now;
  busy_.fetch_add(took.count(), std::memory_order_relaxed);
  spacing_.note(took);
  completion_->completed(
      done.tag,
      {.device_time = took, .gap = gap, .starved = std::exchange(starved_, {}), .end = now});
}

void FollowedCudaStream::put_away(Marks& mark) noexcept {
  // The event must not be reused while a thread sleeps on it.
  if (mark.front().waiters != 0) return held_.splice(held_.end(), mark);
  give_back(mark.front());
  spare_.splice(spare_.begin(), mark);
}

bool FollowedCudaStream::try_close() {
  const Lock lock(mutex_);
  require_working();
  closed_ = marks_.idle();
  return closed_;
}

void FollowedCudaStream::hold_back(FollowedCudaStream& waiter, std::uint64_t sequence) {
  Mark* mark = nullptr;
  cudaEvent_t event = nullptr;
  {
    const Lock lock(mutex_);
    if (sequence <= marks_.passed()) return;
    require_working();
    mark = covering(sequence);
    require_found(mark);
    event = mark->events.front();
    ++mark->waiters;  // an event that was swept meanwhile may be reused already
  }
  // Not under this stream's lock: the waiter's has the same rank.
  try {
    waiter.wait_behind(event);
  } catch (...) {
    let_go(*mark);
    throw;
  }
  let_go(*mark);
}

void FollowedCudaStream::wait_behind(cudaEvent_t event) {
  const Lock lock(mutex_);
  if (closed_) throw UsageError("stream " + std::to_string(id_.value) + " was removed");
  // Waiting for an event outside the capture would end the capture.
  require_not_captured("cudaStreamWaitEvent");
  if (work_ != CudaWork::kUnmarked) {
    require_working();
    reserve();
  }
  check_cuda(
      code_for_stream(stream_, device_, [&] { return cudaStreamWaitEvent(stream_, event, 0); }),
      "cudaStreamWaitEvent");
  // Later points of the stream follow the wait, so it needs a mark of its own.
  if (work_ != CudaWork::kUnmarked) (void)push(nullptr, Clock::now());
}

void FollowedCudaStream::let_go(Mark& mark) noexcept {
  const Lock lock(mutex_);
  if (--mark.waiters != 0) return;
  const auto held = std::ranges::find(held_, &mark, [](const Mark& each) { return &each; });
  if (held == held_.end()) return;  // not passed
  Marks passed;
  passed.splice(passed.begin(), held_, held);
  put_away(passed);
}

void FollowedCudaStream::require_progress(std::uint64_t sequence) {
  if (lost() != cudaSuccess) throw CudaError("cudaEventQuery", lost());
  const Lock lock(mutex_);
  if (sequence <= marks_.passed() || failed_ != cudaSuccess) return;  // the stream is soon lost
  require_found(covering(sequence));
}

bool FollowedCudaStream::await_oldest() noexcept {
  const CudaRelaxed relaxed;
  Lock lock(mutex_);
  if (marks_.idle() || failed_ != cudaSuccess) return false;
  Mark* const mark = sleeper();
  if (mark == nullptr) {
    if (covering(marks_.passed() + 1) == nullptr) return false;
    lock.unlock();
    std::this_thread::sleep_for(SleepSpacing::kApart / 4);
    sweep();
    return true;
  }
  const cudaEvent_t event = mark->events.front();
  ++mark->waiters;  // keeps the event from being reused meanwhile
  lock.unlock();
  // An error here is the device's, and the query in `sweep` gets it too.
  (void)take_cuda_error(cudaEventSynchronize(event));
  let_go(*mark);
  sweep();
  return true;
}

void FollowedCudaStream::drain() noexcept {
  for (;;) {
    while (await_oldest()) continue;
    {
      const Lock lock(mutex_);
      if (marks_.idle() && !sweeping_) return;
      // Otherwise another thread is reporting, or no event could be recorded.
    }
    std::this_thread::yield();
    synchronize();
  }
}

void FollowedCudaStream::synchronize() noexcept {
  const CudaRelaxed relaxed;
  const cudaError_t code =
      code_for_stream(stream_, device_, [&] { return cudaStreamSynchronize(stream_); });
  bool tells = false;
  {
    const Lock lock(mutex_);
    if (code == cudaSuccess) {
      if (marks_.points() != 0) (void)push();
      through_ = marks_.last();
    } else if (failed_ == cudaSuccess && !std::exchange(sweeping_, true)) {
      failed_ = code;
      tells = true;
    }
  }
  if (tells) {
    tell_of_loss(code);
  } else {
    sweep();
  }
}

}  // namespace weir
