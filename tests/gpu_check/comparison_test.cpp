#include "tools/gpu_check/report/comparison.hpp"

#include <gtest/gtest.h>

#include "trainer/report/report.hpp"

namespace weir::gpu_check {
namespace {

weir::PolicyFigures figures(const std::string& name, double ratio) {
  weir::PolicyFigures f;
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

// Written by the program's own code, so that the two cannot drift apart.
TEST(GpuComparison, ReadsWhatTheTrainingProgramWrites) {
  weir::Comparison comparison;
  comparison.reference = figures("reference", 1);
  comparison.policies = {figures("unbounded", 0), figures("throttled", 0.75)};
  comparison.policies.push_back({});
  comparison.policies.back().name = "barrier";
  comparison.finished_runs = 4;
  comparison.plain = figures("plain", 1.5);
  comparison.policies[1].to_plain = Ratio{.median = 0.5, .low = 0.25, .high = 0.75};
  const auto json = nlohmann::json::parse(comparison_json(CompareSettings{}, comparison));

  const ComparisonFigures read = read_comparison(json);
  EXPECT_FALSE(read.settings.empty());
  EXPECT_TRUE(read.identical);
  EXPECT_EQ(read.finished_runs, 4U);
  EXPECT_DOUBLE_EQ(read.reference.batches_per_second, 100);
  const PolicyLine& throttled = read.policy("throttled");
  ASSERT_TRUE(throttled.ratio);
  EXPECT_DOUBLE_EQ(*throttled.ratio, 0.75);
  EXPECT_DOUBLE_EQ(throttled.ratio_low, 0.5);
  EXPECT_DOUBLE_EQ(throttled.ratio_high, 1);
  EXPECT_DOUBLE_EQ(throttled.idle_share.value(), 0.5);
  EXPECT_DOUBLE_EQ(throttled.host_us, 25);
  EXPECT_DOUBLE_EQ(throttled.to_plain.value().median, 0.5);
  EXPECT_DOUBLE_EQ(throttled.to_plain.value().low, 0.25);
  EXPECT_DOUBLE_EQ(throttled.to_plain.value().high, 0.75);
  EXPECT_DOUBLE_EQ(throttled.peak_reserved_bytes, 7 << 20);
  EXPECT_EQ(throttled.outcome, "finished");
  ASSERT_TRUE(read.plain.ratio);
  EXPECT_DOUBLE_EQ(*read.plain.ratio, 1.5);
  EXPECT_DOUBLE_EQ(read.plain.host_us, 25);
  EXPECT_FALSE(read.plain.idle_share);
  EXPECT_DOUBLE_EQ(read.plain.peak_reserved_bytes, 7 << 20);
  EXPECT_EQ(read.plain.outcome, "finished");
  EXPECT_FALSE(read.policy("unbounded").ratio);
  EXPECT_EQ(read.policy("unbounded").outcome, "out of memory in batch 1");
  EXPECT_EQ(read.policy("barrier").outcome, "not run");
  EXPECT_THROW((void)read.policy("nobody"), std::out_of_range);
}

TEST(GpuComparison, ReadsWhyThereIsNoLoopWithoutWeir) {
  weir::Comparison comparison;
  comparison.reference = figures("reference", 1);
  comparison.why_no_plain = "it needs a GPU";
  const auto json = nlohmann::json::parse(comparison_json(CompareSettings{}, comparison));
  EXPECT_EQ(read_comparison(json).plain.outcome, "it needs a GPU");
}

}  // namespace
}  // namespace weir::gpu_check
