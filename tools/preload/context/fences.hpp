#pragma once

// How far the streams of one context have come, by fences: events without timing, recorded only on
// request or after enough frees. Most frees need no driver call.

#include <atomic>
#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/progress/events.hpp"
#include "allocator/progress/progress.hpp"
#include "scheduler/ledger/ticket.hpp"
#include "tools/preload/context/captures.hpp"
#include "tools/preload/context/fence_due.hpp"
#include "tools/preload/driver/scope.hpp"
#include "tools/preload/driver/this_thread.hpp"

namespace weir::preload {

/// Three of its streams are not the driver's:
///
///   sync()        memory from cuMemAlloc, which any stream may use at once. Its points are passed
///                 from the start. No block is handed over to it
///   everything()  all streams of the context: its fence is for what cuMemFree frees. An idle
///                 stream costs a query and no event
///   parked()      what cuMemFree frees while it is unknown how far another context is, which is
///                 captured or ends: `finish_parked` puts it behind everything() afterwards
///
/// A fence records its events on the streams themselves. It records one on the legacy stream only
/// if some streams have no name here (fence_due.hpp), since that event makes blocking streams
/// wait for each other.
///
/// A point is the stream's next fence, which is recorded later and so covers more than needed.
/// A captured stream is never touched. While a capture of the context is open whose mode is not
/// relaxed, no fence is recorded, queried or waited for: CUDA lets a thread in relaxed mode ask of
/// streams that are not captured, but on an H100 that was seen for relaxed captures alone.
/// Thread-safe.
class Fences final : public Progress {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t kPointsOfAFence = preload::kPointsOfAFence;
  /// Below this number of streams, does not look for gone ones.
  static constexpr std::size_t kFewStreams = 64;
  /// A wait for a point for which an earlier one ran out.
  static constexpr std::chrono::milliseconds kShortWait{20};

  Fences(const Driver& driver, CUcontext context);
  ~Fences() override { contexts.fetch_sub(1); }
  Fences(const Fences&) = delete;
  Fences& operator=(const Fences&) = delete;

  [[nodiscard]] StreamId sync() const noexcept { return sync_; }
  [[nodiscard]] StreamId everything() const noexcept { return everything_; }
  [[nodiscard]] StreamId parked() const noexcept { return parked_; }
  /// Returns the stream that `stream` means on this thread, and follows it. With `per_thread` the
  /// default stream is the thread's own. After `remove`, a reused handle is a new stream.
  [[nodiscard]] StreamId find(CUstream stream, bool per_thread);
  /// Like `find`, but returns nullopt for a stream that is not followed: it may be another
  /// context's.
  [[nodiscard]] std::optional<StreamId> find_known(CUstream stream, bool per_thread);
  /// Returns the driver's handle of the stream, as PyTorch's snapshots name it: null for a default
  /// stream, one that is gone, and the three that are not the driver's.
  [[nodiscard]] CUstream handle(StreamId stream) const noexcept;
  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  /// Notes that the context may have streams whose creation was not seen.
  void expect_unknown_streams() noexcept {
    const Lock lock(mutex_);
    streams_unknown_ = true;
  }
  /// Call after the driver created the stream: its handle may be reused. `blocking` says whether it
  /// waits for the legacy stream.
  void created(CUstream stream, bool blocking);
  /// Call before the driver destroys the stream. Returns the driver's code if its last work cannot
  /// be fenced; the stream must stay then.
  [[nodiscard]] CUresult remove(CUstream stream) noexcept;
  /// Notes that this thread uses its own default stream, which other threads cannot name. From now
  /// on another thread's fence on everything has an event on the legacy stream, which waits for
  /// that stream.
  static void use_per_thread() noexcept;

