#pragma once

// One CUDA stream as a sequence of points, each covered by a later event.

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "allocator/base/mutex.hpp"
#include "allocator/progress/events.hpp"
#include "allocator/progress/events_cuda.hpp"
#include "allocator/progress/pause.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// When the device did a piece of work, as far as the host knows.
struct CudaWorkTime {
  std::chrono::nanoseconds device_time{};  ///< that it took; zero on a lost stream
  std::chrono::nanoseconds gap{};  ///< from the end of the tagged work before; zero for the first
  std::chrono::nanoseconds starved{};  ///< the part of the gap in which nothing was enqueued
  std::chrono::steady_clock::time_point end{};
};

/// Receives the work that the device has completed.
class CudaCompletion {
 public:
  CudaCompletion() = default;
  CudaCompletion(const CudaCompletion&) = delete;
  CudaCompletion& operator=(const CudaCompletion&) = delete;
  virtual ~CudaCompletion() = default;
  /// Called when the device is done with the work of `mark(tag)`. Calls come in stream order, one
  /// at a time, on any thread without a lock of ours. The point is passed only after the return.
  virtual void completed(void* tag, const CudaWorkTime& time) noexcept = 0;
};

/// Whether all work enqueued on a stream is reported to us.
enum class CudaWork : std::uint8_t {
  kMarked,  ///< the owner calls `mark` after each enqueue; a point is the last mark
  /// Others enqueue too. A point needs no CUDA call: its event is recorded on request, so it may
  /// cover more than needed.
  kUnmarked,
  /// Both: the owner calls `mark` after what it enqueues, and others enqueue too.
  kShared,
};

/// A stream that somebody else creates and destroys. Thread-safe.
///
/// If an event reports a device failure, the stream is lost: all tags are reported as completed, no
/// point is passed any more, so no memory is reused, and every call that needs the device throws
/// CudaError.
class FollowedCudaStream {
 public:
  /// The most points of an unmarked stream that share an event, so that frees need not all wait for
  /// the last of many.
  static constexpr std::uint32_t kPointsOfAnEvent = 32;

  /// `stream`, of GPU number `device`, and `completion` (may be null) outlive this. `id` is new.
  FollowedCudaStream(StreamId id, int device, cudaStream_t stream, CudaWork work,
                     CudaCompletion* completion);
  /// Every mark must be passed, or the stream lost.
  ~FollowedCudaStream();
  FollowedCudaStream(const FollowedCudaStream&) = delete;
  FollowedCudaStream& operator=(const FollowedCudaStream&) = delete;

