#include "tools/weir/run/summary_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <tuple>
#include <utility>

#include "tools/preload/summary/bare_json.hpp"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order of the settings
using preload::DeviceSummary;
using preload::Passed;
using preload::PoolSummary;
using preload::Summary;
using preload::Waits;

Bytes bytes(const Json& json) { return {json.get<std::uint64_t>()}; }
std::chrono::nanoseconds nanoseconds(const Json& json) {
  return std::chrono::nanoseconds(json.get<std::int64_t>());
}
Gauge gauge(const Json& json) {
  return {.current = bytes(json.at("current")), .peak = bytes(json.at("peak"))};
}
Waits waits(const Json& json) {
  return {.count = json.at("count"), .total = nanoseconds(json.at("total_ns"))};
}

Passed passed(const Json& json) {
  return {.kind = json.at("kind"),
          .level = gauge(json.at("level_bytes")),
          .calls = json.at("calls"),
          .sum = bytes(json.at("sum_bytes")),
          .counted = json.at("counted")};
}

Statistics pool(const Json& json) {
  return {.requested = gauge(json.at("requested_bytes")),
          .allocated = gauge(json.at("allocated_bytes")),
          .awaiting = gauge(json.at("awaiting_bytes")),
          .cached = gauge(json.at("cached_bytes")),
          .reserved = gauge(json.at("reserved_bytes")),
          .held = gauge(json.at("held_bytes")),
          .budget = bytes(json.at("budget_bytes")),
          .hits = json.at("hits"),
          .misses = json.at("misses"),
          .handovers = json.at("handovers"),
          .waits = json.at("waits"),
          .retries = json.at("retries"),
          .releases = json.at("releases"),
          .failures = json.at("failures"),
          .waited = nanoseconds(json.at("waited_ns")),
          .pressure = {std::chrono::nanoseconds{}, nanoseconds(json.at("at_soft_ns")),
                       nanoseconds(json.at("at_hard_ns"))}};
}

PoolSummary one_pool(const Json& json) {
  return {.serves = json.at("serves"),
          .kind = json.at("kind"),
          .allocated = bytes(json.at("allocated_peak_bytes")),
          .queued = bytes(json.at("queued_peak_bytes")),
          .needed = bytes(json.at("needed_peak_bytes")),
          .reserved = bytes(json.at("reserved_peak_bytes"))};
}

DeviceSummary device(const Json& json) {
  DeviceSummary summary{.device = json.at("device"),
                        .total = bytes(json.at("total_bytes")),
                        .budget = bytes(json.at("budget_bytes")),
                        .pool = pool(json.at("pool")),
                        .pools = {},
                        .served_calls = json.at("served_calls"),
                        .served = bytes(json.at("served_bytes")),
                        .passed = {},
                        .paced = waits(json.at("paced")),
                        .batches = waits(json.at("batches")),
                        .batches_budget = waits(json.at("batches_budget")),
                        .batches_run_ahead = waits(json.at("batches_run_ahead")),
                        .batches_turn = waits(json.at("batches_turn")),
                        .batches_forced = json.at("batches_forced"),
                        .batches_marked = json.at("batches_marked")};
  for (const Json& one : json.at("pools")) summary.pools.push_back(one_pool(one));
  for (const Json& one : json.at("passed")) summary.passed.push_back(passed(one));
  return summary;
}

std::vector<SettingLine> settings(const Json& json) {
  std::vector<SettingLine> lines;
  for (const auto& [name, setting] : json.items()) {
    lines.push_back({name, setting.at("value"), setting.at("source")});
  }
  return lines;
}

void name_flags(Json& process, const FlagSources& flags) {
  for (auto& [name, setting] : process.at("settings").items()) {
    const auto flag = flags.find(setting.at("source").get<std::string>());
    if (flag != flags.end()) setting["source"] = flag->second;
  }
}

std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::optional<Summary> parse_summary(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Summary summary{.process = json.at("process"),
                    .program = json.at("program"),
                    .pool = json.at("pool"),
                    .policy = json.at("policy"),
                    .nvml = json.at("nvml"),
                    .settings = settings(json.at("settings")),
                    .devices = {}};
    for (const Json& one : json.at("devices")) summary.devices.push_back(device(one));
    return summary;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Collected collect_summaries(const std::string& folder, pid_t first) {
  Collected collected;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".json") continue;
    std::string text = read_whole(entry.path());
    if (auto summary = parse_summary(text)) {
      collected.summaries.push_back({*std::move(summary), std::move(text)});
    } else {
      collected.unreadable.push_back(entry.path().filename().string());
    }
  }
  std::ranges::sort(collected.unreadable);
  std::ranges::sort(collected.summaries, {}, [&](const SummaryFile& file) {
    const std::uint64_t process = file.summary.process;
    return std::tuple(process != static_cast<std::uint64_t>(first), process);
  });
  return collected;
}

std::string join_summaries(const std::vector<SummaryFile>& summaries) {
  if (summaries.size() == 1) return summaries.front().json;
  return preload::json_array(summaries,
                             [](const SummaryFile& file) {
                               return file.json.substr(0, file.json.find_last_not_of('\n') + 1);
                             }) +
         "\n";
}

std::string indented(std::string_view json, const FlagSources& flags) {
  Json all = Json::parse(json);
  if (all.is_array()) {
    for (Json& process : all) name_flags(process, flags);
  } else {
    name_flags(all, flags);
  }
  return all.dump(2) + "\n";
}

std::string with_process(std::string text, std::uint64_t process) {
  const std::string number = std::to_string(process);
  for (std::size_t at = 0; (at = text.find("%p", at)) != std::string::npos; at += number.size()) {
    text.replace(at, 2, number);
  }
  return text;
}

SummaryOutput::SummaryOutput(std::string option, std::string path)
    : option_(std::move(option)), path_(std::move(path)) {
  if (path_.empty()) return;
  if (path_.find("%p") == std::string::npos) {
    one_ = std::make_unique<OutputFile>(option_, path_);
    return;
  }
  // The processes have no numbers yet, so use this one's.
  const OutputFile sample(option_, with_process(path_, static_cast<std::uint64_t>(getpid())));
}

void SummaryOutput::commit(const std::vector<SummaryFile>& summaries, const FlagSources& flags) {
  if (path_.empty()) return;
  if (one_ != nullptr) {
    one_->commit(indented(join_summaries(summaries), flags));
    return;
  }
  for (const SummaryFile& file : summaries) {
    OutputFile(option_, with_process(path_, file.summary.process))
        .commit(indented(file.json, flags));
  }
}

}  // namespace weir::cli
