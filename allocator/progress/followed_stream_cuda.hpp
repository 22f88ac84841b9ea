#pragma once

/// @file
/// One CUDA stream as a sequence of points, each covered by an event behind its work.

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "allocator/base/mutex.hpp"
#include "allocator/progress/events_cuda.hpp"
#include "allocator/progress/fence_queue.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// Is told what the device has done.
class CudaCompletion {
 public:
  CudaCompletion() = default;
  CudaCompletion(const CudaCompletion&) = delete;
  CudaCompletion& operator=(const CudaCompletion&) = delete;
  virtual ~CudaCompletion() = default;
  /// The device is done with the work that was marked with `tag`, which took `device_time`. In the
  /// order of the stream, one call at a time, on any thread, which holds no lock of ours. The
  /// work's point is passed only after this returns.
  virtual void completed(void* tag, std::chrono::nanoseconds device_time) noexcept = 0;
};

/// Whether we hear of all that is enqueued on a stream.
enum class CudaWork : std::uint8_t {
  kMarked,  ///< whoever enqueues calls `mark` after it; a point is the last mark
  /// Others enqueue too. A point costs no call of CUDA's: its event is recorded when somebody asks
  /// for it, and so covers more than it has to.
  kUnmarked,
};

/// A stream that somebody else made and destroys. Thread-safe.
///
/// Where an event says that the device has failed, the stream is lost: tags are told as completed,
/// nothing is passed any more, so no memory is used again, and every call that would need the
/// device throws CudaError.
class FollowedCudaStream {
 public:
  /// So many points of an unmarked stream share an event at most: what is freed while the device is
  /// far behind does not all come free with the last of it.
  static constexpr std::uint32_t kPointsOfAnEvent = 32;

  /// `stream`, of GPU number `device`, and `completion`, if any, outlive this. `id` is a new one.
  FollowedCudaStream(StreamId id, int device, cudaStream_t stream, CudaWork work,
                     CudaCompletion* completion);
  /// Everything marked must be passed, or the stream lost.
  ~FollowedCudaStream();
  FollowedCudaStream(const FollowedCudaStream&) = delete;
  FollowedCudaStream& operator=(const FollowedCudaStream&) = delete;

