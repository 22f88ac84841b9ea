// The table of hooks, in a build with the library.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/preload/hooks/hook_list.hpp"
#include "tools/program/report_table.hpp"
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

std::string hooks_text(bool wide) {
  std::vector<std::string> names;
  std::vector<std::string> actions;
  std::vector<std::string> since;
  std::vector<std::string> what;
  for (const preload::Hook& hook : preload::hooks()) {
    names.push_back(names_of(hook));
    actions.emplace_back(to_string(hook.action));
    since.push_back(format_version(hook.since));
    what.emplace_back(hook.what);
  }
  for (const preload::NvmlHook& hook : preload::nvml_hooks()) {
    names.emplace_back(hook.symbol);
    actions.emplace_back("view");
    since.emplace_back("nvml");
    what.emplace_back(hook.what);
  }
  ReportTable table;
  table.words({"function", "of the driver; behind a comma, its per-thread form"}, std::move(names))
      .words({"action", "what Weir does with calls"}, std::move(actions))
      .words({"since", "the driver's version"}, std::move(since))
      .words({"what", "the action in words"}, std::move(what), Long::kWrap);
  return table.format(wide);
}

}  // namespace weir::cli
