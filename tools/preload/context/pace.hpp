#pragma once

// Decides whether a launch is held back. Pure.

#include <chrono>

#include "allocator/pressure.hpp"
#include "scheduler/admission/policy.hpp"

namespace weir::preload {

enum class Pace : std::uint8_t {
  kGo,
  kWaitHard,  ///< almost no room is left, and queued work would free some
  kWaitSoft,  ///< enough device time is queued, and it holds memory
};

struct Queue {
  Bytes held;      ///< allocated, or waiting for a fence
  Bytes awaiting;  ///< part of it that waits for a fence: waiting can release it
  Bytes budget;
  std::chrono::nanoseconds behind{};  ///< since the fence that releases its oldest part
};

/// Whether the memory that awaits the device is worth waiting for: over a sixty-fourth of the
/// budget.
[[nodiscard]] constexpr bool holds_much(Bytes awaiting, Bytes budget) noexcept {
  return awaiting.count > budget.count / 64;
}

/// The run-ahead `auto` of launches: without batches there is nothing that it could adapt to.
inline constexpr std::chrono::nanoseconds kAutoRunAhead = std::chrono::milliseconds(20);

/// Waits only for work that holds more than a sixty-fourth of the budget. A run-ahead in batches
/// does not apply to launches, so it sets no soft limit.
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
  const auto time = run_ahead.time.value_or(kAutoRunAhead);
  const bool soft = run_ahead.batches && time.count() > 0;
  return soft && queue.behind > time ? Pace::kWaitSoft : Pace::kGo;
}

}  // namespace weir::preload
