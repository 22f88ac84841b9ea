#include "tools/weir/live/live_programs.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "tools/program/printable.hpp"
#include "tools/timeline/live/process.hpp"

namespace weir::cli {
namespace {

/// Returns what is wrong with the process's file; empty if nothing.
std::string fault_of(const timeline::LiveSurvey& survey, std::uint32_t pid) {
  for (const timeline::LiveFault& fault : survey.faults) {
    const std::string name = fault.path.substr(fault.path.rfind('/') + 1);
    if (name.starts_with(std::to_string(pid) + "-")) return fault.path + " " + fault.what;
  }
  return {};
}

}  // namespace

std::vector<timeline::LiveFolder> places_of(const Environment& environment) {
  const timeline::PublishSetting setting = timeline::publish_setting(environment).value;
  std::vector<timeline::LiveFolder> found = live_folders(setting, environment, geteuid());
  if (geteuid() != 0 || !setting.folder.empty()) return found;
  for (timeline::LiveFolder& folder : timeline::live_folders_of_all()) {
    const auto same = [&folder](const timeline::LiveFolder& other) {
      return other.path == folder.path;
    };
    if (std::ranges::none_of(found, same)) found.push_back(std::move(folder));
  }
  return found;
}

std::string user_name(std::uint32_t uid) {
  passwd found{};
  passwd* result = nullptr;
  std::vector<char> place(16384);
  if (getpwuid_r(uid, &found, place.data(), place.size(), &result) != 0 || result == nullptr) {
    return std::to_string(uid);
  }
  return result->pw_name;
}

std::string faults_text(const std::vector<timeline::LiveFault>& faults) {
  constexpr std::size_t kMost = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(faults.size(), kMost); ++i) {
    text += "weir: passed over: " + printable(faults[i].path, true) + " " + faults[i].what + "\n";
  }
  if (faults.size() > kMost) {
    text += "weir: passed over: " + std::to_string(faults.size() - kMost) + " more\n";
  }
  return text;
}

std::string why_missing(const timeline::LiveSurvey& survey, std::uint32_t pid) {
  const std::string process = "process " + std::to_string(pid);
  if (const std::string fault = fault_of(survey, pid); !fault.empty()) {
    return process + " is not asked: " + fault;
  }
  const auto state = timeline::find_process(pid);
  if (!state) return "no " + process + " runs here";
  if (state->uid != geteuid()) {
    return process + " is " + user_name(state->uid) + "'s: only that user can set its budget";
  }
  const auto publish = timeline::variable_of(pid, "WEIR_PUBLISH");
  if (publish == "0") {
    return process + " was started with WEIR_PUBLISH=0: it publishes nothing and cannot be asked";
  }
  if (publish && publish->starts_with('/')) {
    return process + " was started with WEIR_PUBLISH=" + *publish +
           ": weir finds it with the same setting, if it runs under Weir";
  }
  return process + " does not run under Weir, or has not used CUDA yet" +
         (survey.unreadable != 0 ? ", or runs under another version of Weir" : "");
}

}  // namespace weir::cli
