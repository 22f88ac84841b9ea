#pragma once

// Records the fences of one context and asks the device for them.

#include <vector>

#include "scheduler/ledger/ticket.hpp"
#include "tools/preload/context/context_captures.hpp"
#include "tools/preload/context/fence_due.hpp"
#include "tools/preload/context/followed_streams.hpp"

namespace weir::preload {

/// A fence records its events on the streams themselves. It records one on the legacy stream only
/// if some streams have no name here (fence_due.hpp), since that event makes blocking streams
/// wait for each other.
///
/// The context is current in each call that asks or tells the driver. Not thread-safe.
class FenceRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  FenceRecorder(const Driver& driver, FollowedStreams& streams, ContextCaptures& captures) noexcept
      : driver_(driver), streams_(streams), captures_(captures), events_({driver}) {}

  /// Returns whether neither the context nor the device is lost.
  [[nodiscard]] bool works() const noexcept { return !streams_.ended() && !lost_; }
  /// Returns whether it works and no capture forbids that the device is asked.
  [[nodiscard]] bool can_ask() const { return !captures_.forbid_asking() && works(); }

  /// Records the next fence. Returns an error if that is not possible now.
  CUresult record(FollowedStream& stream) noexcept;
  /// Takes passed fences from the stream's queue.
  void sweep(FollowedStream& stream) noexcept;
  /// Ends the points of a captured stream that is gone. It was fenced before its capture and did
  /// nothing since, so they pass with that fence.
  void end_captured(FollowedStream& gone) noexcept;
  /// Forgets gone streams whose work is passed, once there are many.
  void forget_gone() noexcept;
  /// Call when the context is gone.
  void end() noexcept {
    measures_.clear();
    carrier_ = nullptr;
    adopted_ = false;
  }

  // See Fences for these.
  void make_wait(const FollowedStream& waiter, Point point);
  [[nodiscard]] bool finish_parked(Point last);
  void measure(Ticket& batch, Clock::time_point since);
  [[nodiscard]] std::vector<CUevent> events_of(FollowedStream& stream);
  void adopt(const std::vector<CUevent>& events, bool alive);  ///< only destroys if not `alive`

 private:
  struct EventFunctions {
    using Event = CUevent;
    using Stream = CUstream;
    using Code = CUresult;
    const Driver& driver;
    Code create(Event& event) const noexcept {
      return driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    }
    Code record(Event event, Stream to) const noexcept { return driver.cuEventRecord(event, to); }
    Code query(Event event) const noexcept { return driver.cuEventQuery(event); }
    Code destroy(Event event) const noexcept { return driver.cuEventDestroy_v2(event); }
  };
  struct Measure {
    Ticket* batch;
    Clock::time_point since;
    std::uint64_t sequence;  ///< of the fence on everything that ends the measure
  };
  /// Which streams a fence covers.
  enum class Reach : std::uint8_t {
    kBlocking,  ///< blocking streams and the legacy stream
    kAll,
    kNext,  ///< all, except what the previous fence on everything covers
  };

  void record_or_throw(FollowedStream& stream);
  /// `all` says what everything means here: kAll or kNext.
  void cover(Fence& fence, FollowedStream& stream, Reach all);
  void cover_streams(Fence& fence, Reach reach);
  void cover_captured(Fence& fence, FollowedStream& stream, Reach reach);
  void cover_removed(Fence& fence, FollowedStream& stream, Reach reach, BlockingStreams& blocking);
  /// Adds one event behind all of `fence`'s points of gone streams.
  void carry_others(Fence& fence);
  void record_event(Fence& fence, CUstream stream);
  /// Returns a stream of ours, for waits that no program's stream should do.
  [[nodiscard]] CUstream carrier();
  /// Throws if the stream is captured: calls for it would break the capture.
  void expect_not_captured(CUstream stream) const;
  /// Returns whether an idle stream may be behind work of others.
  [[nodiscard]] bool is_behind_others(FollowedStream& stream);
  /// Returns true if the stream has work or is captured. A query would break a capture.
  [[nodiscard]] bool busy(CUstream stream) const;
  [[nodiscard]] bool is_blocking(FollowedStream& stream) const;
  [[nodiscard]] bool is_passed(Fence& fence) noexcept;
  void tell_measures(std::uint64_t sequence, Clock::time_point now) noexcept;

  const Driver& driver_;
  FollowedStreams& streams_;
  ContextCaptures& captures_;
  EventStore<EventFunctions> events_;
  FenceQueue<Fence>::Fences spare_;  ///< passed, for reuse
  CUstream carrier_ = nullptr;       ///< made when first needed
  bool adopted_ = false;             ///< `carrier_` waits for adopted events
  std::vector<Measure> measures_;
  Clock::time_point everything_passed_;
  /// Threads that had ended when the last passed fence on everything was recorded.
  std::uint64_t threads_ended_ = 0;
  bool lost_ = false;  ///< the device failed: nothing passes any more
};

}  // namespace weir::preload
