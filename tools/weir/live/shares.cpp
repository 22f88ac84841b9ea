#include "tools/weir/live/shares.hpp"

#include <utility>

#include "allocator/base/bytes.hpp"
#include "tools/program/table.hpp"

namespace weir::cli {
namespace {

using Json = nlohmann::json;

std::vector<std::string> cells(const ShareReport& share, const ShareSlots::Used& used) {
  std::vector<std::string> line{share.id.name, format_bytes(share.budget)};
  if (used.slot) {
    line.insert(line.end(), {std::to_string(used.pid), format_bytes(used.slot->floor),
                             format_bytes(used.slot->lease), format_bytes(used.slot->wanted)});
  } else {
    line.insert(line.end(), {"?", "tampered", "-", "-"});
  }
  return line;
}

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

std::string shares_text(const std::vector<ShareReport>& shares) {
  std::vector<std::vector<std::string>> table{
      {"share", "budget", "pid", "floor", "lease", "wanted"}};
  for (const ShareReport& share : shares) {
    for (const ShareSlots::Used& used : share.used) table.push_back(cells(share, used));
  }
  return table.size() == 1 ? std::string() : format_table(table);
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
