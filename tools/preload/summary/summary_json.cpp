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
  JsonObject object;
  object.add("current", gauge.current.count);
  object.add("peak", gauge.peak.count);
  return object.text();
}

std::string waits(const Waits& waits) {
  JsonObject object;
  object.add("count", waits.count);
  object.add("total_ns", nanoseconds(waits.total));
  return object.text();
}

std::string pool_json(const Statistics& pool) {
  JsonObject object;
  object.add("requested_bytes", gauge(pool.requested));
  object.add("allocated_bytes", gauge(pool.allocated));
  object.add("awaiting_bytes", gauge(pool.awaiting));
  object.add("cached_bytes", gauge(pool.cached));
  object.add("reserved_bytes", gauge(pool.reserved));
  object.add("held_bytes", gauge(pool.held));
  object.add("budget_bytes", pool.budget.count);
  object.add("hits", pool.hits);
  object.add("misses", pool.misses);
  object.add("handovers", pool.handovers);
  object.add("waits", pool.waits);
  object.add("retries", pool.retries);
  object.add("releases", pool.releases);
  object.add("failures", pool.failures);
  object.add("waited_ns", nanoseconds(pool.waited));
  return object.text();
}

std::string passed_json(const Passed& passed) {
  JsonObject object;
  object.add("kind", json_string(passed.kind));
  object.add("level_bytes", gauge(passed.level));
  object.add("calls", passed.calls);
  object.add("sum_bytes", passed.sum.count);
  object.add("counted", passed.counted ? "true" : "false");
  return object.text();
}

std::string one_pool_json(const PoolSummary& pool) {
  JsonObject object;
  object.add("serves", json_string(pool.serves));
  object.add("kind", json_string(pool.kind));
  object.add("allocated_peak_bytes", pool.allocated.count);
  object.add("queued_peak_bytes", pool.queued.count);
  object.add("needed_peak_bytes", pool.needed.count);
  object.add("reserved_peak_bytes", pool.reserved.count);
  return object.text();
}

std::string device_json(const DeviceSummary& device) {
  JsonObject object;
  object.add("device", static_cast<std::uint64_t>(device.device));
  object.add("total_bytes", device.total.count);
  object.add("budget_bytes", device.budget.count);
  object.add("pool", pool_json(device.pool));
  object.add("pools", json_array(device.pools, one_pool_json));
  object.add("fragmentation", json_share(fragmentation(device)));
  object.add("served_calls", device.served_calls);
  object.add("served_bytes", device.served.count);
  object.add("served_share", json_share(served_share(device)));
  object.add("passed", json_array(device.passed, passed_json));
  object.add("paced", waits(device.paced));
  object.add("batches", waits(device.batches));
  object.add("batches_budget", waits(device.batches_budget));
  object.add("batches_run_ahead", waits(device.batches_run_ahead));
  object.add("batches_turn", waits(device.batches_turn));
  object.add("batches_forced", device.batches_forced);
  object.add("batches_marked", device.batches_marked);
  return object.text();
}

/// As settings_json of tools/program/json_text.hpp.
std::string settings_json(const std::vector<SettingLine>& settings) {
  JsonObject object;
  for (const SettingLine& line : settings) {
    JsonObject setting;
    setting.add("value", json_string(line.value));
    setting.add("source", json_string(line.source));
    object.add(line.name, setting.text());
  }
  return object.text();
}

}  // namespace

std::string to_json(const Summary& summary) {
  JsonObject object;
  object.add("process", summary.process);  // first: at_exit.cpp knows a summary by it
  object.add("program", json_string(summary.program));
  object.add("pool", json_string(summary.pool));
  object.add("policy", json_string(summary.policy));
  object.add("nvml", json_string(summary.nvml));
  object.add("settings", settings_json(summary.settings));
  object.add("devices", json_array(summary.devices, device_json));
  object.add("weir", json_string(kVersion));
  return object.text() + "\n";
}

}  // namespace weir::preload
