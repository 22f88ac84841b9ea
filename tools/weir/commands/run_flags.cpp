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
  line.take_program();
  const auto add = [&](const char* name, const char* variable, Check check, const Value& value,
                       const std::string& help) {
    return &flags_.emplace_back(line, name, variable, check, value, help);
  };
  std::vector<std::string> pools = names_to(PoolKind::kPaged);
  pools.insert(pools.begin(), "auto");
  add("--budget", "WEIR_BUDGET", check_with<parse_budget>, Value("BYTES|PERCENT"),
      "the memory that the program may use on each device (default: 95%)");
  add("--policy", "WEIR_POLICY", check_with<parse_name<Policy>>,
      Value::one_of(names_to(Policy::kBarrier)),
      "throttled (default) holds the program back early; backstop only waits where memory would "
      "run out; unbounded never waits; barrier waits after each marked batch");
  add("--allocator", "WEIR_ALLOCATOR", check_with<parse_name<AllocatorMode>>,
      Value::one_of(names_to(AllocatorMode::kAsync)),
      "framework (default): frameworks keep their own allocators; async: they allocate each tensor "
      "in stream order, and PyTorch loses some features");
  add("--torch", "WEIR_TORCH", check_with<parse_name<preload::TorchWay>>,
      Value::one_of(names_to(preload::TorchWay::kOff)),
      "plug (default without --allocator): Weir's plug is PyTorch's allocator, with all its "
      "features, "
      "where there is one for its version; async: as --allocator async, for PyTorch alone; off: "
      "PyTorch's own");
  add("--spill", "WEIR_SPILL", check_with<parse_name<preload::SpillTo>>,
      Value::one_of(names_to(preload::SpillTo::kHost)),
      "off (default), or host: allocations that fit nowhere else use slow host memory, so that the "
      "run can finish");
  line.add("--details", details_, "print every figure of the summary, not the first few");
  json_ = add("--json", "WEIR_SUMMARY", nullptr, Value("FILE"),
              "write the summary to FILE; with %p in its name, one file for "
              "each process; - is standard output, after what the program prints there");
  add("--pool", "WEIR_POOL", preload::check_pool, Value::one_of(pools),
      "the pool that memory comes from (default: auto)");
  add("--run-ahead", "WEIR_RUN_AHEAD", check_with<parse_run_ahead>, Value("auto|N|TIME|off"),
      "how far batches may run ahead of the device: N batches, or device time (default: auto)");
  add("--batch-range", "WEIR_BATCH_RANGE", take_any, Value("NAME"),
      "an NVTX range of this name is a batch (default: none)");
  add("--max-wait", "WEIR_MAX_WAIT", check_with<preload::parse_max_wait>, Value("TIME"),
      "the longest wait of one call (default: 10s)");
  line.add("--sync-free", sync_free_,
           "cuMemFree waits for the device, for programs that rely on it")
      .over("WEIR_SYNC_FREE");
  add("--log", "WEIR_LOG", check_with<parse_name<LogLevel>>,
      Value::one_of(names_to(LogLevel::kDebug)),
      "how much Weir says on standard error (default: warn)");
  library_ = add("--library", "WEIR_LIBRARY", nullptr, Value("FILE"),
                 "the library to preload, if not Weir's own");
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

FlagSources RunFlags::sources() const {
  FlagSources sources;
  for (const VariableFlag& flag : flags_) {
    if (flag.check != nullptr && flag.flag.given()) sources[flag.variable] = flag.name;
  }
  if (sync_free_) sources["WEIR_SYNC_FREE"] = "--sync-free";
  return sources;
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
