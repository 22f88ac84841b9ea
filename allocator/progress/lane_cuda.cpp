#include "allocator/progress/lane_cuda.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/error_cuda.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/scope_cuda.hpp"

namespace weir {

CudaLane::CudaLane(StreamId id, cudaStream_t stream, CudaWork work, CudaEvents& events,
                   CudaCompletion* completion)
    : id_(id), stream_(stream), work_(work), events_(events), completion_(completion) {}

CudaLane::~CudaLane() {
  const Lock lock(mutex_);
  while (!marks_.empty()) retire(marks_.pop_front().event);
}

CudaEvent* CudaLane::try_record() noexcept {
  // An event recorded now would become a part of the captured graph, and never be passed.
  refused_ = captured();
  if (refused_ != cudaSuccess) return nullptr;
  CudaEvent* event = nullptr;
  try {
    event = &events_.acquire();
  } catch (const CudaError& error) {
    refused_ = error.code();
    return nullptr;
  } catch (...) {
    refused_ = cudaErrorMemoryAllocation;
    return nullptr;
  }
  refused_ = take_cuda_error(cudaEventRecord(event->handle, stream_));
  // The program may have begun a capture on another thread since the first look.
  if (refused_ == cudaSuccess) refused_ = captured();
  if (refused_ == cudaSuccess) return event;
  events_.give_back(*event);
  return nullptr;
}

std::uint64_t CudaLane::push(void* tag, CudaEvent* event, Clock::time_point since) noexcept {
  const std::uint64_t sequence = marked_.load(std::memory_order_relaxed) + 1;
  marks_.push_back({.sequence = sequence, .event = event, .tag = tag, .enqueued = since});
  marked_.store(sequence, std::memory_order_release);
  return sequence;
}

void CudaLane::expect_mark() {
  const Lock lock(mutex_);
  marks_.reserve(expected_ + 1);
  ++expected_;
}

std::uint64_t CudaLane::mark(void* tag, Clock::time_point since) noexcept {
  Lock lock(mutex_);
  --expected_;
  // Recorded and queued in one step: the queue's order is the stream's.
  if (failed_ == cudaSuccess) return push(tag, try_record(), since);
  const std::uint64_t never_passed = marked() + 1;
  marked_.store(never_passed, std::memory_order_release);
  lock.unlock();
  if (tag != nullptr) completion_->completed(tag, {});
  return never_passed;
}

Point CudaLane::record() {
  Lock lock(mutex_);
  if (closed_) return {id_, 0};
  require_working();
  if (work_ == CudaWork::kUnmarked) {
    const Point point = record_lazily();
    if (points_ != 0) return point;
    lock.unlock();
    sweep();  // so that events are used again though nobody asks
    return point;
  }
  const std::uint64_t last = marked();
  if (last > done_) require_found(covering(last));
  return {id_, last};
}

Point CudaLane::record_lazily() {
  const bool shares = !marks_.empty() && marks_.back().event == nullptr;
  if (!shares) {
    marks_.reserve_one();  // here it may throw: a free then has no point yet, and keeps its block
    (void)push(nullptr, nullptr, {});
    points_ = 0;
  }
  if (++points_ == kPointsOfAnEvent) {
    // Where none can be recorded now, whoever asks tries again.
    marks_.back().event = try_record();
    points_ = 0;
  }
  return {id_, marked()};
}

void CudaLane::require_working() const {
  if (failed_ != cudaSuccess) throw CudaError("cudaEventQuery", failed_);
}

void CudaLane::require_found(const CudaEvent* event) const {
  if (event == nullptr) throw CudaError("cudaEventRecord", refused_);
}

CudaEvent* CudaLane::covering(std::uint64_t sequence) noexcept {
  // Sequences are consecutive, and the first one here is the one behind done_.
  for (std::size_t i = sequence - done_ - 1; i < marks_.size(); ++i) {
    if (marks_[i].event != nullptr) return marks_[i].event;
  }
  marks_.back().event = try_record();
  return marks_.back().event;
}

cudaError_t CudaLane::captured() const noexcept {
  if (work_ == CudaWork::kMarked) return cudaSuccess;  // nobody has its stream to capture it
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t code = take_cuda_error(cudaStreamIsCapturing(stream_, &status));
  if (code != cudaSuccess || status == cudaStreamCaptureStatusNone) return code;
  return cudaErrorStreamCaptureUnsupported;
}

void CudaLane::require_not_captured(std::string_view call) const {
  const cudaError_t code = captured();
  if (code == cudaErrorStreamCaptureUnsupported) {
    throw CudaError(call, code, "the stream is being captured");
  }
  check_cuda(code, "cudaStreamIsCapturing");
}

std::uint64_t CudaLane::passed() noexcept {
  if (passed_.load(std::memory_order_acquire) != marked()) sweep();
  return passed_.load(std::memory_order_acquire);
}

void CudaLane::sweep() noexcept {
  const CudaRelaxed relaxed;
  {
    const Lock lock(mutex_);
    if (std::exchange(sweeping_, true)) return;
  }
  Mark mark;
  cudaError_t code = cudaSuccess;
  while ((code = take_done(mark)) == cudaSuccess) {
    tell(mark);
    passed_.store(mark.sequence, std::memory_order_release);
  }
  if (code != cudaErrorNotReady) tell_of_loss(code);
}

cudaError_t CudaLane::take_done(Mark& mark) noexcept {
  const Lock lock(mutex_);
  cudaError_t code = cudaErrorNotReady;
  if (!marks_.empty() && failed_ == cudaSuccess) {
    if (done_ < through_) {
      code = cudaSuccess;
    } else if (const CudaEvent* event = covering(done_ + 1); event != nullptr) {
      code = take_cuda_error(cudaEventQuery(event->handle));
      if (code == cudaErrorCapturedEvent) {
        forget(*event);
        code = cudaErrorNotReady;
      }
    }
  }
  if (code == cudaSuccess) {
    mark = marks_.pop_front();
    done_ = mark.sequence;
    // A mark without an event of its own was covered by a later one's, which is still needed.
    retire(mark.event);
  } else if (code == cudaErrorNotReady) {
    sweeping_ = false;
  } else {
    failed_ = code;
  }
  return code;
}

void CudaLane::tell_of_loss(cudaError_t why) noexcept {
  log(LogLevel::kError, "the GPU failed, and does nothing more for this program: cudaEventQuery: " +
                            describe_cuda_error(why));
  // If it works on all the same, what it was given must stay until it has come to its end.
  (void)take_cuda_error(cudaStreamSynchronize(stream_));
  Lock lock(mutex_);
  while (!marks_.empty()) {  // there come no more
    const Mark mark = marks_.pop_front();
    retire(mark.event);
    lock.unlock();
    tell(mark);
    lock.lock();
  }
  sweeping_ = false;
  lost_.store(why, std::memory_order_release);
}

void CudaLane::forget(const CudaEvent& event) noexcept {
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    if (marks_[i].event == &event) retire(std::exchange(marks_[i].event, nullptr));
  }
}

