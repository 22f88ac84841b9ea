// The summary for programs. tools/weir/run/summary_file.cpp parses it.

#include "allocator/base/version.hpp"
#include "tools/preload/summary/bare_json.hpp"
#include "tools/preload/summary/summary.hpp"

namespace weir::preload {
namespace {

std::uint64_t nanoseconds(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

std::string gauge(const Gauge& gauge) {
  return json_object({{"current", gauge.current.count}, {"peak", gauge.peak.count}});
}

std::string waits(const Waits& waits) {
  return json_object({{"count", waits.count}, {"total_ns", nanoseconds(waits.total)}});
}

std::string pool_json(const Statistics& pool) {
  return json_object({{"requested_bytes", gauge(pool.requested)},
                      {"allocated_bytes", gauge(pool.allocated)},
                      {"awaiting_bytes", gauge(pool.awaiting)},
                      {"cached_bytes", gauge(pool.cached)},
                      {"reserved_bytes", gauge(pool.reserved)},
                      {"held_bytes", gauge(pool.held)},
                      {"budget_bytes", pool.budget.count},
                      {"hits", pool.hits},
                      {"misses", pool.misses},
                      {"handovers", pool.handovers},
                      {"waits", pool.waits},
                      {"retries", pool.retries},
                      {"releases", pool.releases},
                      {"failures", pool.failures},
                      {"waited_ns", nanoseconds(pool.waited)},
                      {"at_soft_ns", nanoseconds(time_at(pool.pressure, PressureLevel::kSoft))},
                      {"at_hard_ns", nanoseconds(time_at(pool.pressure, PressureLevel::kHard))}});
}

std::string passed_json(const Passed& passed) {
  return json_object({{"kind", json_string(passed.kind)},
                      {"level_bytes", gauge(passed.level)},
                      {"calls", passed.calls},
                      {"sum_bytes", passed.sum.count},
                      {"counted", passed.counted ? "true" : "false"}});
}

std::string one_pool_json(const PoolSummary& pool) {
  return json_object({{"serves", json_string(pool.serves)},
                      {"kind", json_string(pool.kind)},
                      {"allocated_peak_bytes", pool.allocated.count},
                      {"queued_peak_bytes", pool.queued.count},
                      {"needed_peak_bytes", pool.needed.count},
                      {"reserved_peak_bytes", pool.reserved.count}});
}

std::string device_json(const DeviceSummary& device) {
  return json_object({{"device", static_cast<std::uint64_t>(device.device)},
                      {"total_bytes", device.total.count},
                      {"budget_bytes", device.budget.count},
                      {"pool", pool_json(device.pool)},
                      {"pools", json_array(device.pools, one_pool_json)},
                      {"fragmentation", json_share(fragmentation(device))},
                      {"served_calls", device.served_calls},
                      {"served_bytes", device.served.count},
                      {"served_share", json_share(served_share(device))},
                      {"passed", json_array(device.passed, passed_json)},
                      {"paced", waits(device.paced)},
                      {"batches", waits(device.batches)},
                      {"batches_budget", waits(device.batches_budget)},
                      {"batches_run_ahead", waits(device.batches_run_ahead)},
                      {"batches_turn", waits(device.batches_turn)},
                      {"batches_forced", device.batches_forced},
                      {"batches_marked", device.batches_marked}});
}

/// As settings_json of tools/program/json_text.hpp.
std::string settings_json(const std::vector<SettingLine>& settings) {
  std::vector<JsonMember> members;
  members.reserve(settings.size());
  for (const SettingLine& line : settings) {
    members.emplace_back(line.name, json_object({{"value", json_string(line.value)},
                                                 {"source", json_string(line.source)}}));
  }
  return json_object(members);
}

}  // namespace

std::string to_json(const Summary& summary) {
  return json_object({{"process", summary.process},  // first: at_exit.cpp knows a summary by it
                      {"program", json_string(summary.program)},
                      {"pool", json_string(summary.pool)},
                      {"policy", json_string(summary.policy)},
                      {"nvml", json_string(summary.nvml)},
                      {"settings", settings_json(summary.settings)},
                      {"devices", json_array(summary.devices, device_json)},
                      {"weir", json_string(kVersion)}}) +
         "\n";
}

}  // namespace weir::preload