  [[nodiscard]] StreamId id() const noexcept { return id_; }  ///< unique to this stream
  /// The runtime's.
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }

  /// Reserves memory for one `mark`, which must follow. May throw, and then changes nothing.
  void expect_mark();
  /// Records an event behind the work enqueued so far, and returns its sequence. `since` is when
  /// that work began to be enqueued. Call `expect_mark` first. Never throws: if no event can be
  /// recorded now, a later one covers the work.
  std::uint64_t mark(void* tag, std::chrono::steady_clock::time_point since) noexcept;
  /// Returns a point behind all work enqueued so far. Throws CudaError if the stream is lost, or if
  /// marked work's event cannot be recorded. Points of a stream on which others enqueue are not
  /// passed while it is captured.
  [[nodiscard]] Point record();
  /// Returns the highest passed sequence, as far as known.
  [[nodiscard]] std::uint64_t passed() noexcept;
  /// Stops using the stream, which may then be destroyed: all points count as passed. Returns false
  /// if a point is not passed yet. Throws CudaError if the stream is lost.
  [[nodiscard]] bool try_close();
  /// Makes `waiter` wait on the device until this stream has passed `sequence`. Throws UsageError
  /// if `waiter` is closed.
  void hold_back(FollowedCudaStream& waiter, std::uint64_t sequence);

  /// Throws CudaError if `sequence` can never be passed: the stream is lost, or no event covers it
  /// and none can be recorded.
  void require_progress(std::uint64_t sequence);
  /// Sleeps until the device has passed the first event to sleep on, or for a while if all such
  /// events would be far behind the oldest open point. Returns false if there is no open point, the
  /// stream is lost, or no event can be recorded.
  bool await_oldest() noexcept;
  /// Returns when every tag is reported. Nobody may call `mark` meanwhile.
  void drain() noexcept;
  /// Returns the device time of all tagged marks, each from the end of the work before or its own
  /// enqueue to its end.
  [[nodiscard]] std::chrono::nanoseconds busy() const noexcept {
    return std::chrono::nanoseconds(busy_.load(std::memory_order_relaxed));
  }
  /// Returns the highest sequence so far.
  [[nodiscard]] std::uint64_t marked() const noexcept {
    return marked_.load(std::memory_order_acquire);
  }
  /// Returns why the stream is lost, once all tags are reported; success until then.
  [[nodiscard]] cudaError_t lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  /// Throws CudaError if others capture the stream: `call` would become part of their graph.
  void require_not_captured(std::string_view call) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Told {
    std::uint64_t sequence = 0;
    void* tag = nullptr;
    Clock::time_point enqueued;
  };
  /// A place in the stream's order.
  struct Mark : Told {
    CudaEvents::Events events;  ///< at most one; if none, a later mark's event covers it
    CudaEventWait wait = CudaEventWait::kSpins;  ///< the event's
    std::uint32_t waiters = 0;                   ///< threads that use the event without the lock
  };
  using Marks = FenceQueue<Mark>::Fences;

  /// Makes sure of spare marks for all pushes before the next call.
  void reserve() WEIR_REQUIRES(mutex_);
  /// Pushes a mark without an event or a tag.
  Mark& push() noexcept WEIR_REQUIRES(mutex_);
  /// Pushes a mark with the tag, and an event if possible.
  std::uint64_t push(void* tag, Clock::time_point since) noexcept WEIR_REQUIRES(mutex_);
  /// Records an event behind all work enqueued now. On failure sets `refused_`.
  bool try_record(CudaEvents::Events& event, CudaEventWait wait) noexcept WEIR_REQUIRES(mutex_);
  /// Gives an event to a mark that has none.
  void attach(Mark& mark, CudaEvents::Events& event, CudaEventWait wait) noexcept
      WEIR_REQUIRES(mutex_);
  [[nodiscard]] CudaEvents& events_of(CudaEventWait wait) noexcept WEIR_REQUIRES(mutex_);
  void give_back(Mark& mark) noexcept WEIR_REQUIRES(mutex_);
  /// Returns the first mark with an event that covers `sequence`, which is not passed. Records an
  /// event if needed; null if that fails.
  [[nodiscard]] Mark* covering(std::uint64_t sequence) noexcept WEIR_REQUIRES(mutex_);
  /// Returns the first mark with an event to sleep on. If there is none, records one behind all
  /// others; null if they take long, or if that fails.
  [[nodiscard]] Mark* sleeper() noexcept WEIR_REQUIRES(mutex_);
  /// The waiter's half of hold_back, under its lock.
  void wait_behind(cudaEvent_t event);
  /// Ends a wait for a mark that may have been passed meanwhile.
  void let_go(Mark& mark) noexcept;
  /// Returns success, or why no event may be recorded on the stream now.
  [[nodiscard]] cudaError_t captured() const noexcept;
  void require_found(const Mark* mark) const WEIR_REQUIRES(mutex_);
  /// Reports completed work, unless another thread is doing so.
  void sweep() noexcept;
  /// Takes the next passed mark. If there is none, returns not ready or the device's error; the
  /// sweep is over.
  [[nodiscard]] cudaError_t take_done(Told& done) noexcept;
  /// Returns success if the device has passed `mark`, otherwise not ready or its error.
  [[nodiscard]] cudaError_t ask(const Mark& mark) noexcept WEIR_REQUIRES(mutex_);
  void tell_of_loss(cudaError_t why) noexcept;
  /// Waits for the stream itself when no event can be recorded.
  void synchronize() noexcept;
  void require_working() const WEIR_REQUIRES(mutex_);
  void tell(const Told& done) noexcept;
  /// Keeps a mark that left the queue, and its event, for reuse.
  void put_away(Marks& mark) noexcept WEIR_REQUIRES(mutex_);

  const StreamId id_;
  const int device_;
  const cudaStream_t stream_;
  const CudaWork work_;
  CudaCompletion* const completion_;

  Mutex mutex_{LockRank::kStream};
  CudaEvents events_ WEIR_GUARDED_BY(mutex_);
  CudaEvents sleepers_ WEIR_GUARDED_BY(mutex_);            ///< those to sleep on
  std::size_t open_sleepers_ WEIR_GUARDED_BY(mutex_) = 0;  ///< those of marks
  FenceQueue<Mark> marks_ WEIR_GUARDED_BY(mutex_);    ///< passed marks that are not reported yet
  Marks spare_ WEIR_GUARDED_BY(mutex_);               ///< for reuse
  Marks held_ WEIR_GUARDED_BY(mutex_);                ///< passed, with waiters
  std::size_t expected_ WEIR_GUARDED_BY(mutex_) = 0;  ///< marks to reserve room for
  bool sweeping_ WEIR_GUARDED_BY(mutex_) = false;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;  ///< the stream may be gone
  /// The whole stream was seen to be done up to here, whatever earlier events say.
  std::uint64_t through_ WEIR_GUARDED_BY(mutex_) = 0;
  /// Why the device failed. Waiters learn it from `lost_`, after the tags are reported: a tag may
  /// stand for what they wait for.
  cudaError_t failed_ WEIR_GUARDED_BY(mutex_) = cudaSuccess;
  /// Why the last event could not be recorded.
  cudaError_t refused_ WEIR_GUARDED_BY(mutex_) = cudaSuccess;
  std::atomic<std::uint64_t> marked_{0};
  std::atomic<std::uint64_t> passed_{0};
  std::atomic<std::int64_t> busy_{0};
  std::atomic<cudaError_t> lost_{cudaSuccess};
  SleepSpacing spacing_;  ///< asked under the lock, told by the sweeping thread
  // Used by the sweeping thread alone:
  Clock::time_point idle_since_;               ///< when the last work or wait ended
  std::optional<Clock::time_point> last_end_;  ///< when the last tagged work ended
  Clock::duration starved_{};                  ///< with nothing enqueued, since then
};

}  // namespace weir