void CudaLane::tell(const Mark& mark) noexcept {
  if (work_ == CudaWork::kUnmarked) return;  // nobody asks for its time
  const Clock::time_point now = Clock::now();
  const auto took = now - std::max(idle_since_, mark.enqueued);
  idle_since_ = now;
  if (mark.tag == nullptr) return;  // a wait for another stream, and no work
  busy_.fetch_add(took.count(), std::memory_order_relaxed);
  completion_->completed(mark.tag, took);
}

void CudaLane::retire(CudaEvent* event) noexcept {
  if (event == nullptr) return;
  if (event->waiters != 0) {
    event->retired = true;
  } else {
    events_.give_back(*event);
  }
}

bool CudaLane::try_close() {
  const Lock lock(mutex_);
  require_working();
  closed_ = marks_.empty();
  return closed_;
}

void CudaLane::hold_back(CudaLane& waiter, std::uint64_t sequence) {
  CudaEvent* event = nullptr;
  {
    const Lock lock(mutex_);
    if (sequence <= done_) return;
    require_working();
    event = covering(sequence);
    require_found(event);
    ++event->waiters;  // an event that was swept meanwhile may stand for other work already
  }
  // Not under this lane's lock: the waiter's is of the same rank.
  try {
    waiter.wait_behind(*event);
  } catch (...) {
    let_go(*event);
    throw;
  }
  let_go(*event);
}

void CudaLane::wait_behind(const CudaEvent& event) {
  const Lock lock(mutex_);
  if (closed_) throw UsageError("stream " + std::to_string(id_.value) + " was removed");
  if (work_ == CudaWork::kUnmarked) {
    // A wait for an event of outside would end the stream's capture.
    require_not_captured("cudaStreamWaitEvent");
  } else {
    require_working();
    marks_.reserve(expected_ + 1);
  }
  check_cuda(cudaStreamWaitEvent(stream_, event.handle, 0), "cudaStreamWaitEvent");
  // A point of the stream's from now on is behind the wait, so it needs a mark of its own.
  if (work_ == CudaWork::kMarked) (void)push(nullptr, try_record(), Clock::now());
}

void CudaLane::let_go(CudaEvent& event) noexcept {
  const Lock lock(mutex_);
  if (--event.waiters == 0 && event.retired) events_.give_back(event);
}

void CudaLane::require_progress(std::uint64_t sequence) {
  if (lost() != cudaSuccess) throw CudaError("cudaEventQuery", lost());
  const Lock lock(mutex_);
  if (sequence <= done_ || failed_ != cudaSuccess) return;  // then it is soon lost
  require_found(covering(sequence));
}

bool CudaLane::await_oldest() noexcept {
  const CudaRelaxed relaxed;
  Lock lock(mutex_);
  if (marks_.empty() || failed_ != cudaSuccess) return false;
  CudaEvent* event = covering(done_ + 1);
  if (event == nullptr) return false;
  ++event->waiters;  // keeps it from being recorded for other work meanwhile
  lock.unlock();
  // An error here is the device's, and the query in `sweep` meets it too.
  (void)take_cuda_error(cudaEventSynchronize(event->handle));
  let_go(*event);
  sweep();
  return true;
}

void CudaLane::drain() noexcept {
  for (;;) {
    while (await_oldest()) continue;
    {
      const Lock lock(mutex_);
      if (marks_.empty() && !sweeping_) return;
      // Else another thread is about to tell, or no event could be had.
    }
    std::this_thread::yield();
    synchronize();
  }
}

void CudaLane::synchronize() noexcept {
  const CudaRelaxed relaxed;
  const cudaError_t code = take_cuda_error(cudaStreamSynchronize(stream_));
  bool tells = false;
  {
    const Lock lock(mutex_);
    if (code == cudaSuccess) {
      through_ = marked();
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
