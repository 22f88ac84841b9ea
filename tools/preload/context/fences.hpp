#pragma once

// How far the streams of one context have come, by fences: events without timing that are recorded
// only when somebody asks, or when enough was freed, so that most frees cost no call of the driver.

#include <atomic>
#include <chrono>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/progress/events.hpp"
#include "allocator/progress/fence_queue.hpp"
#include "allocator/progress/progress.hpp"
#include "tools/preload/context/captures.hpp"
#include "tools/preload/context/fence_due.hpp"
#include "tools/preload/context/legacy_event.hpp"
#include "tools/preload/context/thread_life.hpp"
#include "tools/preload/driver/scope.hpp"

namespace weir::preload {

/// Three of its streams are none of the driver's:
///
///   sync()        memory that cuMemAlloc gave, which any stream may use at once. Its points are
///                 passed from the start; what is handed over to it is waited for on the host
///   everything()  all streams of the context: the fence of what cuMemFree frees. A stream that the
///                 driver says is idle costs a query and no event
///   parked()      what cuMemFree frees while nobody can say how far another context is, which is
///                 captured or ends: `finish_parked` puts it behind everything() afterwards
///
/// A fence has its events on the streams themselves, and on the legacy stream only where others
/// have no name here (legacy_event.hpp): there an event makes blocking streams wait for each other.
///
/// A point is the stream's next fence, recorded later and so covering more than it has to. While a
/// stream of the context is captured no fence is recorded, queried or waited for. Every wait ends:
/// after `max_wait` of one request at the latest. Thread-safe.
class Fences final : public Progress {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t kPointsOfAFence = preload::kPointsOfAFence;
  /// Up to so many streams none that is gone is looked for.
  static constexpr std::size_t kFewStreams = 64;

  Fences(const Driver& driver, CUcontext context, std::chrono::nanoseconds max_wait);
  ~Fences() override { contexts.fetch_sub(1); }
  Fences(const Fences&) = delete;
  Fences& operator=(const Fences&) = delete;

  [[nodiscard]] StreamId sync() const noexcept { return sync_; }
  [[nodiscard]] StreamId everything() const noexcept { return everything_; }
  [[nodiscard]] StreamId parked() const noexcept { return parked_; }
  /// The stream that `stream` means on this thread, followed from now on; with `per_thread` the
  /// default stream is the thread's own. Handles that are used again are other streams once
  /// `remove` was told of the first.
  [[nodiscard]] StreamId find(CUstream stream, bool per_thread);
  /// The same, but nothing for a stream that is not followed here yet: it may be another context's.
  [[nodiscard]] std::optional<StreamId> find_known(CUstream stream, bool per_thread);
  /// Whether the driver's streams are of this context at all.
  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  /// There may be streams of the context that nobody here saw being made.
  void expect_unknown_streams() noexcept {
    const Lock lock(mutex_);
    streams_unknown_ = true;
  }
  /// The driver made it now: whatever had this handle before is another stream. `blocking`: it
  /// waits for the legacy stream.
  void created(CUstream stream, bool blocking);
  /// To be called before the driver destroys it. The driver's code where its last work cannot be
  /// fenced: then it has to stay.
  [[nodiscard]] CUresult remove(CUstream stream) noexcept;
  /// This thread uses its own default stream, which others have no name for: from now on a fence on
  /// everything that another thread records has an event on the legacy stream, which waits for it.
  static void use_per_thread() noexcept;

  /// Calls `begin`, which begins a capture of `stream` (and may not come back here), while no fence
  /// is recorded or queried.
  template <typename Begin>
  CUresult begin_capture(StreamId stream, const Begin& begin) {
    const Lock lock(mutex_);
    fence_before_capture(stream);
    const auto [entry, first] = captured_.try_emplace(stream);
    if (first) CapturesUnderWay::announce();  // streams of other contexts may join it at once
    const CUresult code = begin();
    if (first && code != CUDA_SUCCESS) {
      captured_.erase(entry);
      CapturesUnderWay::withdraw();
    } else if (first) {
      entry->second = {CapturesUnderWay::begin(capture_here(stream)), true};
    }
    return code;
  }
  /// Calls `wait`, by which `stream` waits for an event: so it joins the capture that the event is
  /// of, whatever context that began in. No fence is recorded or queried meanwhile, or it could
  /// become a part of the capture, which is why the lock is held across the driver's call.
  template <typename Wait>
  CUresult wait_for_event(StreamId stream, const Wait& wait) {
    const Lock lock(mutex_);
    fence_before_capture(stream);
    const auto [entry, first] = captured_.try_emplace(stream);  // nothing may fail once it waits
    const CUresult code = wait();
    if (!first) return code;
    const CaptureId joined = capture_here(stream);
    if (CapturesUnderWay::has(joined)) {
      entry->second = {joined, false};
    } else {
      captured_.erase(entry);
    }
    return code;
  }
  /// The program has called the end of a capture, and was told so.
  void note_end_of_capture(StreamId stream, bool ended) noexcept;
  /// A capture may be under way that nobody here knows of: from now on no call of ours counts on
  /// knowing them all.
  static void expect_unknown_captures() noexcept { unknown_captures.store(true); }
  /// Returns when what this context asks its driver now is answered. After another one was made and
  /// before the program can begin a capture in that, this one has to know that it is there.
  void await_calls() const { const Lock lock(mutex_); }
  /// Whether a stream of the context is captured: it began a capture, or joined one.
  [[nodiscard]] bool capturing() const;

