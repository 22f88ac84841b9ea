#include "tools/weir/live/live_programs.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "tools/program/printable.hpp"
#include "tools/timeline/live/folder.hpp"

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

namespace {

using Json = nlohmann::json;

/// A line of the table.
struct ShareLine {
  const ShareReport* share;
  const ShareSlots::Used* used;
};

Json process_json(const ShareSlots::Used& used) {
  if (!used.slot) return {{"slot", used.index}, {"tampered", true}};
  return {{"slot", used.index},
          {"tampered", false},
          {"pid", used.pid},
          {"floor_bytes", used.slot->floor.count},
          {"lease_bytes", used.slot->lease.count},
          {"wanted_bytes", used.slot->wanted.count}};
}

}  // namespace

ReportTable shares_table(const std::vector<ShareReport>& shares) {
  std::vector<ShareLine> lines;
  bool tampered = false;
  for (const ShareReport& share : shares) {
    for (const ShareSlots::Used& used : share.used) {
      lines.push_back({&share, &used});
      tampered = tampered || !used.slot;
    }
  }
  const auto sizes = [&](Bytes ShareSlot::*bytes) {
    return cells_of(lines, [&](const ShareLine& line) {
      return line.used->slot ? std::optional((*line.used->slot).*bytes) : std::nullopt;
    });
  };
  ReportTable table;
  table
      .words({"share", "its name"},
             cells_of(lines, [](const ShareLine& line) { return line.share->id.name; }), Long::kCut)
      .words({"pid", "process"}, cells_of(lines,
                                          [](const ShareLine& line) {
                                            return line.used->slot ? std::to_string(line.used->pid)
                                                                   : std::string("?");
                                          }))
      .bytes({"lease", "what it may take now"}, sizes(&ShareSlot::lease))
      .bytes({"wanted", "what it wants"}, sizes(&ShareSlot::wanted))
      .bytes({"floor", "what it always may"}, sizes(&ShareSlot::floor))
      .bytes({"budget", "of all processes together"}, cells_of(lines, [](const ShareLine& line) {
               return std::optional(line.share->budget);
             }));
  if (tampered) {
    table.words({"fault", "figures that another program wrote"},
                cells_of(lines, [](const ShareLine& line) {
                  return std::string(line.used->slot ? "" : "tampered");
                }));
  }
  return table;
}

std::string share_faults_text(const std::vector<ShareReport>& shares) {
  std::string text;
  for (const ShareReport& share : shares) {
    if (!share.fault.empty()) text += "weir: passed over: " + share.fault + "\n";
  }
  return text;
}

Json shares_json(const std::vector<ShareReport>& shares) {
  Json list = Json::array();
  for (const ShareReport& share : shares) {
    if (share.used.empty()) continue;
    Json processes = Json::array();
    for (const ShareSlots::Used& used : share.used) processes.push_back(process_json(used));
    list.push_back({{"share", share.id.name},
                    {"owner", share.id.owner.id},
                    {"owner_is_group", share.id.owner.is_group},
                    {"budget_bytes", share.budget.count},
                    {"processes", std::move(processes)}});
  }
  return list;
}

}  // namespace weir::cli
