#pragma once

// The hooked functions as data, for look-ups, tests and `weir info --hooks`. The list is hooks.inc.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "allocator/base/names.hpp"

namespace weir::preload {

/// What a hook does with a call.
enum class Action : std::uint8_t {
  kSwap,    ///< its result is replaced
  kOwn,     ///< served by the pool
  kView,    ///< answered from the budget, or with the program's allocation
  kCount,   ///< passed to the driver; its memory counts against the budget
  kFollow,  ///< passed, and noted
  kPace,    ///< passed; held back first if that keeps the program in its budget
};
[[nodiscard]] constexpr auto names_of(Action /*of*/) noexcept {
  return name_table("swap", "own", "view", "count", "follow", "pace");
}

struct Hook {
  const char* base;        ///< name for cuGetProcAddress
  int since;               ///< version from which the name means these symbols; never below 7.0 for
                           ///< the per-thread form
  const char* symbol;      ///< name for dlsym; null if only the per-thread form is hooked
  const char* per_thread;  ///< its form for per-thread default streams; null if none
  Action action;
  const char* what;  ///< for people
};

/// All hooks, in the order of hooks.inc.
[[nodiscard]] std::span<const Hook> hooks() noexcept;

/// An NVML function that the swap-in answers from the budget.
struct NvmlHook {
  const char* symbol;
  const char* what;  ///< for people
};
/// All hooks of NVML, in the order of nvml_hooks.inc.
[[nodiscard]] std::span<const NvmlHook> nvml_hooks() noexcept;

}  // namespace weir::preload