  /// Calls `begin`, which begins a capture of `stream` and may not call back here. No fence is
  /// recorded or queried meanwhile.
  template <typename Begin>
  CUresult begin_capture(StreamId stream, CUstreamCaptureMode mode, const Begin& begin) {
    const Lock lock(mutex_);
    fence_before_capture(stream);
    const auto [entry, first] = captured_.try_emplace(stream);
    if (first) CapturesUnderWay::announce();  // other contexts' streams may join it at once
    const CUresult code = begin();
    if (first && code != CUDA_SUCCESS) {
      captured_.erase(entry);
      CapturesUnderWay::withdraw();
    } else if (first) {
      entry->second = {.capture = CapturesUnderWay::begin(capture_here(stream)),
                       .began_it = true,
                       .mode = mode,
                       .since = Clock::now()};
    }
    return code;
  }
  /// Calls `wait`, by which `stream` waits for an event and so joins the event's capture, in
  /// whatever context. Holds the lock across the driver's call: a fence recorded or queried
  /// meanwhile could become part of the capture.
  template <typename Wait>
  CUresult wait_for_event(StreamId stream, const Wait& wait) {
    const Lock lock(mutex_);
    fence_before_capture(stream);
    const auto [entry, first] = captured_.try_emplace(stream);  // nothing may fail once it waits
    const CUresult code = wait();
    if (!first) return code;
    const CaptureId joined = capture_here(stream);
    if (CapturesUnderWay::has(joined)) {
      entry->second = {.capture = joined, .mode = mode_of(joined)};
    } else {
      captured_.erase(entry);
    }
    return code;
  }
  /// Call after the program asked the driver to end a capture. `ended` says whether it did.
  void note_end_of_capture(StreamId stream, bool ended) noexcept;
  /// Notes that an unseen capture may be under way. From now on no call assumes that all are known.
  static void expect_unknown_captures() noexcept { unknown_captures.store(true); }
  /// Waits for this context's driver calls. Call after another context was made and before a
  /// capture can begin in it, so that this context knows of it.
  void await_calls() const { const Lock lock(mutex_); }
  /// Returns whether a stream of the context began or joined a capture.
  [[nodiscard]] bool capturing() const;
  /// Returns whether such a capture forbids that the device is asked.
  [[nodiscard]] bool forbids_asking() const {
    const Lock lock(mutex_);
    return forbidden_now();
  }
  /// Names the captures, for a report; empty if there is none.
  [[nodiscard]] std::string captures_text() const;

  /// Returns events behind all work on `stream`, or on any busy stream, for another context to
  /// `adopt`. Throws if none can be recorded now.
  [[nodiscard]] std::vector<CUevent> events_of(StreamId stream);
  /// Makes the next fence on everything cover these events, and destroys them. If it throws, do not
  /// wait for the device.
  void adopt(const std::vector<CUevent>& events);

  /// Returns whether it is unknown when the device will have passed the point.
  [[nodiscard]] bool is_parked(Point point) const {
    const Lock lock(mutex_);
    return parked_point(point);
  }
  /// Returns the last point of parked(), if it needs finishing. Pass it to `finish_parked` once the
  /// next fence on everything covers other contexts' work as of this call.
  [[nodiscard]] std::optional<Point> last_parked();
  /// Puts everything parked up to the point behind everything(). Returns false if not possible now.
  bool finish_parked(Point last);

  /// Records the stream's fence now if a point needs it.
  void fence(StreamId stream) noexcept;
  /// Returns when the fence of an open point was recorded, or now if it was not.
  [[nodiscard]] Clock::time_point recorded(Point point) const;
  /// Tells the batch the device's time for work enqueued since `since`, once it has passed the next
  /// fence on everything.
  void measure(Ticket& batch, Clock::time_point since);
  /// Notes that the context and all its work are gone.
  void forget() noexcept;

  [[nodiscard]] Point record(StreamId stream) override;
  [[nodiscard]] std::uint64_t passed(StreamId stream) override;
  [[nodiscard]] Known known_passed(StreamId stream) override;
  /// Also false if the thread serves the device, or a capture forbids it. After waits that ran out
  /// it waits shorter, until one is over: each halves the next, and one for the same point is
  /// brief.
  [[nodiscard]] bool wait(Point point, const WaitLimit& limit) override;
  /// Throws if the point has no fence and none can be recorded now, and for sync().
  void make_wait(StreamId waiter, Point point) override;

  [[nodiscard]] std::uint64_t fences_recorded() const;
  /// Returns how many streams are known: all existing ones, and at most as many gone ones.
  [[nodiscard]] std::size_t streams() const {
    const Lock lock(mutex_);
    return streams_.size();
  }

 private:
  struct Measure {
    Ticket* batch;
    Clock::time_point since;
    std::uint64_t sequence;  ///< of the fence on everything that ends the measure
  };
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
    std::vector<Point> others;  ///< of streams that are gone; must be passed as well
    Clock::time_point recorded;
    std::uint64_t threads_ended = 0;  ///< ended threads whose streams it covers
  };
  /// Which streams a fence covers.
  enum class Reach : std::uint8_t {
    kBlocking,  ///< blocking streams and the legacy stream
    kAll,
    kNext,  ///< all, except what the previous fence on everything covers
  };
  struct Followed {
    // A fence on everything reads the first cache line of each.
    StreamId id;
    CUstream handle = nullptr;     ///< null for everything()
    std::uint64_t owner = 0;       ///< the thread whose default stream it is; 0 if none
    std::optional<bool> blocking;  ///< waits for the legacy stream; empty until asked
    bool removed = false;
    bool covered = false;     ///< removed, and a fence on everything covers its last fence
    bool unfenced = false;    ///< no fence covers its last work
    FenceQueue<Fence> queue;  ///< its points, and its fences that are not passed
    ThreadEnded ended;        ///< whether the thread of a default stream has ended

