#pragma once

/// @file
/// How close a pool is to its budget. The level is a pure function of what is held, the budget and
/// the level before, with hysteresis so that one block more or less does not make it flap.
///
/// Whoever needs the pressure reads it (Pool::pressure, MemoryStatistics): the pool calls nobody. A
/// batch fits or does not by its bytes, and most frees that make room for one leave the level as it
/// is: PoolPressure.MostFreesThatMakeRoomLeaveTheLevel counts them. And memory that the device has
/// passed comes free only when somebody polls the pool, so a waiter has to look in any case.
/// Admission reads the pressure once for each decision (bench/run admission).

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "allocator/base/bytes.hpp"

namespace weir {

/// What a pool asks of those who use it.
enum class PressureLevel : std::uint8_t {
  kNone,  ///< nothing
  kSoft,  ///< past the soft limit: slow down
  kHard,  ///< past the hard limit: stop
};

/// A pool's level and what it follows from, of one moment.
struct Pressure {
  PressureLevel level = PressureLevel::kNone;  ///< as of the last change of the pool
  Bytes held;                                  ///< allocated + awaiting
  Bytes budget;                                ///< the hard limit
  Bytes awaiting{};  ///< of what is held: freed, and the device not known to be done
};

/// Percent of the budget at which a level is entered, and below which it is left again.
struct PressureLimits {
  unsigned soft_enter = 75;  ///< percent, at or above
  unsigned soft_leave = 65;  ///< percent, below
  unsigned hard_enter = 95;  ///< percent, at or above
  unsigned hard_leave = 85;  ///< percent, below
};

/// The least that is `percent` of `budget`, and at least a byte: held × 100 >= budget × percent, in
/// parts, since the products could overflow.
[[nodiscard]] constexpr Bytes part_of_budget(Bytes budget, unsigned percent) noexcept {
  const std::uint64_t part =
      budget.count / 100 * percent + (budget.count % 100 * percent + 99) / 100;
  return {part == 0 ? 1 : part};
}

/// The level of a pool that holds `held` of `budget` and was at level `before`. Pure; holding
/// nothing is never pressure.
[[nodiscard]] constexpr PressureLevel pressure_level(Bytes held, Bytes budget, PressureLevel before,
                                                     PressureLimits limits = {}) noexcept {
  const auto at_least = [&](unsigned percent) { return held >= part_of_budget(budget, percent); };
  const bool was_hard = before == PressureLevel::kHard;
  if (at_least(was_hard ? limits.hard_leave : limits.hard_enter)) return PressureLevel::kHard;
  const bool was_soft = before != PressureLevel::kNone;
  if (at_least(was_soft ? limits.soft_leave : limits.soft_enter)) return PressureLevel::kSoft;
  return PressureLevel::kNone;
}

/// What a pool may hold and stay at its level.
struct SteadyRange {
  Bytes from;   ///< the least
  Bytes below;  ///< more than the most

  /// Whether `held` is in it.
  [[nodiscard]] constexpr bool contains(Bytes held) const noexcept {
    return from <= held && held < below;
  }
};

/// Holds `held` exactly where pressure_level(held, budget, level) is `level`, but for the largest
/// number there is: so that most changes of a pool cost two comparisons.
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

}  // namespace weir
