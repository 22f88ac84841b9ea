// The samples of what weir-train and the swap-in write, which report_test.py reads: so that
// report.py and the programs cannot drift apart.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/preload/summary/summary.hpp"
#include "trainer/report/report.hpp"

namespace weir {
namespace {

/// Where they differ, the message has what is to be in the sample.
void expect_is_sample(const std::string& name, const std::string& written) {
  std::ifstream in(WEIR_SAMPLES "/" + name);
  const auto now = nlohmann::json::parse(written);
  EXPECT_EQ(nlohmann::json::parse(in, nullptr, false), now) << name << ":\n" << now.dump(2);
}

PolicyFigures figures(const std::string& name, double ratio) {
  PolicyFigures f;
  f.name = name;
  f.runs = 2;
  f.batches_per_second = 100 * ratio;
  f.ratio = ratio;
  f.ratio_low = ratio - 0.25;
  f.ratio_high = ratio + 0.25;
  f.idle_share = 0.5;
  f.host_seconds = 25e-6;
  f.last.outcome = ratio > 0 ? Outcome::kFinished : Outcome::kOutOfMemory;
  f.last.pool.reserved.peak = mib(7);
  return f;
}

/// Settings that are the same on every machine.
CompareSettings settings() {
  CompareSettings settings;
  settings.train.device_memory = gib(8);
  return settings;
}

TEST(GpuReportSamples, AComparisonIsWhatTheTrainingProgramWrites) {
  Comparison comparison;
  comparison.reference = figures("reference", 1);
  comparison.policies = {figures("unbounded", 0), figures("throttled", 0.75)};
  comparison.policies.push_back({});
  comparison.policies.back().name = "barrier";
  comparison.finished_runs = 4;
  comparison.plain = figures("plain", 1.5);
  comparison.policies[1].to_plain = Ratio{.median = 0.5, .low = 0.25, .high = 0.75};
  expect_is_sample("comparison.json", comparison_json(settings(), comparison));
}

TEST(GpuReportSamples, AComparisonWithoutThePlainLoopIsWhatTheTrainingProgramWrites) {
  Comparison comparison;
  comparison.reference = figures("reference", 1);
  comparison.why_no_plain = "it needs a GPU";
  expect_is_sample("comparison_without_plain.json", comparison_json(settings(), comparison));
}

TEST(GpuReportSamples, ASummaryIsWhatTheSwapInWrites) {
  preload::DeviceSummary device;
  device.budget = mib(64);
  device.pool.reserved = {mib(1), mib(48)};
  device.pool.waits = 3;
  device.pool.waited = std::chrono::milliseconds(1500);
  device.served = mib(96);
  device.paced = {2, std::chrono::milliseconds(500)};
  device.batches = {4, std::chrono::milliseconds(1000)};
  device.passed = {{"arrays", {}, 1, mib(32), true},
                   {"modules", {}, 1, mib(7), true},
                   {"contexts", {}, 1, mib(1), true},
                   {"host", {}, 1, mib(500), false}};
  preload::Summary summary;
  summary.settings = {{"budget", "64MiB", "WEIR_BUDGET"}};
  summary.devices = {device, device};
  expect_is_sample("summary.json", preload::to_json(summary));
  expect_is_sample("summary_of_nothing.json", preload::to_json({}));
}

}  // namespace
}  // namespace weir