    /// Returns whether nobody can name the stream any more.
    [[nodiscard]] bool gone() const noexcept {
      return removed || (ended != nullptr && ended->load(std::memory_order_acquire));
    }
  };

  /// With only one context, a capture would be its own and would begin under the lock.
  [[nodiscard]] Captures captures() const noexcept WEIR_REQUIRES(mutex_) {
    const bool all_known = contexts.load() == 1 && !unknown_captures.load();
    return all_known && captured_.empty() ? Captures::kNone : Captures::kPossible;
  }
  struct Captured {
    CaptureId capture = 0;
    bool began_it = false;  ///< began on this stream, rather than joined
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    Clock::time_point since{};
  };
  /// Returns the mode of a capture; the strictest if it began in another context.
  [[nodiscard]] CUstreamCaptureMode mode_of(CaptureId capture) const noexcept WEIR_REQUIRES(mutex_);
  /// Returns whether no stream may be asked. Forgets ended captures.
  [[nodiscard]] bool forbidden_now() const WEIR_REQUIRES(mutex_);
  /// Returns whether a stream of the context is captured. Forgets ended captures.
  bool captured_now() const WEIR_REQUIRES(mutex_);
  [[nodiscard]] bool parked_point(Point point) const WEIR_REQUIRES(mutex_);
  /// Ends the points of a captured stream that is gone. It was fenced before its capture and did
  /// nothing since, so they pass with that fence.
  void end_captured(Followed& gone) noexcept WEIR_REQUIRES(mutex_);
  /// Returns a stream of ours, for waits that no program's stream should do.
  [[nodiscard]] CUstream carrier() WEIR_REQUIRES(mutex_);
  /// Returns the driver's id of the stream's capture, or 0.
  [[nodiscard]] CaptureId capture_here(StreamId stream) const noexcept WEIR_REQUIRES(mutex_);
  /// Throws if the stream is captured: calls for it would break the capture.
  void expect_not_captured(CUstream stream) const;
  [[nodiscard]] Followed* followed(StreamId id) WEIR_REQUIRES(mutex_);
  [[nodiscard]] const Followed* followed(StreamId id) const WEIR_REQUIRES(mutex_);
  Followed& add(CUstream stream, std::uint64_t owner) WEIR_REQUIRES(mutex_);
  /// Returns whether a fence of the stream asks every stream.
  [[nodiscard]] bool asks_all(const Followed& stream) const noexcept WEIR_REQUIRES(mutex_) {
    return stream.id == everything_ || stream.handle == CU_STREAM_LEGACY;
  }
  /// Returns whether asking how far the stream has come costs more than its points justify.
  [[nodiscard]] bool is_costly(StreamId stream) const noexcept WEIR_REQUIRES(mutex_);
  /// Returns how many streams may be added before the next search for gone ones: enough to cost
  /// each little, but fewer than were gone and not passed, or these would grow without end behind a
  /// slow device.
  [[nodiscard]] static std::size_t room_for_new(std::size_t live, std::size_t behind) noexcept;
  /// Forgets gone streams whose work is passed, once there are many. The context is current.
  void forget_gone() noexcept WEIR_REQUIRES(mutex_);
  void forget_spares() noexcept WEIR_REQUIRES(mutex_);
  /// Like `forget_gone`, but makes the context current: the driver does not report ended threads.
  void forget_ended() noexcept WEIR_REQUIRES(mutex_);
  /// Records the next fence. Returns false if that is not possible now.
  bool close(Followed& stream) noexcept WEIR_REQUIRES(mutex_);
  /// Records the next fence when nobody waits for it, and sweeps passed ones.
  void close_and_sweep(Followed& stream) noexcept WEIR_REQUIRES(mutex_);
  /// Records the next fence. Returns the driver's code.
  CUresult close_last(Followed& stream) noexcept WEIR_REQUIRES(mutex_);
  void record_fence(Followed& stream) WEIR_REQUIRES(mutex_);
  /// `all` says what everything() means here: kAll or kNext.
  void cover(Fence& fence, Followed& stream, Reach all) WEIR_REQUIRES(mutex_);
  /// Returns whether an idle stream may be behind work of others.
  [[nodiscard]] bool is_behind_others(Followed& stream) WEIR_REQUIRES(mutex_);
  void cover_everything(Fence& fence, Reach reach) WEIR_REQUIRES(mutex_);
  void cover_adopted(Fence& fence) WEIR_REQUIRES(mutex_);
  /// Adds one event behind all of `fence`'s points of gone streams.
  void carry_others(Fence& fence) WEIR_REQUIRES(mutex_);
  void cover_streams(Fence& fence, Reach reach) WEIR_REQUIRES(mutex_);
  void cover_captured(Fence& fence, Followed& stream, Reach reach) WEIR_REQUIRES(mutex_);
  void cover_removed(Fence& fence, Followed& stream, Reach reach, BlockingStreams& blocking)
      WEIR_REQUIRES(mutex_);
  /// Covers threads' default streams, even of ended threads.
  void cover_threads(Fence& fence, BlockingStreams& blocking) WEIR_REQUIRES(mutex_);
  /// Records the last fence: nothing can be recorded during the capture, and the stream may be
  /// destroyed in it.
  void fence_before_capture(StreamId stream) noexcept WEIR_REQUIRES(mutex_);
  /// Returns true if the stream has work or is captured. A query would break a capture.
  [[nodiscard]] bool busy(CUstream stream) const;
  [[nodiscard]] bool is_blocking(Followed& stream) const;
  void record_event(Fence& fence, CUstream stream) WEIR_REQUIRES(mutex_);
  void sweep(Followed& stream) noexcept WEIR_REQUIRES(mutex_);
  [[nodiscard]] bool is_passed(Fence& fence) noexcept WEIR_REQUIRES(mutex_);
  void tell_measures(std::uint64_t sequence, Clock::time_point now) noexcept WEIR_REQUIRES(mutex_);
  /// With `record`, also records a fence that is due.
  [[nodiscard]] std::uint64_t passed_locked(StreamId stream, bool record = true) noexcept
      WEIR_REQUIRES(mutex_);
  [[nodiscard]] Clock::time_point shortened(Point point, Clock::time_point from,
                                            Clock::time_point until) const;
  void wait_on_device(const Followed& waiter, Point point) WEIR_REQUIRES(mutex_);

