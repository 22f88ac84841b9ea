#pragma once

// How close a pool is to its budget. The level is a pure function of what is held, the budget and
// the level before, with hysteresis so that one block more or less does not make it flap.

#include <cstdint>
#include <string_view>

#include "allocator/bytes.hpp"

namespace weir {

enum class PressureLevel : std::uint8_t {
  kNone,
  kSoft,  ///< past the soft limit: slow down
  kHard,  ///< past the hard limit: stop
};

struct Pressure {
  PressureLevel level = PressureLevel::kNone;
  Bytes held;  ///< allocated + awaiting
  Bytes budget;
  std::uint64_t sequence = 0;  ///< grows with every change of level; a smaller one is older news
};

/// Percent of the budget at which a level is entered, and below which it is left again.
struct PressureLimits {
  unsigned soft_enter = 75;
  unsigned soft_leave = 65;
  unsigned hard_enter = 95;
  unsigned hard_leave = 85;
};

[[nodiscard]] constexpr PressureLevel pressure_level(Bytes held, Bytes budget, PressureLevel before,
                                                     PressureLimits limits = {}) noexcept {
  const auto at_least = [&](unsigned percent) {
    // held × 100 >= budget × percent, in parts: the products could overflow.
    const std::uint64_t limit =
        budget.count / 100 * percent + (budget.count % 100 * percent + 99) / 100;
    return held.count >= limit && held.count > 0;
  };
  const bool was_hard = before == PressureLevel::kHard;
  if (at_least(was_hard ? limits.hard_leave : limits.hard_enter)) return PressureLevel::kHard;
  const bool was_soft = before != PressureLevel::kNone;
  if (at_least(was_soft ? limits.soft_leave : limits.soft_enter)) return PressureLevel::kSoft;
  return PressureLevel::kNone;
}

/// Told when a pool's level changes, on the thread that changed it, after the pool's lock is
/// dropped. May read the pool; may neither submit nor wait.
class PressureObserver {
 public:
  PressureObserver() = default;
  PressureObserver(const PressureObserver&) = delete;
  PressureObserver& operator=(const PressureObserver&) = delete;
  virtual ~PressureObserver() = default;
  virtual void on_pressure(const Pressure& pressure) noexcept = 0;
};

}  // namespace weir
