// The variables of Weir that are set, and those of MXNet that Weir reads.

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "allocator/base/error.hpp"
#include "allocator/base/variables.hpp"
#include "allocator/pool_options.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/weir/doctor/checks/checks.hpp"
#include "tools/weir/run/framework_allocator.hpp"

namespace weir::cli::doctor {
namespace {

/// weir-train alone reads it.
constexpr std::string_view kBucket = "MXNET_KVSTORE_REDUCE_BUCKET_SIZE";

const std::vector<Use>& by_settings() {
  static const std::vector<Use> kBySettings{Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kTrainCpu};
  return kBySettings;
}

/// Reads every setting as `weir run`, the library and weir-train do. Throws UsageError.
void read_all(const Environment& environment) {
  (void)preload::Settings::from_environment(environment);
  (void)PoolOptions::from_environment(MxnetContext::kCpu, environment);
  (void)torch_way(allocator_mode(environment), environment);
}

/// Returns the names that Weir asks the environment for.
std::set<std::string> names_read() {
  std::set<std::string> names;
  read_all([&names](const char* name) -> const char* {
    names.insert(name);
    return nullptr;
  });
  names.insert(std::string(kBucket));
  return names;
}

/// Returns why reading these fails; empty if it does not.
std::string problem_of(const Environment& environment) {
  try {
    read_all(environment);
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::string problem_of(const std::string& name, const std::string& value) {
  return problem_of(
      [&](const char* asked) -> const char* { return asked == name ? value.c_str() : nullptr; });
}

/// Returns the warning of a name that Weir does not know; empty for one that it knows.
std::string unknown(const std::string& name) {
  const std::string line = name + "=";
  const char* const lines[] = {line.c_str(), nullptr};
  const std::vector<std::string> warnings = unknown_variables(lines);
  return warnings.empty() ? "" : warnings.front();
}

void add_value(Findings& found, const std::string& name, const std::string& value) {
  if (value.empty()) {
    found.ok("variable", name + " is empty, which counts as not set");
    return;
  }
  if (const std::string problem = problem_of(name, value); !problem.empty()) {
    found.fails("variable", problem, "correct " + name + ", or unset it (docs/environment.md)",
                by_settings());
    return;
  }
  found.ok("variable", name + "=" + value);
}

void add_variables(Findings& found, const Variables& variables) {
  const std::set<std::string> read = names_read();
  bool is_any = false;
  for (const auto& [name, value] : variables) {
    const bool is_ours = name.starts_with("WEIR_");
    if (!is_ours && !(name.starts_with("MXNET_") && read.contains(name))) continue;
    is_any = true;
    if (const std::string warning = is_ours ? unknown(name) : ""; !warning.empty()) {
      found.warn("unknown-variable", warning, "set the name that you meant, and unset " + name);
      continue;
    }
    add_value(found, name, value);
  }
  if (!is_any) found.ok("variable", "no variable of Weir or MXNet is set: the defaults hold");
}

void add_together(Findings& found, const Variables& variables) {
  const std::string problem = problem_of(environment_of(variables));
  const bool is_known = std::ranges::any_of(variables, [&](const auto& variable) {
    return problem_of(variable.first, variable.second) == problem;
  });
  if (problem.empty() || is_known) return;
  found.fails("settings", "the settings do not fit together: " + problem,
              "change or unset one of them (docs/environment.md)", by_settings());
}

/// Returns the budget alone, whatever is wrong with other settings; nothing if it is wrong itself.
std::optional<Setting<BudgetRequest>> budget_in(const Variables& variables) {
  const Environment all = environment_of(variables);
  try {
    return PoolOptions::from_environment(MxnetContext::kGpu,
                                         [&](const char* name) {
                                           const std::string_view asked = name;
                                           const bool counts = asked == "WEIR_BUDGET" ||
                                                               asked.ends_with("_RESERVE");
                                           return counts ? all(name) : nullptr;
                                         })
        .budget;
  } catch (const UsageError&) {
    return std::nullopt;  // add_variables has it
  }
}

void add_budgets(Findings& found, const SettingsFacts& facts) {
  const auto budget = budget_in(facts.variables);
  if (!budget) return;
  for (const DeviceInfo& device : facts.devices) {
    try {
      (void)resolve_budget(budget->value, device.total, budget->source);
    } catch (const UsageError& error) {
      found.fails("budget", "GPU " + std::to_string(device.number) + ": " + error.what(),
                  "set a smaller WEIR_BUDGET, or a percentage such as 80%",
                  {Use::kRun, Use::kPlug, Use::kTrainGpu});
    }
  }
}

}  // namespace

std::vector<Finding> check_settings(const SettingsFacts& facts) {
  Findings found(Group::kSettings);
  add_variables(found, facts.variables);
  add_together(found, facts.variables);
  add_budgets(found, facts);
  for (const OutputPlace& place : facts.outputs) {
    if (place.problem.empty()) continue;
    found.fails("output", place.problem,
                "name a file in a folder where this user may write, or unset " + place.variable,
                {Use::kRun, Use::kPlug});
  }
  return found.take();
}

}  // namespace weir::cli::doctor
