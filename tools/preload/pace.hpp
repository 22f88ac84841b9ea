#pragma once

// Whether a launch is held back: values in, decision out.

#include <chrono>

#include "allocator/pressure.hpp"
#include "scheduler/policy.hpp"

namespace weir::preload {

enum class Pace : std::uint8_t {
  kGo,
  kWaitHard,  ///< hardly any room is left, and queued work holds memory
  kWaitSoft,  ///< enough device time is queued, and it holds memory
};

struct Queue {
  bool awaiting = false;  ///< whether memory waits for a fence: what waiting can release
  PressureLevel pressure = PressureLevel::kNone;
  std::chrono::nanoseconds behind{};  ///< since the fence that releases the oldest of it
};

/// Only work that holds memory is worth waiting for. A run-ahead in batches says nothing about
/// launches, so it leaves them without a soft limit.
[[nodiscard]] constexpr Pace pace(const Queue& queue, Policy policy,
                                  const RunAhead& run_ahead) noexcept {
  if (policy != Policy::kThrottled || !queue.awaiting) return Pace::kGo;
  if (queue.pressure == PressureLevel::kHard) return Pace::kWaitHard;
  const bool soft = run_ahead.batches && run_ahead.time.count() > 0;
  return soft && queue.behind > run_ahead.time ? Pace::kWaitSoft : Pace::kGo;
}

}  // namespace weir::preload