  const Driver& driver_;
  const CUcontext context_;
  const StreamId sync_ = StreamId::next();
  const StreamId everything_ = StreamId::next();
  const StreamId parked_ = StreamId::next();
  inline static constinit std::atomic<int> contexts{0};  ///< contexts, even if gone
  inline static constinit std::atomic<bool> unknown_captures{false};

  mutable Mutex mutex_{LockRank::kStream};
  std::unordered_map<std::uint64_t, Followed> streams_ WEIR_GUARDED_BY(mutex_);
  FenceQueue<Fence>::Fences spare_ WEIR_GUARDED_BY(mutex_);      ///< passed, for reuse
  std::size_t forget_at_ WEIR_GUARDED_BY(mutex_) = kFewStreams;  ///< streams known
  std::unordered_map<CUstream, Followed*> by_handle_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Followed*> by_thread_ WEIR_GUARDED_BY(mutex_);
  mutable std::unordered_map<StreamId, Captured> captured_ WEIR_GUARDED_BY(mutex_);
  Events events_ WEIR_GUARDED_BY(mutex_);
  CUstream carrier_ WEIR_GUARDED_BY(mutex_) = nullptr;  ///< made when first needed
  bool adopted_ WEIR_GUARDED_BY(mutex_) = false;        ///< `carrier_` waits for adopted events
  std::vector<Measure> measures_ WEIR_GUARDED_BY(mutex_);
  Clock::time_point everything_passed_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t recorded_ WEIR_GUARDED_BY(mutex_) = 0;
  /// Threads that had ended when the last passed fence on everything was recorded.
  std::uint64_t threads_ended_ WEIR_GUARDED_BY(mutex_) = 0;
  /// A stream's creation was not seen: there may be more.
  bool streams_unknown_ WEIR_GUARDED_BY(mutex_) = false;
  bool gone_ WEIR_GUARDED_BY(mutex_) = false;
  static constexpr int kMostHalvings = 8;
  int ran_out_ WEIR_GUARDED_BY(mutex_) = 0;    ///< waits that did, since one was over
  Point stuck_ WEIR_GUARDED_BY(mutex_);        ///< of the last of them
  bool lost_ WEIR_GUARDED_BY(mutex_) = false;  ///< the device failed: nothing passes any more
};

}  // namespace weir::preload
