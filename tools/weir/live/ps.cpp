#include "tools/weir/live/ps.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/printable.hpp"
#include "tools/program/table.hpp"
#include "tools/weir/live/shares.hpp"
#include "tools/weir/live/top.hpp"

namespace weir::cli {
namespace {

using Json = nlohmann::json;

std::string waits_cell(const timeline::LiveDevice& device) {
  if (device.waits == 0) return "0";
  constexpr double kSecond = 1e9;
  return std::to_string(device.waits) + " (" +
         format_number(static_cast<double>(device.waited_ns) / kSecond, 2) + " s)";
}

/// `device` is null if the program has used none yet.
std::vector<std::string> cells(const PsProgram& program, const timeline::LiveDevice* device,
                               bool users, bool utf8) {
  std::vector<std::string> line{std::to_string(program.pid)};
  if (users) line.push_back(printable(program.user, utf8));
  if (device != nullptr) {
    line.insert(line.end(), {device_name(device->device), format_bytes({device->budget}),
                             format_bytes({device->reserved}), format_bytes({device->allocated}),
                             waits_cell(*device)});
  } else {
    line.insert(line.end(), 5, "-");
  }
  line.push_back((program.silent ? "(silent) " : "") + printable(program.program, utf8));
  return line;
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
          {"waited_ns", device.waited_ns}};
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

std::string ps_text(const Ps& ps, bool users, bool utf8) {
  std::string note;
  if (ps.unreadable != 0) {
    note = format_count(ps.unreadable, "program") +
           " not shown: they run under another version of Weir\n";
  }
  std::string shares = shares_text(ps.shares);
  if (!shares.empty()) shares = "\n" + shares;
  if (ps.programs.empty()) return "no program runs under Weir\n" + note + shares;
  std::vector<std::string> heading{"pid"};
  if (users) heading.emplace_back("user");
  heading.insert(heading.end(), {"device", "budget", "reserved", "allocated", "waits", "program"});
  std::vector<std::vector<std::string>> table{heading};
  for (const PsProgram& program : ps.programs) {
    if (program.devices.empty()) table.push_back(cells(program, nullptr, users, utf8));
    for (const timeline::LiveDevice& device : program.devices) {
      table.push_back(cells(program, &device, users, utf8));
    }
  }
  return format_table(table) + note + shares;
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