  /// Events behind all work that is on `stream` now, or on any stream that is busy, for the fences
  /// of another context: `adopt` takes them. Throws where none can be recorded now.
  [[nodiscard]] std::vector<CUevent> events_of(StreamId stream);
  /// The next fence on everything stands for these, too; they are destroyed. Where this throws, the
  /// device may not be waited for.
  void adopt(const std::vector<CUevent>& events);

  /// Whether nobody can say yet when the device will have passed the point.
  [[nodiscard]] bool is_parked(Point point) const {
    const Lock lock(mutex_);
    return parked_point(point);
  }
  /// The last point of parked() now, if one is to be finished: `finish_parked` takes it, once the
  /// next fence on everything stands for all that other contexts had to do when this was called.
  [[nodiscard]] std::optional<Point> last_parked();
  /// Puts what was parked up to the point behind everything. False where that cannot be done now.
  bool finish_parked(Point last);

  /// What is asked of a request on its way.
  class Request {
   public:
    Request() = default;
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    virtual ~Request() = default;
    /// Whether it could not be served by all that is submitted: then it need not wait.
    [[nodiscard]] virtual bool is_hopeless() const = 0;
    /// Whether it had better be served by new memory than by asking very many streams.
    [[nodiscard]] virtual bool can_grow() const = 0;
    /// Whether there is room that was not there before, so that the wait is to end: asked while the
    /// request waits.
    [[nodiscard]] virtual bool has_new_room() const noexcept { return false; }
  };
  /// The calling thread's next request: what it may wait starts now. `request` is asked, and lives
  /// until `end_request`.
  static void begin_request(const Request* request = nullptr) noexcept;
  static void end_request() noexcept;
  /// How much longer the thread's request may wait that may wait for `most`.
  [[nodiscard]] static std::chrono::nanoseconds left_of_request(
      std::chrono::nanoseconds most) noexcept;
  /// Whether streams were not asked for the thread's request since it `can_grow`. From now on they
  /// are.
  [[nodiscard]] static bool insist() noexcept;
  /// Records the stream's fence now if there is a point for it.
  void fence(StreamId stream) noexcept;
  /// When the fence of a point that is not passed was recorded; now, where it was not yet.
  [[nodiscard]] Clock::time_point recorded(Point point) const;
  /// Adds to `device_time` what the device took, once it has passed the next fence on everything,
  /// for work that was enqueued from `since` on.
  void measure(std::atomic<std::int64_t>& device_time, Clock::time_point since);
  /// The context is gone, and all of its work with it.
  void forget() noexcept;

  [[nodiscard]] Point record(StreamId stream) override;
  [[nodiscard]] std::uint64_t passed(StreamId stream) override;
  /// False, too: the request has waited as long as it may, the thread serves the device, or a
  /// capture is under way.
  [[nodiscard]] bool wait(Point point, std::stop_token stop) override;
  /// Throws where the point has no fence and none can be recorded now.
  void make_wait(StreamId waiter, Point point) override;

  [[nodiscard]] std::uint64_t fences_recorded() const;
  /// How many streams it knows: all that there are, and as many that are gone at most.
  [[nodiscard]] std::size_t streams() const {
    const Lock lock(mutex_);
    return streams_.size();
  }

 private:
  struct Measure {
    std::atomic<std::int64_t>* device_time;
    Clock::time_point since;
    std::uint64_t sequence;  ///< of the fence on everything that tells it
  };
  /// The driver's functions for events, in the context that is current.
  class EventFunctions {
   public:
    using Event = CUevent;
    using Stream = CUstream;
    using Code = CUresult;
    explicit EventFunctions(const Driver& driver) noexcept : driver_(&driver) {}
    [[nodiscard]] Code create(Event& event) const noexcept {
      return driver_->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    }
    [[nodiscard]] Code record(Event event, Stream stream) const noexcept {
      return driver_->cuEventRecord(event, stream);
    }
    [[nodiscard]] Code query(Event event) const noexcept { return driver_->cuEventQuery(event); }
    [[nodiscard]] Code destroy(Event event) const noexcept {
      return driver_->cuEventDestroy_v2(event);
    }

