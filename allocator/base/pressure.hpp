#pragma once

/// @file
/// How close a pool is to its budget. The level is a pure function of held bytes, budget and the
/// level before. Hysteresis keeps it from flapping.
///
/// Users read the pressure (Pool::pressure, MemoryStatistics); the pool notifies nobody. A batch
/// fits by its bytes, and most frees that make room leave the level unchanged
/// (PoolPressure.MostFreesThatMakeRoomLeaveTheLevel). Passed memory becomes free only when somebody
/// polls, so a waiter must poll anyway. Admission reads the pressure once per decision (bench/run
/// admission) and decides on nothing else of the pool.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/base/names.hpp"

namespace weir {

/// What a pool asks of its users.
enum class PressureLevel : std::uint8_t {
  kNone,  ///< nothing
  kSoft,  ///< past the soft limit: slow down
  kHard,  ///< past the hard limit: stop
};

/// One word each.
[[nodiscard]] constexpr auto names_of(PressureLevel /*of*/) noexcept {
  return name_table("none", "soft", "hard");
}
/// The number of levels.
inline constexpr std::size_t kPressureLevels = names_of(PressureLevel{}).size();

/// A pool's level and its causes, at one moment.
struct Pressure {
  PressureLevel level = PressureLevel::kNone;  ///< as of the last change of the pool
  Bytes held;                                  ///< allocated + awaiting
  Bytes budget;                                ///< the hard limit
  Bytes awaiting{};          ///< the held bytes that are freed but not known to be passed
  Bytes cached{};            ///< free, and not returned to the upstream
  std::uint64_t number = 0;  ///< grows with each change of the pool
};

/// Percent of the budget at which a level is entered and left.
struct PressureLimits {
  unsigned soft_enter = 75;  ///< percent, at or above
  unsigned soft_leave = 65;  ///< percent, below
  unsigned hard_enter = 95;  ///< percent, at or above
  unsigned hard_leave = 85;  ///< percent, below
};

/// Returns the smallest size of at least one byte that is `percent` of `budget`: held × 100 >=
/// budget × percent. Computed in parts, since products could overflow.
[[nodiscard]] constexpr Bytes part_of_budget(Bytes budget, unsigned percent) noexcept {
  const std::uint64_t part =
      budget.count / 100 * percent + (budget.count % 100 * percent + 99) / 100;
  return {part == 0 ? 1 : part};
}

/// Returns the level at `held` of `budget`, after the level `before`. Pure. Zero held bytes are
/// never pressure.
[[nodiscard]] constexpr PressureLevel pressure_level(Bytes held, Bytes budget, PressureLevel before,
                                                     PressureLimits limits = {}) noexcept {
  const auto at_least = [&](unsigned percent) { return held >= part_of_budget(budget, percent); };
  const bool was_hard = before == PressureLevel::kHard;
  if (at_least(was_hard ? limits.hard_leave : limits.hard_enter)) return PressureLevel::kHard;
  const bool was_soft = before != PressureLevel::kNone;
  if (at_least(was_soft ? limits.soft_leave : limits.soft_enter)) return PressureLevel::kSoft;
  return PressureLevel::kNone;
}

/// The held bytes for which a pool keeps its level.
struct SteadyRange {
  Bytes from;   ///< inclusive
  Bytes below;  ///< exclusive

  /// Returns whether `held` is in the range.
  [[nodiscard]] constexpr bool contains(Bytes held) const noexcept {
    return from <= held && held < below;
  }
};

/// Returns the range of `held` for which pressure_level(held, budget, level) is `level`, except the
/// largest number. So most changes of a pool cost two comparisons.
[[nodiscard]] constexpr SteadyRange steady_range(Bytes budget, PressureLevel level,
                                                 PressureLimits limits = {}) noexcept {
  const Bytes hard_enter = part_of_budget(budget, limits.hard_enter);
  switch (level) {
    case PressureLevel::kNone:
      return {{}, std::min(part_of_budget(budget, limits.soft_enter), hard_enter)};
    case PressureLevel::kSoft:
      return {part_of_budget(budget, limits.soft_leave), hard_enter};
    case PressureLevel::kHard:
      break;
  }
  return {part_of_budget(budget, limits.hard_leave), {std::numeric_limits<std::uint64_t>::max()}};
}

/// Whether the memory that awaits the device is worth waiting for: over a sixty-fourth of the
/// budget.
[[nodiscard]] constexpr bool holds_much(Bytes awaiting, Bytes budget) noexcept {
  return awaiting.count > budget.count / 64;
}

/// The time spent at each level, in the order of PressureLevel.
using PressureTimes = std::array<std::chrono::nanoseconds, kPressureLevels>;

/// Returns the time at `level`.
[[nodiscard]] constexpr std::chrono::nanoseconds time_at(const PressureTimes& times,
                                                         PressureLevel level) noexcept {
  return times[static_cast<std::size_t>(level)];
}

/// Raises each of `times` to at least that of `least`.
constexpr void raise_each(PressureTimes& times, const PressureTimes& least) noexcept {
  for (std::size_t i = 0; i < kPressureLevels; ++i) times[i] = std::max(times[i], least[i]);
}

/// The level of held bytes that change, and how long each level has lasted. Not thread-safe.
class PressureGauge {
 public:
  using Clock = std::chrono::steady_clock;  ///< of the times

  /// Begins with nothing held.
  explicit PressureGauge(Bytes budget, Clock::time_point now = Clock::now()) noexcept
      : budget_(budget), steady_(steady_range(budget, level_)), since_(now) {}

  /// Returns the level as of the last call of follow().
  [[nodiscard]] PressureLevel level() const noexcept { return level_; }
  /// The held bytes for which follow() changes nothing.
  [[nodiscard]] const SteadyRange& steady() const noexcept { return steady_; }
  /// The next call of follow() takes the level on.
  void set_budget(Bytes budget) noexcept {
    budget_ = budget;
    steady_ = steady_range(budget, level_);
  }
  /// Returns whether the level has changed.
  bool follow(Bytes held, Clock::time_point now = Clock::now()) noexcept {
    const PressureLevel next = pressure_level(held, budget_, level_);
    if (next == level_) return false;
    times_ = times(now);
    since_ = now;
    level_ = next;
    steady_ = steady_range(budget_, level_);
    return true;
  }
  /// Returns the times until `now`, which is not before the last call.
  [[nodiscard]] PressureTimes times(Clock::time_point now) const noexcept {
    PressureTimes all = times_;
    all.at(static_cast<std::size_t>(level_)) += now - since_;
    return all;
  }

 private:
  Bytes budget_;
  PressureLevel level_ = PressureLevel::kNone;
  SteadyRange steady_;
  Clock::time_point since_;  ///< of the level
  PressureTimes times_{};    ///< until then
};

}  // namespace weir
