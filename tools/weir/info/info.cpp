#include "tools/weir/info/info.hpp"

#include <nlohmann/json.hpp>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/report_table.hpp"

namespace weir::cli {
namespace {

using Json = nlohmann::json;

/// The budget on one device, or why it does not fit.
struct DeviceBudget {
  Bytes bytes;
  std::string problem;
};

DeviceBudget budget_on(const DeviceInfo& device, const Setting<BudgetRequest>& budget) {
  try {
    return {resolve_budget(budget.value, device.total, budget.source), {}};
  } catch (const UsageError& error) {
    return {{}, error.what()};
  }
}

std::string driver_line(const DriverInfo& driver) {
  const std::string version =
      driver.version != 0 ? "for CUDA " + format_version(driver.version) : "";
  if (driver.problem.empty()) return "driver: " + version;
  return "driver: no device can be used" + (version.empty() ? "" : ", " + version) + " (" +
         driver.problem + ")";
}

std::string devices_table(const Info& info, bool wide) {
  const std::vector<DeviceInfo>& devices = info.driver.devices;
  if (devices.empty()) return {};
  std::vector<std::optional<Bytes>> budgets;
  std::string problems;
  for (const DeviceInfo& device : devices) {
    const DeviceBudget budget = budget_on(device, info.settings.pool.budget);
    budgets.push_back(budget.problem.empty() ? std::optional(budget.bytes) : std::nullopt);
    if (budget.problem.empty()) continue;
    problems += wrapped("device " + std::to_string(device.number) + ": " + budget.problem, 2);
  }
  ReportTable table;
  table
      .words({"device", "its number"},
             cells_of(devices, [](const DeviceInfo& d) { return std::to_string(d.number); }))
      .bytes({"budget", "most that Weir takes"}, budgets)
      .bytes({"free", "now"}, cells_of(devices, [](const DeviceInfo& d) { return d.free; }))
      .bytes({"memory", "of the device"},
             cells_of(devices, [](const DeviceInfo& d) { return std::optional(d.total); }))
      .words({"name", "as the driver says"},
             cells_of(devices, [](const DeviceInfo& d) { return d.name; }), Long::kCut);
  return table.format(wide) + problems;
}

/// Returns the library's settings, then those that only `weir run` reads.
std::vector<SettingLine> settings_of(const Info& info) {
  std::vector<SettingLine> lines = describe(info.settings);
  lines.push_back(
      {"allocator", std::string(to_string(info.allocator.value)), info.allocator.source});
  return lines;
}

std::string settings_table(const Info& info, bool wide) {
  const auto lines = settings_of(info);
  ReportTable table;
  table
      .words({"setting", "its name"},
             cells_of(lines, [](const auto& line) { return std::string(line.name); }))
      .words({"value", "in force"}, cells_of(lines, [](const auto& line) { return line.shown(); }),
             Long::kCut)
      .words({"from", "who set it"}, cells_of(lines, [](const auto& line) { return line.source; }),
             Long::kCut);
  return table.format(wide);
}

Json device_json(const DeviceInfo& device, const preload::Settings& settings) {
  const DeviceBudget budget = budget_on(device, settings.pool.budget);
  Json json{{"device", device.number},
            {"name", device.name},
            {"total_bytes", device.total.count},
            {"free_bytes", nullptr},
            {"budget_bytes", nullptr}};
  if (device.free) json["free_bytes"] = device.free->count;
  if (budget.problem.empty()) {
    json["budget_bytes"] = budget.bytes.count;
  } else {
    json["problem"] = budget.problem;
  }
  return json;
}

}  // namespace

std::string info_text(const Info& info, bool wide) {
  const std::string library =
      info.library.value.empty() ? "none (" + info.library.source + ")" : info.library.value;
  return "weir " + std::string(kVersion) + "\nlibrary: " + library + "\n" +
         wrapped(driver_line(info.driver), 2) + wrapped(info.allocator_line, 2) +
         devices_table(info, wide) + "\n" + settings_table(info, wide);
}

std::string info_json(const Info& info) {
  Json json{{"weir", kVersion},
            {"library", nullptr},
            {"cuda_version", nullptr},
            {"devices", Json::array()},
            {"settings", settings_json(settings_of(info))}};
  if (!info.library.value.empty()) json["library"] = info.library.value;
  if (info.driver.version != 0) json["cuda_version"] = format_version(info.driver.version);
  if (!info.driver.problem.empty()) json["problem"] = info.driver.problem;
  for (const DeviceInfo& device : info.driver.devices) {
    json["devices"].push_back(device_json(device, info.settings));
  }
  return json_text(json);
}

}  // namespace weir::cli
