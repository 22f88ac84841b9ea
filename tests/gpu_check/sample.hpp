#pragma once

// What a run that meets every condition leaves. All of it is made up for these tests: no figure
// here was measured, and there is no such device.

#include <nlohmann/json.hpp>
#include <string>

#include "tools/gpu_check/report/comparison.hpp"

namespace weir::testing {

using nlohmann::json;

inline json made_up_machine() {
  return {{"weir", "0.0.0"},
          {"commit", "made-up"},
          {"driver", "1.2.3"},
          {"driver_cuda", "13.0"},
          {"runtime", "13.0"},
          {"toolkit", "13.0.0"},
          {"gpus",
           {{{"name", "Made-up GPU 1000 (test sample)"},
             {"compute_capability", "9.9"},
             {"memory_bytes", 1 << 30},
             {"multiprocessors", 3}}}}};
}

inline json made_up_policy(const std::string& name, double ratio, const std::string& outcome) {
  return {{"policy", name},
          {"runs", 4},
          {"batches_per_second", 1000 * ratio},
          {"ratio_to_reference", ratio},
          {"ratio_low", ratio / 2},
          {"ratio_high", ratio * 2},
          {"idle_share", 0.25},
          {"last_run", {{"peak_reserved_bytes", 64 << 20}, {"outcome", outcome}}}};
}

inline json made_up_comparison() {
  return {{"settings", "made up for a test"},
          {"reference", made_up_policy("reference", 1, "finished")},
          {"policies",
           {made_up_policy("unbounded", 0, "out of memory in batch 7"),
            made_up_policy("backstop", 1, "finished"), made_up_policy("throttled", 1, "finished"),
            made_up_policy("barrier", 0.5, "finished")}},
          {"weights_identical", true},
          {"finished_runs", 16}};
}

inline json made_up_tests() {
  const json passed{{"name", "Passes"}, {"status", "RUN"}, {"result", "COMPLETED"}};
  return {{"testsuites", {{{"name", "MadeUp"}, {"testsuite", json::array({passed, passed})}}}}};
}

inline json made_up_kernel(const std::string& name, double median, double floor) {
  return {{"name", name},
          {"shape", "2x3"},
          {"floor_of", "copy"},
          {"median_us", median},
          {"floor_us", floor}};
}

inline json made_up_bench() {
  return {{"kernels",
           {made_up_kernel("copy", 10, 10), made_up_kernel("made_up", 15, 10),
            made_up_kernel("another", 30, 10)}}};
}

inline json made_up_step(const std::string& name) {
  return {{"name", name},   {"command", "weir-gpu " + name}, {"exit_code", 0}, {"outcome", "ok"},
          {"seconds", 2.0}, {"limit_seconds", 40.0}};
}

/// As `gather` returns it.
inline json made_up_evidence() {
  json steps = json::array();
  const auto add = [&](const std::string& name, const char* key, const json& found) {
    json step = made_up_step(name);
    step[key] = found;
    steps.push_back(std::move(step));
  };
  add("tests", "figures", made_up_tests());
  add("memcheck", "summary", "ERROR SUMMARY: 0 errors");
  add("racecheck", "summary", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)");
  for (const auto& comparison : gpu_check::kComparisons) {
    add(comparison.step, "figures", made_up_comparison());
  }
  add("bench", "figures", made_up_bench());
  return {{"date", "2000-01-01"}, {"machine", made_up_machine()}, {"steps", std::move(steps)}};
}

/// The step of that name, to change it.
inline json& step_in(json& evidence, const std::string& name) {
  for (json& step : evidence.at("steps")) {
    if (step.at("name") == name) return step;
  }
  throw std::out_of_range(name);
}

}  // namespace weir::testing
