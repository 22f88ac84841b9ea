#include "tools/weir/live/shares.hpp"

#include <optional>
#include <utility>

#include "allocator/base/bytes.hpp"

namespace weir::cli {
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
