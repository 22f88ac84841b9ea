#pragma once

// What a run that meets every condition leaves. All of it is made up for these tests: no figure
// here was measured, and there is no such device.

#include <nlohmann/json.hpp>
#include <string>

#include "tools/gpu_check/report/comparison.hpp"
#include "tools/gpu_check/report/kernel_bounds.hpp"
#include "tools/gpu_check/report/programs.hpp"

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
          {"host_us", 40},
          {"last_run", {{"peak_reserved_bytes", 64 << 20}, {"outcome", outcome}}}};
}

/// Of the loop without Weir, whose idle share nobody knows.
inline json made_up_plain() {
  json plain = made_up_policy("plain", 1.01, "finished");
  plain.erase("idle_share");
  plain["host_us"] = 30;
  return plain;
}

inline json made_up_throttled(double ratio, double to_plain) {
  json throttled = made_up_policy("throttled", ratio, "finished");
  throttled["to_plain"] = {{"ratio", to_plain}, {"low", to_plain / 2}, {"high", to_plain * 2}};
  return throttled;
}

inline json made_up_comparison() {
  return {{"plain", made_up_plain()},
          {"settings", "made up for a test"},
          {"reference", made_up_policy("reference", 1, "finished")},
          {"policies",
           {made_up_policy("unbounded", 0, "out of memory in batch 7"),
            made_up_policy("backstop", 1, "finished"), made_up_throttled(1, 0.99),
            made_up_policy("barrier", 0.5, "finished")}},
          {"weights_identical", true},
          {"finished_runs", 16}};
}

inline json made_up_tests() {
  const json passed{{"name", "Passes"}, {"status", "RUN"}, {"result", "COMPLETED"}};
  return {{"testsuites", {{{"name", "MadeUp"}, {"testsuite", json::array({passed, passed})}}}}};
}

inline json made_up_kernel(const std::string& name, const std::string& shape, double median,
                           double floor) {
  return {{"name", name},
          {"shape", shape},
          {"floor_of", "copy"},
          {"median_us", median},
          {"floor_us", floor}};
}

/// A floor, two kernels, and those that have a bound by name.
inline json made_up_bench() {
  json kernels{made_up_kernel("copy", "2x3", 100, 100), made_up_kernel("another", "2x3", 105, 100),
               made_up_kernel("made_up", "2x3", 115, 100)};
  for (const auto& bound : gpu_check::kNamedBounds) {
    kernels.push_back(made_up_kernel(bound.kernel, bound.shape, 100, 100));
  }
  return {{"kernels", std::move(kernels)}};
}

inline json made_up_summary(double served, double passed) {
  const json gauge{{"current", 0}, {"peak", 1 << 20}};
  const json waits{{"count", 2}, {"total_ns", 500000000}};
  const auto kind = [&](const char* name, double sum, bool counted) {
    return json{{"kind", name},
                {"level_bytes", gauge},
                {"calls", 1},
                {"sum_bytes", sum},
                {"counted", counted}};
  };
  json device{{"device", 0},
              {"budget_bytes", 1 << 30},
              {"pool", {{"reserved_bytes", gauge}, {"waits", 1}, {"waited_ns", 250000000}}},
              {"served_bytes", served},
              {"paced", waits},
              {"batches", waits}};
  device["passed"] = {kind("arrays", passed, true), kind("modules", 1e12, true),
                      kind("host", 1e12, false)};
  return {{"process", 1}, {"devices", json::array({std::move(device)})}};
}

inline json made_up_run(const std::string& setup) {
  json run{{"setup", setup},
           {"command", "made up"},
           {"exit_code", 0},
           {"stopped", false},
           {"said", ""},
           {"printed",
            {{"framework", "Made-up framework 1"},
             {"outcome", "finished"},
             {"losses", {"0x1p+0", "0x1p-1", "0x1p-2"}},
             {"seconds", gpu_check::with_weir(setup) ? 3 : 2},
             {"peak_reserved_bytes", 64 << 20}}}};
  if (gpu_check::with_weir(setup)) run["summary"] = made_up_summary(995, 5);
  return run;
}

inline json made_up_out_of_memory(const std::string& setup) {
  json run = made_up_run(setup);
  run["exit_code"] = 75;
  run["printed"] = {{"outcome", "out of memory"}};
  return run;
}

