#pragma once

// What a program is told of a device's memory: its budget and what is left of it.

#include "tools/preload/process/process.hpp"

namespace weir::preload {

struct BudgetView {
  Bytes total;  ///< the budget, or the device's total if smaller
  Bytes free;   ///< at most what the device could give
  Bytes held;   ///< by this program: without cached memory and frees that await the device
};

/// The view for a device with `free` of `total`. Asks the pools of all its contexts, and throws
/// what they throw. Thread-safe.
[[nodiscard]] BudgetView budget_view(const Process& process, const Account& account, Bytes free,
                                     Bytes total);

}  // namespace weir::preload
