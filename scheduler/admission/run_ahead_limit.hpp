#pragma once

// How far the frontend may run ahead: a limit on the device time queued behind the running batch,
// as Linux's dynamic queue limits (T. Herbert 2011): it grows at once where it cost time, and falls
// slowly by what was not used. No clock, no lock, no thread.
//
// - It begins with half a second, at most 192 batches, and lets batches hold half of the room
//   beside live memory. While the time of no batch is known, with four batches. A lower beginning
//   costs the first bursts; see docs/throttling.md for figures.
// - Three things show how long a queue was *needed*; the longest is kept, and fades by a 32nd in
//   each window of 96 batches. A queue that falls while nobody is held back, a *drain*: the host
//   was late by so much. The time lost (FreeRun) beside the limit under which a batch was last held
//   back: so much longer it should have been. And how far the two compute streams drift apart and
//   together again, since work that waits for both needs a queue between them: the smaller one of
//   the two sums of their differences, which begin anew below zero. One of them stays zero where a
//   stream is always the slower one.
// - The limit *keeps* two and a half times what was needed, less what may be lost. Where time is
//   lost, it grows to that at once, by at most 32 times what was lost. Half of the room is enough
//   until then, and all of it afterwards.
// - After a window in which a batch was held back it falls to the window's longest queue, and by
//   half of what it has above what it keeps; by all of it after a second such window in a row that
//   needed no more than was left of what was known. A host that is never held back fills no memory,
//   so the limit stays for its next burst.
// - Of each 256 ns that the device runs, 1 ns may be lost before it grows: a longer queue holds
//   memory all the time, which a rare hiccup is not worth. Unused, it adds up to the time of 16
//   average batches. More than that is owed, and until it is made up for, the limit does not fall.
//   Half a second at most is owed: no queue is kept for a pause that is longer.
//
// A data structure only; the user holds the lock.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "scheduler/admission/free_run.hpp"
#include "scheduler/admission/policy.hpp"

namespace weir {

/// How the run-ahead limit moved, in device time queued behind the running batch.
struct RunAheadStatistics {
  std::chrono::nanoseconds target{};  ///< now; zero while it is a number of batches
  std::chrono::nanoseconds most{};    ///< the largest so far
  /// How much later the device finished than under free run-ahead; see FreeRun.
  std::chrono::nanoseconds caused_idle{};
};

class RunAheadLimit {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr std::uint64_t kFirstBatches = 192;  ///< the first window has as many, or 96
  static constexpr Duration kFirstTime = std::chrono::milliseconds(500);  ///< and the most owed
  static constexpr std::uint64_t kUnknownBatches = 4;
  static constexpr std::uint64_t kWindow = 96;
  static constexpr int kGrowth = 32;     ///< times the time lost, at most
  static constexpr int kLostPart = 256;  ///< of the device time, may be lost
  static constexpr int kMostLostBatches = 16;
  static constexpr int kFadePart = 32;  ///< of what was needed, is forgotten

  /// `chosen` is the target itself unless it adapts. `first`: it begins with so many batches, at
  /// least two.
  explicit RunAheadLimit(const RunAhead& chosen = {}, std::uint64_t first = kFirstBatches) noexcept
      : chosen_(chosen), first_(first) {}

  /// Returns the target if the longest copies of a waiting batch take `copy`: the queue has to hide
  /// them when its turn comes.
  [[nodiscard]] RunAheadTarget target(Duration copy = {}) const noexcept {
    if (!adapts(chosen_)) return {.limit = chosen_};
    RunAheadTarget target{.limit = {.batches = chosen_.batches, .time = limit_ + copy},
                          .half_of_room = !has_grown_};
    if (is_first_) {
      target.limit.time = kFirstTime + copy;
      target.most = average_.count() == 0 ? std::min(first_, kUnknownBatches) : first_;
    }
    return target;
  }
  /// Returns its time as statistics show it.
  [[nodiscard]] RunAheadStatistics statistics(Duration lost) const noexcept {
    if (adapts(chosen_)) return {.target = limit_, .most = most_, .caused_idle = lost};
    const auto time = chosen_.time.value_or(Duration{});
    return {.target = time, .most = time, .caused_idle = lost};
  }

  // `queue`: of the fullest of the batch's streams, with the batch itself.

  /// Call when the target has held a batch back until now.
  void note_held_back(const StreamQueue& queue) noexcept {
    held_at_ = limit_;
    lost_since_ = {};
    note_full(queue);
  }
  /// Call when memory, or another batch, has.
  void note_full(const StreamQueue& queue) noexcept {
    window_.held_back = true;
    full_ = {};  // they fell because nobody was admitted
    full_.at(queue.role) = queue;
  }
  /// Call when the frontend itself has let the queues run empty.
  void note_drained() noexcept { full_ = {}; }
  /// Call when a batch is closed.
  void note_closed(const StreamQueue& queue) noexcept;
  /// Call once for each settled batch, before note_settled.
  void note_ran(const BatchRun& run) noexcept;
  /// Call once for each settled batch, with its time on its busiest stream and what is newly lost.
  void note_settled(Duration device_time, Duration lost) noexcept;

 private:
  struct Window {
    std::uint64_t batches = 0;  ///< settled
    Duration most{};            ///< the longest queue
    bool held_back = false;
    bool needed_more = false;  ///< than was known
  };

  void need(Duration time) noexcept {
    if (time <= needed_) return;
    needed_ = time;
    window_.needed_more = true;
  }
  [[nodiscard]] Duration kept() const noexcept { return needed_ * 5 / 2; }
  void end_first() noexcept;
  void grow(Duration lost) noexcept;
  void fall() noexcept;

  const RunAhead chosen_;
  const std::uint64_t first_;
  bool is_first_ = true;    ///< the first window has not ended
  bool has_grown_ = false;  ///< time was lost
  Duration limit_{};
  Duration most_{};
  Duration average_{};                            ///< device time of a batch, moving
  Duration may_lose_{};                           ///< before it grows; below zero: owed
  std::array<StreamQueue, kStreamRoles> full_{};  ///< longest since they fell for another reason
  std::array<Duration, 2> apart_{};  ///< how much longer one compute stream ran, and the other
  Duration needed_{};                ///< the longest, fading
  Duration held_at_{};               ///< the limit when a batch was last held back
  Duration lost_since_{};
  bool is_calm_ = false;  ///< the last window needed no more than was known
  Window window_;
};

}  // namespace weir
