// All checks in order, and what replaces their findings.

#include "tools/weir/doctor/checks.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace weir::cli::doctor {
namespace {

void add_system(const Facts& facts, Findings& found) {
  const SystemFacts& system = facts.system;
  found.ok(system.name + ", " + std::to_string(system.cpus) + " cpus, " +
           format_bytes(system.memory) + " of memory" +
           (system.container.empty() ? "" : ", in a container (" + system.container + ")"));
}

/// Several checks may judge a setting: the worst finding stays, and of equals the first.
void keep_one_for_each_setting(std::vector<Finding>& all) {
  std::map<std::string, std::size_t> kept;
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (all[at].setting.empty()) continue;
    const auto [other, is_new] = kept.emplace(all[at].setting, at);
    if (!is_new && all[at].state > all[other->second].state) other->second = at;
  }
  std::vector<Finding> left;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const std::string& setting = all[at].setting;
    if (setting.empty() || kept.at(setting) == at) left.push_back(std::move(all[at]));
  }
  all = std::move(left);
}

std::vector<Check> all_checks() {
  std::vector<Check> all{{Group::kSystem, "system", {Use::kRun}, add_system}};
  for (const auto& more : {driver_checks(), library_checks(), settings_checks()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// Returns what is not known to work without the group's facts: all that its checks are for.
std::vector<Use> broken_without(Group group, const std::vector<Check>& checks) {
  std::set<Use> uses;
  for (const Check& check : checks) {
    if (check.group == group) uses.insert(check.breaks.begin(), check.breaks.end());
  }
  return {uses.begin(), uses.end()};
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
  const std::vector<Check> checks = all_checks();
  Findings found;
  for (auto check = checks.begin(); check != checks.end(); ++check) {
    const auto missed = std::ranges::find(facts.missed, check->group, &Missed::group);
    if (missed == facts.missed.end()) {
      found.begin(check->group, check->name, check->breaks);
      check->judge(facts, found);
    } else if (check == checks.begin() || check->group != std::prev(check)->group) {
      found.begin(check->group, "missed", broken_without(check->group, checks));
      found.fails("this could not be looked at: " + missed->why, missed->remedy);
    }
  }
  std::vector<Finding> all = found.take();
  keep_one_for_each_setting(all);
  return all;
}

bool concerns_torch(const Facts& facts, const std::vector<Finding>& findings) {
  const bool is_unknown = std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.group == Group::kPython && finding.state == State::kFails;
  });
  return facts.python.torch.has_value() || is_unknown;
}

}  // namespace weir::cli::doctor
