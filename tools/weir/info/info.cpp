#include "tools/weir/info/info.hpp"

#include <nlohmann/json.hpp>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/table.hpp"

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
  if (driver.problem.empty()) return "driver: " + version + "\n";
  return "driver: no device can be used" + (version.empty() ? "" : ", " + version) + " (" +
         driver.problem + ")\n";
}

std::string devices_table(const Info& info) {
  if (info.driver.devices.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"device", "memory", "free", "budget", "name"}};
  std::string problems;
  for (const DeviceInfo& device : info.driver.devices) {
    const DeviceBudget budget = budget_on(device, info.settings.pool.budget);
    rows.push_back({std::to_string(device.number), format_bytes(device.total),
                    device.free ? format_bytes(*device.free) : "?",
                    budget.problem.empty() ? format_bytes(budget.bytes) : "none", device.name});
    if (!budget.problem.empty()) {
      problems += "device " + std::to_string(device.number) + ": " + budget.problem + "\n";
    }
  }
  return format_table(rows) + problems;
}

/// Returns the library's settings, then those that only `weir run` reads.
std::vector<SettingLine> settings_of(const Info& info) {
  std::vector<SettingLine> lines = describe(info.settings);
  lines.push_back(
      {"allocator", std::string(to_string(info.allocator.value)), info.allocator.source});
  return lines;
}

std::string settings_table(const Info& info) {
  std::vector<std::vector<std::string>> rows{{"setting", "value", "from"}};
  for (const SettingLine& line : settings_of(info)) {
    rows.push_back({std::string(line.name), line.value, line.source});
  }
  return format_table(rows);
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

std::string info_text(const Info& info) {
  const std::string library =
      info.library.value.empty() ? "none (" + info.library.source + ")" : info.library.value;
  return "weir " + std::string(kVersion) + "\nlibrary: " + library + "\n" +
         driver_line(info.driver) + info.allocator_line + "\n" + devices_table(info) + "\n" +
         settings_table(info);
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
