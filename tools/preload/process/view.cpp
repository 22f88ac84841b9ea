#include "tools/preload/process/view.hpp"

#include <algorithm>

namespace weir::preload {

BudgetView budget_view(const Process& process, const Account& account, Bytes free, Bytes total) {
  // Memory that awaits the device counts as free: a driver whose cuMemFree waits would have it back
  // by now.
  Bytes freed;
  for (Arena* const arena : process.arenas()) {
    if (&arena->account() != &account) continue;
    const Statistics statistics = arena->pool().statistics();
    freed += statistics.cached.current;
    freed += statistics.awaiting.current;
  }
  const Bytes held = minus_or_zero(account.used(), freed);
  return {.total = std::min(total, account.budget()),
          .free = std::min({free + freed, minus_or_zero(account.budget(), held), total}),
          .held = held};
}

}  // namespace weir::preload
