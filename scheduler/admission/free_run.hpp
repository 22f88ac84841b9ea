#pragma once

// What holding batches back has cost: how much later the device finished than it would have under
// free run-ahead. Exact for programs whose streams run in order and whose batches wait for nothing
// but their own earlier streams; no attribution of single gaps.
//
// The device is replayed batch by batch as if nobody had ever been held back. The host would have
// enqueued each batch earlier by all stalls before it (its `credit`), and each stream would have
// begun it once the stream was free, the batch enqueued, and the batch's earlier streams done. Only
// the difference to what really happened is kept for each stream, its *slip*:
//
//   slip' = min(slip + idle, credit, waited + slip of the stream that it waited for)
//
// where `idle` is how long the stream had nothing to run before, and `waited` how long its work
// stood ready. The time lost is how much later the last stream really ended than the last one of
// the replay. A stream that is idle while another one is the bottleneck slips and loses nothing.
//
// A data structure only; the user holds the lock.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include "scheduler/device/stream.hpp"
#include "scheduler/ledger/batch_run.hpp"

namespace weir {

class FreeRun {
 public:
  using Duration = std::chrono::nanoseconds;

  /// Call at each admission with how long the run-ahead target alone held the batch back. Returns
  /// the sum so far, the batch's credit.
  Duration note_held_back(Duration stall) noexcept { return credit_ += stall; }
  /// Call after a frontend itself has waited for the device, or for memory: a free run would have
  /// waited there too, until the same moment less `behind`.
  void note_synchronized() noexcept { credit_ = std::min(credit_, behind_); }
  /// Call once for each settled batch, in closing order. Returns the time newly lost.
  Duration note_settled(const BatchRun& run, Duration credit) noexcept;

  /// Returns the most that the device was ever behind a free run.
  [[nodiscard]] Duration lost() const noexcept { return lost_; }
  /// Returns how far it is behind now: a free run may have idled since.
  [[nodiscard]] Duration behind() const noexcept { return behind_; }

 private:
  std::array<Duration, kStreamRoles> slip_{};
  std::array<Duration, kStreamRoles> ended_{};  ///< of what has settled
  Duration credit_{};
  Duration behind_{};
  Duration lost_{};
};

}  // namespace weir
