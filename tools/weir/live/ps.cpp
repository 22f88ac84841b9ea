#include "tools/weir/live/ps.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/pressure.hpp"
#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/printable.hpp"
#include "tools/program/report_table.hpp"
#include "tools/weir/live/live_programs.hpp"
#include "tools/weir/live/top.hpp"

namespace weir::cli {
namespace {

using Json = nlohmann::json;

/// A line of the table. `device` is null if the program has used none yet.
struct PsLine {
  const PsProgram* program;
  const timeline::LiveDevice* device;
};

std::vector<PsLine> lines_of(const Ps& ps) {
  std::vector<PsLine> lines;
  for (const PsProgram& program : ps.programs) {
    if (program.devices.empty()) lines.push_back({&program, nullptr});
    for (const timeline::LiveDevice& device : program.devices) lines.push_back({&program, &device});
  }
  return lines;
}

ReportTable table_of(const Ps& ps, bool users, bool utf8) {
  const std::vector<PsLine> lines = lines_of(ps);
  const auto sizes = [&](std::uint64_t timeline::LiveDevice::*bytes) {
    return cells_of(lines, [&](const PsLine& line) {
      return line.device != nullptr ? std::optional(Bytes{line.device->*bytes}) : std::nullopt;
    });
  };
  ReportTable table;
  table.words({"pid", "process"}, cells_of(lines, [](const PsLine& line) {
                return std::to_string(line.program->pid);
              }));
  if (users) {
    table.words(
        {"user", "its owner"},
        cells_of(lines, [&](const PsLine& line) { return printable(line.program->user, utf8); }),
        Long::kCut);
  }
  table
      .words({"device", "that it uses"}, cells_of(lines,
                                                  [](const PsLine& line) {
                                                    return line.device != nullptr
                                                               ? device_name(line.device->device)
                                                               : std::string("-");
                                                  }))
      .bytes({"reserved", "memory taken from it"}, sizes(&timeline::LiveDevice::reserved))
      .bytes({"budget", "most that may be"}, sizes(&timeline::LiveDevice::budget))
      .bytes({"allocated", "in use"}, sizes(&timeline::LiveDevice::allocated))
      .numbers({"waits", "for memory"}, cells_of(lines,
                                                 [](const PsLine& line) {
                                                   return line.device != nullptr
                                                              ? std::to_string(line.device->waits)
                                                              : std::string("-");
                                                 }))
      .times({"waited", "in all", Shown::kWide},
             cells_of(lines,
                      [](const PsLine& line) -> std::optional<double> {
                        if (line.device == nullptr) return std::nullopt;
                        return static_cast<double>(line.device->waited_ns);
                      }))
      .words({"program", "command line"},
             cells_of(lines,
                      [&](const PsLine& line) {
                        return (line.program->silent ? "(silent) " : "") +
                               printable(line.program->program, utf8);
                      }),
             Long::kCut);
  return table;
}

Json device_json(const timeline::LiveDevice& device) {
  return {{"device", device_name(device.device)},
          {"total_bytes", device.total != 0 ? Json(device.total) : Json(nullptr)},
          {"budget_bytes", device.budget},
          {"used_bytes", device.used != 0 ? device.used : device.reserved},
          {"reserved_bytes", device.reserved},
          {"allocated_bytes", device.allocated},
          {"awaiting_bytes", device.awaiting},
          {"cached_bytes", device.cached},
          {"failures", device.failures},
          {"waits", device.waits},
          {"waited_ns", device.waited_ns},
          {"pressure", to_string(static_cast<PressureLevel>(device.pressure))},
          {"at_soft_ns", device.soft_ns},
          {"at_hard_ns", device.hard_ns}};
}

}  // namespace

std::string device_name(std::uint64_t device) {
  return device == 0 ? "cpu" : "GPU " + std::to_string(device - 1);
}

Ps ps_of(const timeline::LiveSurvey& survey, std::uint64_t now_ns,
         const std::function<std::string(std::uint32_t uid)>& user_of) {
  Ps ps{.programs = {}, .unreadable = survey.unreadable};
  for (const timeline::LiveProgram& program : survey.programs) {
    ps.programs.push_back({.pid = program.pid,
                           .user = user_of(program.uid),
                           .program = program.program,
                           .silent = is_silent(program, now_ns),
                           .devices = program.device_figures});
  }
  return ps;
}

std::string ps_text(const Ps& ps, const PsView& view) {
  std::string note;
  if (ps.unreadable != 0) {
    note = format_count(ps.unreadable, "program") +
           " not shown: they run under another version of Weir\n";
  }
  std::vector<ReportTable> tables{table_of(ps, view.users, view.utf8), shares_table(ps.shares)};
  ReportTable::use_same_units(tables);
  std::string shares = tables[1].format(view.wide);
  if (!shares.empty()) shares = "\n" + shares;
  if (ps.programs.empty()) return "no program runs under Weir\n" + note + shares;
  return tables[0].format(view.wide) + note + shares;
}

std::string ps_json(const Ps& ps) {
  Json json{{"weir", kVersion}, {"programs", Json::array()}, {"unreadable", ps.unreadable}};
  for (const PsProgram& program : ps.programs) {
    Json devices = Json::array();
    for (const timeline::LiveDevice& device : program.devices) {
      devices.push_back(device_json(device));
    }
    json["programs"].push_back({{"pid", program.pid},
                                {"user", program.user},
                                {"program", program.program},
                                {"silent", program.silent},
                                {"devices", std::move(devices)}});
  }
  json["shares"] = shares_json(ps.shares);
  return json_text(json);
}

}  // namespace weir::cli
