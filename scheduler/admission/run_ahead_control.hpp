#pragma once

// How far the frontend may run ahead: a state machine over times, without a clock, a lock or a
// thread. docs/throttling.md explains it.
//
// The target is `lead + copy + margin`, in device time queued behind the running batch.
//
// - The lead is what it takes the host to deliver a batch after we let it go: the 95th percentile
//   of the last 64 batches that were held back. A host that is never held back adds no sample, so a
//   slow host never raises it.
// - The copy is the longest that the copies of a waiting batch are expected to take: the queue has
//   to hide them when its turn comes.
// - The margin grows by idle time of the device that we caused. We caused an idle gap only as far
//   as we had held the host back before: each soft stall gives credit, and each gap uses it up. So
//   the sum of what we caused is the time lost against a frontend that nobody holds back.
//   A batch that had to wait for memory would have had its gap anyway, and a frontend that nobody
//   had held back would have waited there too. So a wait for memory uses up its frontend's credit.
//   If such gaps counted, a full budget would raise the margin, which fills the budget even more.
// - Of each 512 ns that the device runs, we may make it idle for 1 ns before the margin grows. A
//   longer queue holds memory all the time, which a rare hiccup is not worth. What is not used is
//   kept, up to the time of four average batches.
// - A window ends after 256 batches and 100 margins of device time. The margin then falls by half
//   of itself, or of the least queue that was left unused in the window if that is less. If the
//   fall was a mistake, the next gap costs at most what the margin fell by: 0.5% of the window.
// - If no batch was held back in a window, the lead falls as the margin does. A lead that is longer
//   than the budget can queue holds nobody back. So it gets no new samples, and would stay for
//   ever.
//
// A data structure only; the user holds the lock.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "scheduler/admission/policy.hpp"

namespace weir {

/// How the run-ahead target moved, in device time queued behind the running batch.
struct RunAheadStatistics {
  std::chrono::nanoseconds target{};  ///< now; the one that was chosen if it does not adapt
  std::chrono::nanoseconds most{};    ///< the largest so far
  // The parts of a target that adapts; see RunAheadControl:
  std::chrono::nanoseconds lead{};
  std::chrono::nanoseconds copy{};  ///< at the last admission
  std::chrono::nanoseconds margin{};
  std::chrono::nanoseconds caused_idle{};  ///< throttle-caused idle
};

/// What the device and we know of a batch that has settled.
struct RunBatch {
  std::chrono::nanoseconds device_time{};  ///< on its busiest stream
  std::chrono::nanoseconds gap{};          ///< that this stream was idle before the batch
  std::chrono::nanoseconds credit{};       ///< RunAheadControl::note_held_back at its admission
  bool waited_for_memory = false;          ///< then its gap is the budget's, and not ours
};

class RunAheadControl {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr std::size_t kLeads = 64;
  static constexpr std::uint64_t kWindowBatches = 256;
  static constexpr int kWindowMargins = 100;
  static constexpr int kIdlePart = 512;  ///< of the device time, may be idle because of us
  static constexpr int kMostIdleBatches = 4;
  static constexpr int kMostCarried = 8;  ///< batches, see could_end_earlier

  /// `chosen` is the target itself unless it adapts.
  explicit RunAheadControl(const RunAhead& chosen = {}) noexcept : chosen_(chosen) {}

  /// Returns the target if the longest copies of a waiting batch take `copy`. It has a time.
  [[nodiscard]] RunAhead target(Duration copy = {}) const noexcept;

  /// Call at each admission with how long the run-ahead target alone held the batch back, and with
  /// the longest copies of a waiting batch. Returns the sum of stalls so far, for RunBatch::credit.
  Duration note_held_back(Duration stall, Duration copy = {}) noexcept;
  /// Adds a sample: from the end of what a held-back batch waited for until it was closed.
  void note_lead(Duration lead) noexcept;
  /// Call when a batch is closed, with the device time that was queued behind the running batch
  /// before it, less what its own copies take.
  void note_unused(Duration queued) noexcept;
  /// Call once for each settled batch.
  void note_settled(const RunBatch& batch) noexcept;
  /// Call after a frontend itself has waited for the device, or for memory. Without us it would
  /// have waited there too, until the same moment. So the `stalls` that it has had since it last
  /// waited cost nothing.
  void note_synchronized(Duration stalls) noexcept { used_ = std::min(used_ + stalls, held_back_); }

  /// Returns how much earlier a stream's task could have ended if nobody had been held back. Call
  /// once for each task of a stream that others wait for, before note_settled for its batch.
  ///
  /// `earlier` is the stream's, zero at first, and holds that time together with what is used up of
  /// the stalls. `starved`: TaskTime::starved of the task. Each such pause could have been left
  /// out, but no task could be enqueued earlier than by its batch's `credit`. Copies that run
  /// without a pause could not have ended earlier, however long their batches were held back.
  /// Earlier pauses count up to the time of kMostCarried average batches: with all of them the
  /// target would grow for long once the copies take longer than the computes.
  [[nodiscard]] Duration could_end_earlier(Duration& earlier, Duration starved,
                                           Duration credit) const noexcept {
    const Duration carried = std::clamp(earlier, used_, used_ + average_ * kMostCarried);
    earlier = std::min(carried + starved, credit);
    return std::max(earlier - used_, Duration{});
  }

  [[nodiscard]] RunAheadStatistics statistics() const noexcept;

 private:
  void note_most() noexcept;
  /// Returns the part of the idle time that the margin does not have to grow by.
  [[nodiscard]] Duration take_allowed(Duration caused) noexcept;
  /// Returns the part of the target that falls at the end of this window.
  [[nodiscard]] Duration falling() const noexcept;

  const RunAhead chosen_;
  std::array<Duration, kLeads> leads_{};
  std::size_t lead_count_ = 0;  ///< samples since it last fell without any
  Duration lead_{};
  Duration copy_{};  ///< at the last admission
  Duration margin_{};
  Duration held_back_{};  ///< sum of soft stalls
  Duration used_{};       ///< of held_back_
  Duration caused_idle_{};
  Duration average_{};  ///< device time of a batch, moving
  Duration allowed_{};  ///< idle time that may be caused before the margin grows
  Duration most_{};

  struct Window {
    std::uint64_t batches = 0;  ///< settled
    Duration device_time{};
    Duration least_unused = Duration::max();
    bool has_leads = false;  ///< a batch was held back
  };
  Window window_;
};

}  // namespace weir
