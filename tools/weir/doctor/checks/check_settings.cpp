// The variables of Weir that are set, and those of MXNet that Weir reads.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "allocator/base/error.hpp"
#include "allocator/base/variables.hpp"
#include "allocator/pool_options.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/weir/doctor/checks/checks.hpp"
#include "tools/weir/doctor/checks/places.hpp"
#include "tools/weir/run/framework_allocator.hpp"

namespace weir::cli::doctor {
namespace {

/// What a bad value of the variable keeps from starting.
std::vector<Use> by_setting(std::string_view name) {
  std::vector<Use> broken{Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kTrainCpu};
  if (name == "WEIR_PUBLISH") broken.push_back(Use::kLive);
  if (name.starts_with("WEIR_SHARE")) broken.push_back(Use::kShare);
  return broken;
}

std::string correct(const std::string& what, const Places& places) {
  return what + " (" + page(places, "environment.md") + ")";
}

/// Reads every setting as `weir run`, the library and weir-train do. Throws UsageError.
void read_all(const Environment& environment) {
  (void)preload::Settings::from_environment(environment);
  (void)PoolOptions::from_environment(MxnetContext::kCpu, environment);
  (void)torch_way(allocator_mode(environment), environment);
  Setting<Bytes> bucket;  // weir-train alone reads it
  read_setting(bucket, environment, {"MXNET_KVSTORE_REDUCE_BUCKET_SIZE"}, parse_some_bytes);
}

/// Returns the names that Weir asks the environment for.
std::set<std::string> names_read() {
  std::set<std::string> names;
  read_all([&names](const char* name) -> const char* {
    names.insert(name);
    return nullptr;
  });
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

void add_value(Findings& found, const std::string& name, const std::string& value,
               const Places& places) {
  if (value.empty()) {
    found.ok("variable", name + " is empty, which counts as not set");
  } else if (const std::string problem = problem_of(name, value); !problem.empty()) {
    found.fails("variable", problem, correct("correct " + name + ", or unset it", places),
                by_setting(name));
  } else {
    found.ok("variable", name + "=" + value);
  }
  found.about(name);
}

void add_variables(Findings& found, const Variables& variables, const Places& places) {
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
    add_value(found, name, value, places);
  }
  if (!is_any) found.ok("variable", "no variable of Weir or MXNet is set: the defaults hold");
}

void add_together(Findings& found, const Variables& variables, const Places& places) {
  const std::string problem = problem_of(environment_of(variables));
  const bool is_known = std::ranges::any_of(variables, [&](const auto& variable) {
    return problem_of(variable.first, variable.second) == problem;
  });
  if (problem.empty() || is_known) return;
  found.fails("settings", "the settings do not fit together: " + problem,
              correct("change or unset one of them", places), by_setting({}));
  // The value alone is allowed, and its own line would say so.
  const std::string_view source = std::string_view(problem).substr(0, problem.find("='"));
  for (const auto& [name, value] : variables) {
    if (source == name || source.ends_with("(" + name + ")")) found.about(name);
  }
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
  std::map<std::string, std::string> gpus;  // by what is wrong: mostly the same for each
  for (const DeviceInfo& device : facts.devices) {
    try {
      (void)resolve_budget(budget->value, device.total, budget->source);
    } catch (const UsageError& error) {
      std::string& numbers = gpus[error.what()];
      numbers += (numbers.empty() ? "GPU " : ", ") + std::to_string(device.number);
    }
  }
  if (gpus.empty()) return;
  std::string text;
  for (const auto& [why, numbers] : gpus) {
    text.append(text.empty() ? "" : "; ").append(numbers).append(": ").append(why);
  }
  found.fails("budget", text, "set a smaller WEIR_BUDGET, or a percentage such as 80%",
              {Use::kRun, Use::kPlug, Use::kTrainGpu});
  found.about(budget->source);
}

}  // namespace

std::vector<Finding> check_settings(const SettingsFacts& facts, const Places& places) {
  Findings found(Group::kSettings);
  add_variables(found, facts.variables, places);
  add_together(found, facts.variables, places);
  add_budgets(found, facts);
  for (const OutputPlace& place : facts.outputs) {
    if (place.problem.empty()) continue;
    found.fails("output", place.problem,
                "name a file in a folder where this user may write, or unset " + place.variable,
                {Use::kRun, Use::kPlug});
    found.about(place.variable);
  }
  return found.take();
}

}  // namespace weir::cli::doctor