inline json made_up_programs() {
  json programs = json::array();
  const auto add = [&](const char* name, json runs) {
    programs.push_back({{"name", name}, {"runs", std::move(runs)}});
  };
  for (const auto& program : gpu_check::kTrainingPrograms) {
    add(program.name, {made_up_run("plain"), made_up_run("weir"), made_up_run("plain_async"),
                       made_up_run("weir_async")});
  }
  add(gpu_check::kPrefetchProgram.name,
      {made_up_run("enough"), made_up_out_of_memory("plain"), made_up_out_of_memory("plain_async"),
       made_up_run("weir_async"), made_up_run("weir_batches")});
  json shared = json::array({made_up_run("plain")});
  for (int process = 0; process < 8; ++process) shared.push_back(made_up_run("weir_async"));
  add(gpu_check::kSharedProgram.name, std::move(shared));
  return {{"programs", std::move(programs)}};
}

inline json made_up_fact(const std::string& name, const std::string& expected,
                         const std::string& answer, const std::string& otherwise) {
  return {{"fact", name},
          {"expected", expected},
          {"otherwise", otherwise},
          {"answer", answer},
          {"answered", true}};
}

/// One whose answer is not the expected one, one that Weir counts on, and a cost.
inline json made_up_facts() {
  return {{"facts",
           {made_up_fact("made-up fact", "7", "8", ""),
            made_up_fact("made-up need", "yes", "yes", "made-up harm may be done"),
            made_up_fact("made-up cost", "(a cost)", "9 us", "")}}};
}

inline json made_up_traces() {
  const auto pool = [](const char* name, double reserved) {
    return json{{"pool", name},      {"completed", true}, {"peak_reserved_bytes", reserved},
                {"driver_calls", 5}, {"mapped_pages", 3}, {"ns_per_operation", 123.4}};
  };
  return {
      {"traces",
       json::array({{{"trace", "bench/traces/made_up.csv.gz"},
                     {"peak_requested_bytes", 1e9},
                     {"pools", json::array({pool("round:24", 2e9), pool("paged", 1.02e9)})}}})}};
}

inline json made_up_stretch(const std::string& name, double event_ms) {
  return {{"name", name},     {"operations", 100},    {"recorded", 100},    {"joined", 100},
          {"timed", true},    {"event_ms", event_ms}, {"sum_ms", event_ms}, {"span_ms", event_ms},
          {"in_order", true}, {"outside_us", 0.0}};
}

/// Two stretches that are timed, and one that is only counted.
inline json made_up_timeline() {
  json brief = made_up_stretch("made-up empty kernel", 2);
  brief["timed"] = false;
  brief["sum_ms"] = 1;
  return {{"no_cupti", ""},
          {"refused", ""},
          {"complete", true},
          {"lost", 0},
          {"strays", 0},
          {"stretches",
           {made_up_stretch("made-up kernel", 100), made_up_stretch("made-up copy", 200), brief}}};
}

inline json made_up_timeline_cost() {
  const auto pair = [](double recorded) {
    return json{{"plain", 100}, {"recorded", recorded}, {"kernels", 7}, {"lost", 0}};
  };
  return {{"why", ""}, {"pairs", {pair(99), pair(80), pair(101), pair(98)}}};
}

inline json made_up_recorded_run(const std::string& setup) {
  return {{"setup", setup},
          {"exit_code", 0},
          {"stopped", false},
          {"said", ""},
          {"lines", json::array()},
          {"printed", {{"losses", {"0x1p+0", "0x1p-1"}}, {"profiled_kernels", 0}}},
          {"timeline", {{"kernels", 500}, {"copies", 5}, {"lost", 0}, {"complete", true}}}};
}

inline json made_up_timeline_programs() {
  json plain = made_up_recorded_run("plain");
  plain.erase("timeline");
  plain["printed"]["profiled_kernels"] = 500;
  json recorded = made_up_recorded_run("recorded");
  recorded["page_bytes"] = 1 << 20;
  json inside = made_up_recorded_run("inside");
  inside["printed"]["profiled_kernels"] = 500;
  json outside = made_up_recorded_run("outside");
  outside["other_report_bytes"] = 1000;
  return {{"left_out", ""},
          {"runs", {plain, recorded, made_up_recorded_run("injected"), inside, outside}}};
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
  add("facts", "figures", made_up_facts());
  add("traces", "figures", made_up_traces());
  add("timeline", "figures", made_up_timeline());
  add("timeline_cost", "figures", made_up_timeline_cost());
  add("timeline_programs", "figures", made_up_timeline_programs());
  add("programs", "figures", made_up_programs());
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
