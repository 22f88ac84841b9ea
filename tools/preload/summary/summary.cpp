// The summary for people. Formats percentages and times with integers, because a program's locale
// may write a comma.

#include "tools/preload/summary/summary.hpp"

#include <algorithm>
#include <cstdio>

namespace weir::preload {
namespace {

std::string percent(double share) {
  // Rounded without libm, which a preloaded library avoids.
  const unsigned tenths = (static_cast<unsigned>(share * 2000) + 1) / 2;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

/// `1 call`, `3 calls`.
std::string number_of(std::uint64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string format_seconds(std::chrono::nanoseconds time) {
  const auto ms = static_cast<unsigned long long>(
      std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
  char text[40];
  std::snprintf(text, sizeof text, "%llu.%03llu s", ms / 1000, ms % 1000);
  return text;
}

/// `12, 0.340 s in all`.
std::string waits(std::uint64_t count, std::chrono::nanoseconds total) {
  return std::to_string(count) + ", " + format_seconds(total) + " in all";
}

std::string line(const std::string& label, const std::string& value) {
  constexpr std::size_t kWidth = 28;
  return "  " + label + std::string(kWidth - std::min(kWidth - 1, label.size()), ' ') + value +
         "\n";
}

std::string passed_line(const Passed& passed) {
  return line("passed, " + passed.kind,
              format_bytes(passed.sum) + " in " + number_of(passed.calls, "call") + ", peak " +
                  format_bytes(passed.level.peak) + (passed.counted ? "" : ", not in the budget"));
}

std::string device_text(const DeviceSummary& device) {
  const Statistics& pool = device.pool;
  std::string text = line("device " + std::to_string(device.device),
                          format_bytes(device.total) + ", budget " + format_bytes(device.budget));
  text += line("peak allocated", format_bytes(pool.allocated.peak));
  text += line("peak awaiting the device", format_bytes(pool.awaiting.peak));
  text += line("peak reserved", format_bytes(pool.reserved.peak));
  text += line("fragmentation", percent(fragmentation(device)) + ", " +
                                    percent(fragmentation_of_needed(device)) +
                                    " without what awaited the device");
  text += line("served by Weir", format_bytes(device.served) + " in " +
                                     number_of(device.served_calls, "call") + ", " +
                                     percent(served_share(device)) + " of the device bytes");
  for (const Passed& passed : device.passed) text += passed_line(passed);
  text += line("from the cache", std::to_string(pool.hits) + ", handed over " +
                                     std::to_string(pool.handovers) + ", by growth " +
                                     std::to_string(pool.misses));
  text += line("returned to the driver", number_of(pool.releases, "segment"));
  text += line("waits for memory", waits(pool.waits, pool.waited));
  text += line("time at memory pressure",
               "soft " + format_seconds(time_at(pool.pressure, PressureLevel::kSoft)) + ", hard " +
                   format_seconds(time_at(pool.pressure, PressureLevel::kHard)));
  text += line("retries", std::to_string(pool.retries));
  text += line("requests that failed", std::to_string(pool.failures));
  text += line("launches held back", waits(device.paced.count, device.paced.total));
  text += line("batches held back", waits(device.batches.count, device.batches.total) + ", of " +
                                        std::to_string(device.batches_marked));
  if (device.batches_marked != 0) {
    text += line("for the budget", waits(device.batches_budget.count, device.batches_budget.total));
    text += line("for the run-ahead target",
                 waits(device.batches_run_ahead.count, device.batches_run_ahead.total));
    text += line("for another's turn", waits(device.batches_turn.count, device.batches_turn.total));
    text += line("forced admissions", std::to_string(device.batches_forced));
  }
  return text;
}

double unused_share(Bytes reserved, Bytes used) noexcept {
  if (reserved.count == 0) return 0;
  return static_cast<double>(minus_or_zero(reserved, used).count) /
         static_cast<double>(reserved.count);
}

}  // namespace

double served_share(const DeviceSummary& device) noexcept {
  Bytes all = device.served;
  for (const Passed& passed : device.passed) {
    if (passed.counted) all += passed.sum;
  }
  if (all.count == 0) return 1;
  return static_cast<double>(device.served.count) / static_cast<double>(all.count);
}

double fragmentation(const DeviceSummary& device) noexcept {
  return unused_share(device.pool.reserved.peak, device.pool.allocated.peak);
}

double fragmentation_of_needed(const DeviceSummary& device) noexcept {
  Bytes reserved;
  Bytes needed;
  for (const PoolSummary& pool : device.pools) {
    reserved += pool.reserved;
    needed += pool.needed;
  }
  return unused_share(reserved, needed);
}

std::string to_text(const Summary& summary) {
  std::string text = "weir: process " + std::to_string(summary.process) + ", " + summary.program +
                     ": pool " + summary.pool + ", policy " + summary.policy + ", nvml " +
                     summary.nvml + "\n";
  for (const DeviceSummary& device : summary.devices) text += device_text(device);
  return text;
}

}  // namespace weir::preload