   private:
    const Driver* driver_;
  };
  using Events = EventStore<EventFunctions>;
  static_assert(event_state(CUDA_SUCCESS) == EventState::kPassed);
  static_assert(event_state(CUDA_ERROR_NOT_READY) == EventState::kNotPassed);
  static_assert(event_state(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) == EventState::kCaptured);
  static_assert(event_state(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) == EventState::kCaptured);
  static_assert(event_state(CUDA_ERROR_ILLEGAL_ADDRESS) == EventState::kFailed);
  struct Fence {
    std::uint64_t sequence = 0;
    Events::Events events;      ///< not known to be passed
    std::vector<Point> others;  ///< of streams that are gone: to be passed as well
    Clock::time_point recorded;
    std::uint64_t threads_ended = 0;  ///< whose default streams it covers
  };
  /// Which streams a fence covers.
  enum class Reach : std::uint8_t {
    kBlocking,  ///< the blocking ones and the legacy stream
    kAll,
    kNext,  ///< all, and the fence on everything before it has passed: what that covers is left out
  };
  /// What is known of one stream.
  struct Followed {
    // The first line of a cache is what a fence on everything looks at, of each of them.
    StreamId id;
    CUstream handle = nullptr;     ///< null for everything()
    std::uint64_t owner = 0;       ///< of a thread's default stream: the thread
    std::optional<bool> blocking;  ///< whether it waits for the legacy stream, once asked
    bool removed = false;
    bool covered = false;     ///< removed, and a fence on everything has its last one
    bool unfenced = false;    ///< no fence covers what it was given: it stands for nothing
    FenceQueue<Fence> queue;  ///< its points, and its fences that are not passed
    ThreadEnded ended;        ///< of a thread's default stream: that it is gone

    /// Whether nobody can name it any more.
    [[nodiscard]] bool gone() const noexcept {
      return removed || (ended != nullptr && ended->load(std::memory_order_acquire));
    }
  };

  /// With one context alone a capture would be its own, and that one begins under the lock.
  [[nodiscard]] Captures captures() const noexcept WEIR_REQUIRES(mutex_) {
    const bool all_known = contexts.load() == 1 && !unknown_captures.load();
    return all_known && captured_.empty() ? Captures::kNone : Captures::kPossible;
  }
  /// A stream's capture.
  struct Captured {
    CaptureId capture = 0;
    bool began_it = false;  ///< that stream; or it joined
  };
  /// Whether a stream of the context is captured; forgets those whose capture is over.
  bool captured_now() const WEIR_REQUIRES(mutex_);
  [[nodiscard]] bool parked_point(Point point) const WEIR_REQUIRES(mutex_);
  /// It was fenced before it was captured and did nothing since: its last points pass with that.
  void end_captured(Followed& gone) noexcept WEIR_REQUIRES(mutex_);
  /// A stream of ours, to wait on for what no stream of the program is to wait for.
  [[nodiscard]] CUstream carrier() WEIR_REQUIRES(mutex_);
  /// What the driver says that the stream's capture is; 0 for none.
  [[nodiscard]] CaptureId capture_here(StreamId stream) const noexcept WEIR_REQUIRES(mutex_);
  /// Throws where the driver says that the stream is captured, which a call for it would break.
  void expect_not_captured(CUstream stream) const;
  [[nodiscard]] Followed* followed(StreamId id) WEIR_REQUIRES(mutex_);
  [[nodiscard]] const Followed* followed(StreamId id) const WEIR_REQUIRES(mutex_);
  Followed& add(CUstream stream, std::uint64_t owner) WEIR_REQUIRES(mutex_);
  /// Whether a fence of the stream asks every stream.
  [[nodiscard]] bool asks_all(const Followed& stream) const noexcept WEIR_REQUIRES(mutex_) {
    return stream.id == everything_ || stream.handle == CU_STREAM_LEGACY;
  }
  /// Whether the answer that the stream has passed more takes more questions than its points pay
  /// for.
  [[nodiscard]] bool is_costly(StreamId stream) const noexcept WEIR_REQUIRES(mutex_);
  /// How many new streams there may be until those that are gone are looked for again: so many that
  /// it costs each little, and not as many as were gone and not passed the last time, or a device
  /// that is always behind would have ever more of them.
  [[nodiscard]] static std::size_t room_for_new(std::size_t live, std::size_t behind) noexcept;
  /// Forgets the streams that are gone and whose work is all passed, once there are many. The
  /// context is current.
  void forget_gone() noexcept WEIR_REQUIRES(mutex_);
  /// Gives back what is kept for fences beyond what so many streams need.
  void forget_spares() noexcept WEIR_REQUIRES(mutex_);
  /// The same where it need not be: threads ended, of which the driver tells nobody.
  void forget_ended() noexcept WEIR_REQUIRES(mutex_);
  /// Records the next fence; false where it cannot be had now.
  bool close(Followed& stream) noexcept WEIR_REQUIRES(mutex_);
  /// The same where nobody waits for it, and finds out which are passed.
  void close_and_sweep(Followed& stream) noexcept WEIR_REQUIRES(mutex_);
  /// Records the next fence; the driver's code.
  CUresult close_last(Followed& stream) noexcept WEIR_REQUIRES(mutex_);
  void record_fence(Followed& stream) WEIR_REQUIRES(mutex_);
  /// `all`: what everything means, kAll or kNext.
  void cover(Fence& fence, Followed& stream, Reach all) WEIR_REQUIRES(mutex_);
  /// Whether a stream that is idle may be behind work of others.
  [[nodiscard]] bool is_behind_others(Followed& stream) WEIR_REQUIRES(mutex_);
  void cover_everything(Fence& fence, Reach reach) WEIR_REQUIRES(mutex_);
  /// Adds what `adopt` was given.
  void cover_adopted(Fence& fence) WEIR_REQUIRES(mutex_);
  /// Puts one event behind all that `fence` has of streams that are gone.
  void carry_others(Fence& fence) WEIR_REQUIRES(mutex_);
  void cover_streams(Fence& fence, Reach reach) WEIR_REQUIRES(mutex_);
  void cover_removed(Fence& fence, Followed& stream, Reach reach, BlockingStreams& blocking)
      WEIR_REQUIRES(mutex_);
  /// The default streams of threads, of those that ended as well.
  void cover_threads(Fence& fence, BlockingStreams& blocking) WEIR_REQUIRES(mutex_);
  /// While it is captured nothing can be recorded on it, and it may be destroyed meanwhile.
  void fence_before_capture(StreamId stream) noexcept WEIR_REQUIRES(mutex_);
  /// Whether it has work, or is captured: then the question would break the capture.
  [[nodiscard]] bool busy(CUstream stream) const;
  [[nodiscard]] bool is_blocking(Followed& stream) const;
  void record_event(Fence& fence, CUstream stream) WEIR_REQUIRES(mutex_);
  void sweep(Followed& stream) noexcept WEIR_REQUIRES(mutex_);
  [[nodiscard]] bool is_passed(Fence& fence) noexcept WEIR_REQUIRES(mutex_);
  void tell_measures(std::uint64_t sequence, Clock::time_point now) noexcept WEIR_REQUIRES(mutex_);
  /// `record`: a fence that is due is recorded.
  [[nodiscard]] std::uint64_t passed_locked(StreamId stream, bool record = true) noexcept
      WEIR_REQUIRES(mutex_);
  void wait_on_device(const Followed& waiter, Point point) WEIR_REQUIRES(mutex_);

