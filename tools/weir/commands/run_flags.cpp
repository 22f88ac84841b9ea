#include "tools/weir/commands/run_flags.hpp"

#include "allocator/pool_kind.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/weir/run/framework_allocator.hpp"

namespace weir::cli {
namespace {

/// Uses a parser only to refuse bad values: the library in the program parses again.
template <auto Parse>
void check_with(std::string_view name, std::string_view text) {
  (void)Parse(name, text);
}

void take_any(std::string_view /*name*/, std::string_view /*text*/) {}

}  // namespace

RunFlags::RunFlags(CommandLine& line) {
  const auto add = [&](const char* name, const char* variable, Check check,
                       const std::string& help) {
    return &flags_.emplace_back(line, name, variable, check, help);
  };
  add("--budget", "WEIR_BUDGET", check_with<parse_budget>,
      "for each device: 6GiB, or 80% of its memory");
  add("--policy", "WEIR_POLICY", check_with<parse_policy>,
      "throttled, backstop, unbounded or barrier");
  add("--run-ahead", "WEIR_RUN_AHEAD", check_with<parse_run_ahead>,
      "auto, a number of batches, a time such as 20ms, or off");
  add("--pool", "WEIR_POOL", preload::check_pool, "auto, " + std::string(allowed_kinds_of_pool()));
  add("--allocator", "WEIR_ALLOCATOR", check_with<parse_allocator_mode>,
      "framework (default): frameworks keep their own allocators; async: they allocate each tensor "
      "in stream order, and PyTorch loses some features");
  add("--torch", "WEIR_TORCH", check_with<preload::parse_torch_way>,
      "plug (default without --allocator): Weir's plug is PyTorch's allocator, with all its "
      "features, "
      "where there is one for its version; async: as --allocator async, for PyTorch alone; off: "
      "PyTorch's own");
  add("--batch-range", "WEIR_BATCH_RANGE", take_any, "an NVTX range of this name is a batch");
  line.add("--sync-free", sync_free_,
           "cuMemFree waits for the device, for programs that rely on it (WEIR_SYNC_FREE)");
  add("--max-wait", "WEIR_MAX_WAIT", check_with<preload::parse_max_wait>,
      "the longest wait of one call, such as 10s");
  add("--spill", "WEIR_SPILL", check_with<preload::parse_spill>,
      "off (default), or host: allocations that fit nowhere else use slow host memory, so that the "
      "run can finish");
  add("--log", "WEIR_LOG", check_with<parse_log_level>, "error, warn, info or debug");
  line.add("--details", details_, "print every figure of the summary, not three lines");
  json_ = add("--json", "WEIR_SUMMARY", nullptr,
              "write the summary to this file; with %p in its name, one file for "
              "each process; - is standard output");
  library_ = add("--library", "WEIR_LIBRARY", nullptr, "the library to preload, if not Weir's own");
}

std::vector<Variable> RunFlags::variables() const {
  std::vector<Variable> variables;
  for (const VariableFlag& flag : flags_) {
    if (flag.check == nullptr || !flag.flag.given()) continue;
    flag.check(flag.name, flag.text);
    variables.push_back({flag.variable, flag.text});
  }
  if (sync_free_) variables.push_back({"WEIR_SYNC_FREE", "1"});
  return variables;
}

Setting<std::string> RunFlags::path(const VariableFlag& flag, const Environment& environment) {
  if (flag.flag.given()) {
    return {flag.text, flag.name};
  }
  Setting<std::string> setting;
  read_setting(setting, environment, {flag.variable},
               [](std::string_view, std::string_view text) { return std::string(text); });
  return setting;
}

Setting<std::string> RunFlags::library(const Environment& environment) const {
  return path(*library_, environment);
}

Setting<std::string> RunFlags::json(const Environment& environment) const {
  return path(*json_, environment);
}

Environment overlaid(const Environment& environment, const std::vector<Variable>& variables) {
  return [environment, variables](const char* name) -> const char* {
    for (const Variable& variable : variables) {
      if (variable.name == name) return variable.value.c_str();
    }
    return environment(name);
  };
}

}  // namespace weir::cli