  [[nodiscard]] StreamId id() const noexcept { return id_; }  ///< never another stream's
  /// The runtime's.
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }

  /// Takes the memory of one `mark`, which has to follow. May throw, and has changed nothing then.
  void expect_mark();
  /// Puts an event behind what was enqueued so far; the sequence that is passed with it. `since` is
  /// when that began to be enqueued. After `expect_mark`. Does not throw: where no event can be
  /// recorded now, a later one covers the work.
  std::uint64_t mark(void* tag, std::chrono::steady_clock::time_point since) noexcept;
  /// A place behind all that was enqueued so far. CudaError when the stream is lost, and where the
  /// event of marked work cannot be recorded. While an unmarked stream is captured its points are
  /// not passed.
  [[nodiscard]] Point record();
  /// As of now. The same for as long as nothing is known to have happened.
  [[nodiscard]] std::uint64_t passed() noexcept;
  /// Nothing asks the stream any more, which may be destroyed then: points are passed from the
  /// start, and it waits for nothing. False while a point is not passed. CudaError when the stream
  /// is lost.
  [[nodiscard]] bool try_close();
  /// Makes `waiter` wait on the device until this stream has passed `sequence`. UsageError when
  /// that is closed.
  void hold_back(FollowedCudaStream& waiter, std::uint64_t sequence);

  /// Throws CudaError if `sequence` can never be passed: the stream is lost, or no event covers it
  /// and none can be recorded.
  void require_progress(std::uint64_t sequence);
  /// Sleeps, where the events are made for it, until the device has passed the oldest point that is
  /// not passed; false when there is none, the stream is lost, or no event covers the work.
  bool await_oldest() noexcept;
  /// Returns when every tag is told, whatever became of its work; nobody may mark meanwhile.
  void drain() noexcept;
  /// Time between the end of what was before, or its own enqueuing, and each mark with a tag.
  [[nodiscard]] std::chrono::nanoseconds busy() const noexcept {
    return std::chrono::nanoseconds(busy_.load(std::memory_order_relaxed));
  }
  /// The highest sequence so far.
  [[nodiscard]] std::uint64_t marked() const noexcept {
    return marked_.load(std::memory_order_acquire);
  }
  /// Success until the stream is lost and its tags are told, and then why.
  [[nodiscard]] cudaError_t lost() const noexcept { return lost_.load(std::memory_order_acquire); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Told {
    std::uint64_t sequence = 0;
    void* tag = nullptr;
    Clock::time_point enqueued;
  };
  /// A place in the stream's order.
  struct Mark : Told {
    CudaEvents::Events events;  ///< at most one; none: a later mark's event covers it
    std::uint32_t waiters = 0;  ///< threads that use the event without the lock
  };
  using Marks = FenceQueue<Mark>::Fences;

  /// Makes sure that as many marks are at hand as may be pushed before the next call.
  void reserve() WEIR_REQUIRES(mutex_);
  /// The next mark, without an event.
  Mark& push() noexcept WEIR_REQUIRES(mutex_);
  /// The same with the tag, and an event if one can be recorded.
  std::uint64_t push(void* tag, Clock::time_point since) noexcept WEIR_REQUIRES(mutex_);
  /// Puts an event behind all that is enqueued now. False, and why in `refused_`, if none can be
  /// had.
  bool try_record(CudaEvents::Events& events) noexcept WEIR_REQUIRES(mutex_);
  /// The first mark with an event that is passed no earlier than `sequence`, which is not passed.
  /// Records one if there is none; null as above.
  [[nodiscard]] Mark* covering(std::uint64_t sequence) noexcept WEIR_REQUIRES(mutex_);
  /// The other half of hold_back, under the waiter's lock.
  void wait_behind(cudaEvent_t event);
  /// Ends a wait for a mark that may have been passed meanwhile.
  void let_go(Mark& mark) noexcept;
  /// Success, or why no event of ours may be recorded on the stream now.
  [[nodiscard]] cudaError_t captured() const noexcept;
  void require_not_captured(std::string_view call) const;
  void require_found(const Mark* mark) const WEIR_REQUIRES(mutex_);
  /// Tells of what the device has done by now, unless another thread is about it.
  void sweep() noexcept;
  /// The next mark that the device has passed. Not ready, or what the device failed with, when
  /// there is none; the sweep is over then.
  [[nodiscard]] cudaError_t take_done(Told& done) noexcept;
  /// Whether the device has passed `mark`: success, not ready, or what the device failed with.
  [[nodiscard]] cudaError_t ask(const Mark& mark) noexcept WEIR_REQUIRES(mutex_);
  void tell_of_loss(cudaError_t why) noexcept;
  /// Asks the stream itself, where no event can be had to ask for.
  void synchronize() noexcept;
  void require_working() const WEIR_REQUIRES(mutex_);
  void tell(const Told& done) noexcept;
  /// Keeps a mark that is not in the queue any more, and its event, for the next use.
  void put_away(Marks& mark) noexcept WEIR_REQUIRES(mutex_);

  const StreamId id_;
  const cudaStream_t stream_;
  const CudaWork work_;
  CudaCompletion* const completion_;

  Mutex mutex_{LockRank::kStream};
  CudaEvents events_ WEIR_GUARDED_BY(mutex_);
  FenceQueue<Mark> marks_ WEIR_GUARDED_BY(mutex_);    ///< passed ones have yet to be told
  Marks spare_ WEIR_GUARDED_BY(mutex_);               ///< to be used again
  Marks held_ WEIR_GUARDED_BY(mutex_);                ///< passed, with waiters
  std::size_t expected_ WEIR_GUARDED_BY(mutex_) = 0;  ///< marks that there has to be room for
  bool sweeping_ WEIR_GUARDED_BY(mutex_) = false;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;  ///< the stream may be gone
  /// The stream was seen to be through with it, whatever the events of earlier marks say.
  std::uint64_t through_ WEIR_GUARDED_BY(mutex_) = 0;
  /// Why the device failed. Waiters learn of it by `lost_`, once the tags are told: what they hold
  /// may be what the tags stand for.
  cudaError_t failed_ WEIR_GUARDED_BY(mutex_) = cudaSuccess;
  /// Why the last event could not be recorded.
  cudaError_t refused_ WEIR_GUARDED_BY(mutex_) = cudaSuccess;
  std::atomic<std::uint64_t> marked_{0};
  std::atomic<std::uint64_t> passed_{0};
  std::atomic<std::int64_t> busy_{0};
  std::atomic<cudaError_t> lost_{cudaSuccess};
  Clock::time_point idle_since_;  ///< whoever sweeps has it
};

}  // namespace weir