  const Driver& driver_;
  const CUcontext context_;
  const std::chrono::nanoseconds max_wait_;
  const StreamId sync_ = StreamId::next();
  const StreamId everything_ = StreamId::next();
  const StreamId parked_ = StreamId::next();
  inline static constinit std::atomic<int> contexts{0};  ///< contexts, also those that are gone
  inline static constinit std::atomic<bool> unknown_captures{false};

  mutable Mutex mutex_{LockRank::kStream};
  std::unordered_map<std::uint64_t, Followed> streams_ WEIR_GUARDED_BY(mutex_);
  FenceQueue<Fence>::Fences spare_ WEIR_GUARDED_BY(mutex_);      ///< passed, to be used again
  std::size_t forget_at_ WEIR_GUARDED_BY(mutex_) = kFewStreams;  ///< streams known
  std::unordered_map<CUstream, Followed*> by_handle_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Followed*> by_thread_ WEIR_GUARDED_BY(mutex_);
  mutable std::unordered_map<StreamId, Captured> captured_ WEIR_GUARDED_BY(mutex_);
  Events events_ WEIR_GUARDED_BY(mutex_);
  CUstream carrier_ WEIR_GUARDED_BY(mutex_) = nullptr;  ///< once needed
  bool adopted_ WEIR_GUARDED_BY(mutex_) = false;  ///< it waits for what `adopt` was given last
  std::vector<Measure> measures_ WEIR_GUARDED_BY(mutex_);
  Clock::time_point everything_passed_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t recorded_ WEIR_GUARDED_BY(mutex_) = 0;
  /// So many threads had ended when the fence on everything was recorded that was passed last.
  std::uint64_t threads_ended_ WEIR_GUARDED_BY(mutex_) = 0;
  /// A stream turned up that nobody here saw being made: there may be more.
  bool streams_unknown_ WEIR_GUARDED_BY(mutex_) = false;
  bool gone_ WEIR_GUARDED_BY(mutex_) = false;
  bool lost_ WEIR_GUARDED_BY(mutex_) = false;  ///< the device failed: nothing passes any more
};

}  // namespace weir::preload
