#pragma once

// How far the streams of one context have come, by fences: events without timing, recorded only on
// request or after enough frees. Most frees need no driver call.

#include <optional>
#include <string>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "tools/preload/context/context_captures.hpp"
#include "tools/preload/context/fence_recorder.hpp"
#include "tools/preload/context/followed_streams.hpp"

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
/// A point is the stream's next fence, which is recorded later and so covers more than needed.
/// Thread-safe: its one lock guards its parts, and the context is current where they need it.
class Fences final : public Progress {
 public:
  using Clock = std::chrono::steady_clock;

  Fences(const Driver& driver, CUcontext context) : driver_(driver), context_(context) {}

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
  /// Call after the driver created the stream: its handle may be reused. `blocking` says whether it
  /// waits for the legacy stream. If this throws, the stream counts as one that nobody saw created.
  void created(CUstream stream, bool blocking) {
    const Lock lock(mutex_);
    streams_.created(stream, blocking);
  }
  /// Call before the driver destroys the stream. Returns the driver's code if its last work cannot
  /// be fenced; the stream must stay then.
  [[nodiscard]] CUresult remove(CUstream stream) noexcept;

  /// Calls `begin`, which begins a capture of `stream` and may not call back here. No fence is
  /// recorded or queried meanwhile.
  template <typename Begin>
  CUresult begin_capture(StreamId stream, CUstreamCaptureMode mode, const Begin& begin) {
    const Lock lock(mutex_);
    fence_before_capture(stream);
    return captures_.begin(stream, mode, begin);
  }
  /// Calls `wait`, by which `stream` waits for an event and so joins the event's capture, in
  /// whatever context. Holds the lock across the driver's call: a fence recorded or queried
  /// meanwhile could become part of the capture.
  template <typename Wait>
  CUresult wait_for_event(StreamId stream, const Wait& wait) {
    const Lock lock(mutex_);
    fence_before_capture(stream);
    return captures_.join(stream, wait);
  }
  /// Call after the program asked the driver to end a capture. `ended` says whether it did.
  void note_end_of_capture(StreamId stream, bool ended) noexcept {
    const Lock lock(mutex_);
    captures_.note_end(stream, ended);
  }
  /// Waits for this context's driver calls. Call after another context was made and before a
  /// capture can begin in it, so that this context knows of it.
  void await_calls() const { const Lock lock(mutex_); }
  /// Returns whether a stream of the context began or joined a capture.
  [[nodiscard]] bool capturing() const {
    const Lock lock(mutex_);
    return captures_.any();
  }
  /// Returns whether such a capture forbids that the device is asked.
  [[nodiscard]] bool forbids_asking() const {
    const Lock lock(mutex_);
    return captures_.forbid_asking();
  }
  /// Names the captures, for a report; empty if there is none.
  [[nodiscard]] std::string captures_text() const {
    const Lock lock(mutex_);
    return captures_.text();
  }

  /// Returns events behind all work on `stream`, or on any busy stream, for another context to
  /// `adopt`. Throws if none can be recorded now.
  [[nodiscard]] std::vector<CUevent> events_of(StreamId stream);
  /// Makes the next fence on everything cover these events, and destroys them. If it throws, do not
  /// wait for the device.
  void adopt(const std::vector<CUevent>& events);

  /// Returns whether it is unknown when the device will have passed the point.
  [[nodiscard]] bool is_parked(Point point) const {
    const Lock lock(mutex_);
    return streams_.is_parked(point);
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
  void measure(Ticket& batch, Clock::time_point since) {
    const Lock lock(mutex_);
    recorder_.measure(batch, since);
  }
  /// Notes that the context and all its work are gone.
  void forget() noexcept {
    const Lock lock(mutex_);
    streams_.end();
    captures_.end();
    recorder_.end();
  }

  [[nodiscard]] Point record(StreamId stream) override;
  [[nodiscard]] std::uint64_t passed(StreamId stream) override {
    if (stream == sync_) return 0;
    const Lock lock(mutex_);
    return passed_locked(stream);
  }
  [[nodiscard]] Known known_passed(StreamId stream) override;
  /// Also false if the thread serves the device, or a capture forbids it. After waits that ran out
  /// it waits shorter, until one is over: each halves the next, and one for the same point is
  /// brief.
  [[nodiscard]] bool wait(Point point, const WaitLimit& limit) override;
  /// Throws if the point has no fence and none can be recorded now, and for sync().
  void make_wait(StreamId waiter, Point point) override;

  /// Returns how many streams are known: all existing ones, and at most as many gone ones.
  [[nodiscard]] std::size_t streams() const {
    const Lock lock(mutex_);
    return streams_.size();
  }

 private:
  /// Makes the context current for our own calls.
  struct Scope {
    explicit Scope(const Fences& its) WEIR_REQUIRES(its.mutex_)
        : scope(its.driver_, its.context_, its.captures_.possible()) {}
    const Inside inside;
    const ContextScope scope;
  };

  /// Records the last fence: nothing can be recorded during the capture, and the stream may be
  /// destroyed in it.
  void fence_before_capture(StreamId stream) noexcept WEIR_REQUIRES(mutex_);
  /// Records the next fence, if possible, when nobody waits for it.
  void record_early(FollowedStream& stream) noexcept WEIR_REQUIRES(mutex_);
  /// With `record`, also records a fence that is due.
  [[nodiscard]] std::uint64_t passed_locked(StreamId stream, bool record = true) noexcept
      WEIR_REQUIRES(mutex_);
  [[nodiscard]] Clock::time_point shortened(Point point, Clock::time_point from,
                                            Clock::time_point until) const;

  const Driver& driver_;
  const CUcontext context_;
  const StreamId sync_ = StreamId::next();
  const StreamId everything_ = StreamId::next();
  const StreamId parked_ = StreamId::next();

  mutable Mutex mutex_{LockRank::kStream};
  FollowedStreams streams_ WEIR_GUARDED_BY(mutex_){everything_, parked_};
  ContextCaptures captures_ WEIR_GUARDED_BY(mutex_){driver_, streams_};
  FenceRecorder recorder_ WEIR_GUARDED_BY(mutex_){driver_, streams_, captures_};
  static constexpr std::chrono::milliseconds kShortWait{20};
  static constexpr int kMostHalvings = 8;
  int ran_out_ WEIR_GUARDED_BY(mutex_) = 0;  ///< waits that did, since one was over
  Point stuck_ WEIR_GUARDED_BY(mutex_);      ///< of the last of them
};

}  // namespace weir::preload
