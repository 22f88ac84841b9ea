#pragma once

// A summary in which all figures differ, so that a mix-up shows.

#include "tools/preload/summary/summary.hpp"

namespace weir::testing {

[[nodiscard]] inline preload::DeviceSummary sample_device(int number) {
  using std::chrono::milliseconds;
  const auto base = static_cast<std::uint64_t>(number) * 100;
  const auto gauge = [&](std::uint64_t value) {
    return Gauge{.current = {base + value}, .peak = {base + value + 1}};
  };
  preload::DeviceSummary device;
  device.device = number;
  device.total = gib(16) + Bytes{base};
  device.budget = gib(12) + Bytes{base};
  device.pool.requested = gauge(2);
  device.pool.allocated = {.current = mib(3), .peak = mib(96)};
  device.pool.awaiting = gauge(4);
  device.pool.cached = gauge(6);
  device.pool.reserved = {.current = mib(5), .peak = mib(128)};
  device.pool.held = {.current = mib(4), .peak = mib(112)};
  device.pool.budget = gib(11) + Bytes{base};
  device.pool.hits = 21;
  device.pool.misses = 22;
  device.pool.handovers = 23;
  device.pool.waits = 24;
  device.pool.retries = 25;
  device.pool.releases = 26;
  device.pool.failures = 27;
  device.pool.waited = milliseconds(2'500);
  device.pool.pressure = {milliseconds(0), milliseconds(1'500), milliseconds(250)};
  device.pools = {{.serves = "all",
                   .kind = "round",
                   .allocated = mib(96),
                   .queued = {base + 5},
                   .needed = mib(112),
                   .reserved = mib(128)}};
  device.served_calls = 31;
  device.served = mib(300);
  device.passed = {
      {.kind = "arrays", .level = gauge(41), .calls = 43, .sum = mib(100)},
      {.kind = "host", .level = gauge(51), .calls = 1, .sum = gib(7), .counted = false}};
  device.paced = {.count = 61, .total = milliseconds(620)};
  device.batches = {.count = 71, .total = milliseconds(7'200)};
  device.batches_budget = {.count = 11, .total = std::chrono::milliseconds(1200)};
  device.batches_run_ahead = {.count = 57, .total = std::chrono::milliseconds(5700)};
  device.batches_turn = {.count = 3, .total = std::chrono::milliseconds(300)};
  device.batches_forced = 2;
  device.batches_marked = 81;
  return device;
}

[[nodiscard]] inline preload::Summary sample_summary() {
  return {.process = 4242,
          .program = "/usr/bin/python3",
          .pool = "round",
          .policy = "throttled",
          .nvml = "budget",
          .settings = {{"pool", "round", "default"}, {"budget", "80%", "WEIR_BUDGET"}},
          .devices = {sample_device(0), sample_device(1)}};
}

}  // namespace weir::testing
