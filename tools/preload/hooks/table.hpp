#pragma once

// The functions that the swap-in stands in front of, as data: for look-ups, tests and
// `weir info --hooks`. The list itself is hooks.inc.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir::preload {

/// What is done to a call.
enum class Action : std::uint8_t {
  kSwap,    ///< what it hands out is replaced
  kOwn,     ///< served by the pool
  kView,    ///< answered with the budget's view, or the program's allocation
  kCount,   ///< passed to the driver, its memory counted against the budget
  kFollow,  ///< passed, and noted
  kPace,    ///< passed, and held back first where that keeps the program in its budget
};
[[nodiscard]] std::string_view to_string(Action action) noexcept;

struct Hook {
  const char* base;        ///< what cuGetProcAddress calls it
  int since;               ///< the version at which the symbols are what that name means; the
                           ///< per-thread form is never older than 7.0
  const char* symbol;      ///< what dlsym calls it; null where the per-thread form alone is hooked
  const char* per_thread;  ///< its form for per-thread default streams; null where there is none
  Action action;
  const char* what;  ///< for people
};

/// All of them, in the order of hooks.inc.
[[nodiscard]] std::span<const Hook> hooks() noexcept;

/// A function of the management library (NVML) that the swap-in answers with the budget.
struct NvmlHook {
  const char* symbol;
  const char* what;  ///< for people
};
/// All of them, in the order of nvml_hooks.inc.
[[nodiscard]] std::span<const NvmlHook> nvml_hooks() noexcept;

}  // namespace weir::preload
