#pragma once

// Holds launches back that belong to no marked batch.

#include <chrono>
#include <cstdint>
#include <optional>

#include "allocator/base/pressure.hpp"
#include "scheduler/admission/policy.hpp"
#include "tools/preload/context/pools.hpp"
#include "tools/preload/driver/call.hpp"

namespace weir::preload {

enum class Pace : std::uint8_t {
  kGo,
  kWaitHard,  ///< almost no room is left, and queued work would free some
  kWaitSoft,  ///< enough device time is queued, and it holds memory
};

/// The run-ahead `auto` of launches: without batches there is nothing that it could adapt to.
inline constexpr std::chrono::nanoseconds kAutoRunAhead = std::chrono::milliseconds(20);

/// Returns whether a launch waits if the fence that releases the oldest awaiting memory is `behind`
/// old. Waits only for work that holds more than a sixty-fourth of the budget, and at the hard
/// limit only if that work can end the level: not until it has, which could drain the device. A
/// run-ahead in batches does not apply to launches, so it sets no soft limit.
[[nodiscard]] constexpr Pace pace(const Pressure& pressure, std::chrono::nanoseconds behind,
                                  Policy policy, const RunAhead& run_ahead) noexcept {
  if (policy != Policy::kThrottled || !holds_much(pressure.awaiting, pressure.budget)) {
    return Pace::kGo;
  }
  constexpr PressureLimits kLimits;
  const Bytes live = minus_or_zero(pressure.held, pressure.awaiting);
  if (pressure.held >= part_of_budget(pressure.budget, kLimits.hard_enter) &&
      live < part_of_budget(pressure.budget, kLimits.hard_leave)) {
    return Pace::kWaitHard;
  }
  const auto time = run_ahead.time.value_or(kAutoRunAhead);
  const bool soft = run_ahead.batches && time.count() > 0;
  return soft && behind > time ? Pace::kWaitSoft : Pace::kGo;
}

/// Applies `pace` to the launches of one context. Thread-safe.
class Pacer {
 public:
  Pacer(Pools& pools, Fences& fences, const Settings& settings);

  /// Call after a launch. Waits while `pace` says so, but not again for a wait that ran out.
  void hold_back(Call& call);
  /// Returns the launches that it held back.
  [[nodiscard]] Waits waits() const;

 private:
  void give_up(Point point);

  Pools& pools_;
  Fences& fences_;
  const Settings& settings_;
  mutable Mutex mutex_{LockRank::kLeaf};
  Waits waits_ WEIR_GUARDED_BY(mutex_);
  /// The point of a wait that ran out; no thread is paced for it again.
  std::optional<Point> given_up_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t give_ups_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::preload
