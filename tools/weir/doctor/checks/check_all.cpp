#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "tools/weir/doctor/checks/checks.hpp"

namespace weir::cli::doctor {
namespace {

struct Part {
  const char* name;         ///< for people
  std::vector<Use> breaks;  ///< what is not known to work without its facts
};

Part part_of(Group group) {
  switch (group) {
    case Group::kSystem:
      return {"the system", {Use::kRun}};
    case Group::kDriver:
      return {"the driver", {Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kDeviceWork}};
    case Group::kLibrary:
      return {"libweir.so", {Use::kRun, Use::kPlug}};
    case Group::kPython:
      return {"Python", {Use::kPlug}};
    case Group::kSettings:
      return {"the settings", {Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kTrainCpu}};
    case Group::kLimits:
      return {"the limits", {Use::kLive, Use::kShare}};
    case Group::kEnvironment:
      break;
  }
  return {"other variables", {Use::kRun}};
}

const char* remedy_for(Lack lack) {
  switch (lack) {
    case Lack::kFiles:
      return "ulimit -n 1024, or a shell that may open more files; then weir doctor again";
    case Lack::kMemory:
      return "ulimit -v unlimited, or a shell that may use more memory; then weir doctor again";
    case Lack::kProcesses:
      return "ulimit -u unlimited (processes), or end some; then weir doctor again";
    case Lack::kUnknown:
      break;
  }
  return "weir doctor again; if this stays, report it with this output";
}

std::vector<Finding> check_missed(const Missed& missed) {
  Part part = part_of(missed.group);
  Findings found(missed.group);
  found.fails("missed", std::string(part.name) + " could not be looked at: " + missed.why,
              remedy_for(missed.lack), std::move(part.breaks));
  return found.take();
}

/// Several groups may judge a setting: the worst finding stays, and of equals the first.
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

}  // namespace

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::vector<Finding> check_system(const SystemFacts& facts) {
  Findings found(Group::kSystem);
  found.ok("system", facts.os + ", " + facts.kernel);
  found.ok("machine",
           facts.libc + ", " + facts.machine + ", " + std::to_string(facts.cpus) + " cpus, " +
               format_bytes(facts.memory) + " of memory" +
               (facts.container.empty() ? "" : ", in a container (" + facts.container + ")"));
  return found.take();
}

std::vector<Finding> check_all(const Facts& facts) {
  std::vector<Finding> all;
  const auto append = [&](Group group, const std::function<std::vector<Finding>()>& check) {
    const auto missed = std::ranges::find(facts.missed, group, &Missed::group);
    std::vector<Finding> more = missed == facts.missed.end() ? check() : check_missed(*missed);
    std::move(more.begin(), more.end(), std::back_inserter(all));
  };
  const Places& places = facts.places;
  append(Group::kSystem, [&] { return check_system(facts.system); });
  append(Group::kDriver, [&] { return check_driver(facts.driver, facts.settings.variables); });
  append(Group::kLibrary, [&] { return check_library(facts.library, places); });
  append(Group::kPython,
         [&] { return check_python(facts.python, facts.driver.driver.version, places); });
  append(Group::kSettings, [&] { return check_settings(facts.settings, places); });
  append(Group::kLimits, [&] { return check_limits(facts.limits); });
  append(Group::kEnvironment, [&] { return check_environment(facts.environment); });
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
