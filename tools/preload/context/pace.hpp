#pragma once

// Whether a launch is held back: values in, decision out.

#include <chrono>

#include "allocator/pressure.hpp"
#include "scheduler/admission/policy.hpp"

namespace weir::preload {

enum class Pace : std::uint8_t {
  kGo,
  kWaitHard,  ///< hardly any room is left, and what queued work holds would make some
  kWaitSoft,  ///< enough device time is queued, and it holds memory
};

struct Queue {
  Bytes held;      ///< handed out, or waiting for a fence
  Bytes awaiting;  ///< of it, waiting for a fence: what waiting can release
  Bytes budget;
  std::chrono::nanoseconds behind{};  ///< since the fence that releases the oldest of it
};

/// Whether what waits for the device is more than can be left waiting without a thought: more than
/// a sixty-fourth of the budget.
[[nodiscard]] constexpr bool holds_much(Bytes awaiting, Bytes budget) noexcept {
  return awaiting.count > budget.count / 64;
}

/// Only work that holds memory is worth waiting for, and not for a sixty-fourth of the budget. A
/// run-ahead in batches says nothing about launches, so it leaves them without a soft limit.
[[nodiscard]] constexpr Pace pace(const Queue& queue, Policy policy,
                                  const RunAhead& run_ahead) noexcept {
  if (policy != Policy::kThrottled || !holds_much(queue.awaiting, queue.budget)) {
    return Pace::kGo;
  }
  const auto level = [&](Bytes held, PressureLevel before) {
    return pressure_level(held, queue.budget, before);
  };
  const Bytes live = minus_or_zero(queue.held, queue.awaiting);
  if (level(queue.held, PressureLevel::kNone) == PressureLevel::kHard &&
      level(live, PressureLevel::kHard) != PressureLevel::kHard) {
    return Pace::kWaitHard;
  }
  const bool soft = run_ahead.batches && run_ahead.time.count() > 0;
  return soft && queue.behind > run_ahead.time ? Pace::kWaitSoft : Pace::kGo;
}

}  // namespace weir::preload
