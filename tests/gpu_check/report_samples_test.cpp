// The samples of what the swap-in writes, which report_test.py reads: so that the two cannot drift
// apart. A rehearsal reads what all else writes.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/preload/summary/summary.hpp"

namespace weir {
namespace {

/// Where they differ, the message has what is to be in the sample.
void expect_is_sample(const std::string& name, const std::string& written) {
  std::ifstream in(WEIR_SAMPLES "/" + name);
  const auto now = nlohmann::json::parse(written);
  EXPECT_EQ(nlohmann::json::parse(in, nullptr, false), now) << name << ":\n" << now.dump(2);
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
