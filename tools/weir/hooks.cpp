// The table of a build that has the library.

#include "tools/preload/table.hpp"
#include "tools/weir/driver.hpp"
#include "tools/weir/info.hpp"
#include "trainer/table.hpp"

namespace weir::cli {

std::string hooks_text() {
  std::vector<std::vector<std::string>> rows{{"function", "since", "action", "what"}};
  for (const preload::Hook& hook : preload::hooks()) {
    const std::string per_thread = hook.per_thread != nullptr ? ", _ptsz" : "";
    rows.push_back({hook.symbol + per_thread, format_version(hook.since),
                    std::string(to_string(hook.action)), hook.what});
  }
  return format_table(rows);
}

}  // namespace weir::cli
