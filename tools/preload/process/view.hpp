#pragma once

// What a program is told of a device's memory: its budget, and what it could still have of it.

#include "tools/preload/process/process.hpp"

namespace weir::preload {

struct BudgetView {
  Bytes total;  ///< the budget, or what the device has where that is less
  Bytes free;   ///< never more than the device could give
  Bytes held;   ///< by this program: not cached, and not freed and waiting for the device
};

/// Where the device has `free` of `total` now. Asks the pools of all its contexts. Throws what they
/// throw. Thread-safe.
[[nodiscard]] BudgetView budget_view(const Process& process, const Account& account, Bytes free,
                                     Bytes total);

}  // namespace weir::preload
