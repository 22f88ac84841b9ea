// All checks in order.

#include "tools/weir/doctor/checks.hpp"

#include <algorithm>

namespace weir::cli::doctor {
namespace {

void add_system(const Facts& facts, Findings& found) {
  const SystemFacts& system = facts.system;
  found.ok(system.name + ", " + std::to_string(system.cpus) + " cpus, " +
           format_bytes(system.memory) + " of memory" +
           (system.container.empty() ? "" : ", in a container (" + system.container + ")"));
}

std::vector<Check> all_checks() {
  std::vector<Check> all{{Group::kSystem, "system", {Use::kRun}, add_system}};
  for (const auto& more : {driver_checks(), library_checks(), settings_checks()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::string page(const Facts& facts, const std::string& name) {
  if (facts.pages.empty()) return "the page " + name + " in the docs of Weir's source";
  return facts.pages + "/" + name;
}

std::string build_a_plug(const Facts& facts) {
  return "build one as " + page(facts, "packages.md") +
         " says under \"A version of PyTorch that came later\"";
}

std::vector<Finding> check_all(const Facts& facts) {
  Findings found;
  for (const Check& check : all_checks()) {
    found.begin(check.group, check.name, check.breaks);
    check.judge(facts, found);
  }
  return found.take();
}

bool concerns_torch(const Facts& facts, const std::vector<Finding>& findings) {
  const bool is_unknown = std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.group == Group::kPython && finding.state == State::kFails;
  });
  return facts.python.torch.has_value() || is_unknown;
}

}  // namespace weir::cli::doctor
