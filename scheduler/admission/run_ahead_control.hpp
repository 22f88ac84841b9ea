#pragma once

// How far the frontend may run ahead: a state machine over times, without a clock, a lock or a
// thread. docs/throttling.md explains it.
//
// The target is `lead + margin`, in device time queued behind the running batch.
//
// - The lead is what it takes to deliver a batch after we let it go: the 95th percentile of the
//   last 64 batches that were held back. A host that is never held back adds no sample, so a slow
//   host never raises it.
// - The margin grows by idle time of the device that we caused. We caused an idle gap only as far
//   as we had held the host back before: each soft stall gives credit, and each gap uses it up. So
//   the sum of what the margin grew by is the time lost against a frontend that nobody holds back.
//   A batch that had to wait for memory would have had its gap anyway. If such gaps counted, a full
//   budget would raise the margin, which fills the budget even more.
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
  std::chrono::nanoseconds target{};       ///< now; the one that was chosen if it does not adapt
  std::chrono::nanoseconds most{};         ///< the largest so far
  std::chrono::nanoseconds lead{};         ///< part of an adapting target; see RunAheadControl
  std::chrono::nanoseconds margin{};       ///< its other part
  std::chrono::nanoseconds caused_idle{};  ///< throttle-caused idle: what the margin grew by
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

  /// `chosen` is the target itself unless it adapts.
  explicit RunAheadControl(const RunAhead& chosen = {}) noexcept : chosen_(chosen) {}

  /// Returns the target in force, with a time.
  [[nodiscard]] RunAhead target() const noexcept;

  /// Call at each admission with how long the run-ahead target alone held the batch back. Returns
  /// the sum so far, for RunBatch::credit.
  Duration note_held_back(Duration stall) noexcept { return held_back_ += stall; }
  /// Adds a sample: from the end of what a held-back batch waited for until the device could begin
  /// it.
  void note_lead(Duration lead) noexcept;
  /// Call when a batch is closed, with the device time that was queued behind the running batch
  /// before it.
  void note_unused(Duration queued) noexcept;
  /// Call once for each settled batch.
  void note_settled(const RunBatch& batch) noexcept;
  /// Call after a frontend itself has waited for the device. Without us it would have waited there
  /// too, so the `stalls` that it has had since it last waited cost nothing.
  void note_synchronized(Duration stalls) noexcept { used_ = std::min(used_ + stalls, held_back_); }
  /// Call if a batch was abandoned that had waited for memory. The device has no gap for it, but
  /// the queue ran down meanwhile. A frontend that nobody held back would have waited there too, so
  /// the stalls up to the batch's `credit` cost nothing.
  void note_abandoned(Duration credit) noexcept { used_ = std::max(used_, credit); }

  [[nodiscard]] RunAheadStatistics statistics() const noexcept;

 private:
  void note_most() noexcept;
  /// Returns the part of the target that falls at the end of this window.
  [[nodiscard]] Duration falling() const noexcept;

  const RunAhead chosen_;
  std::array<Duration, kLeads> leads_{};
  std::size_t lead_count_ = 0;  ///< samples since it last fell without any
  Duration lead_{};
  Duration margin_{};
  Duration held_back_{};  ///< sum of soft stalls
  Duration used_{};       ///< of held_back_
  Duration caused_idle_{};
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
