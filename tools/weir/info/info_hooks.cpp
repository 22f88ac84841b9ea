// The table of hooks, in a build with the library.

#include <string>
#include <string_view>
#include <vector>

#include "tools/preload/hooks/hook_list.hpp"
#include "tools/program/table.hpp"
#include "tools/weir/info/driver.hpp"
#include "tools/weir/info/info.hpp"

namespace weir::cli {

namespace {

/// Returns `cuLaunchKernel, _ptsz`: the hook's name and the suffix of its per-thread form.
std::string names_of(const preload::Hook& hook) {
  if (hook.symbol == nullptr) return hook.per_thread;
  if (hook.per_thread == nullptr) return hook.symbol;
  std::string_view ending = hook.per_thread;
  if (ending.starts_with(hook.symbol)) ending.remove_prefix(std::string_view(hook.symbol).size());
  return std::string(hook.symbol).append(", ").append(ending);
}

}  // namespace

std::string hooks_text() {
  std::vector<std::vector<std::string>> rows{{"function", "since", "action", "what"}};
  for (const preload::Hook& hook : preload::hooks()) {
    rows.push_back({names_of(hook), format_version(hook.since), std::string(to_string(hook.action)),
                    hook.what});
  }
  for (const preload::NvmlHook& hook : preload::nvml_hooks()) {
    rows.push_back({hook.symbol, "nvml", "view", hook.what});
  }
  return format_table(rows);
}

}  // namespace weir::cli
