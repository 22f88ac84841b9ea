#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stop_token>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/xml.hpp"
#include "trainer/compare/compare_timelines.hpp"
#include "trainer/jobs.hpp"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kMiB = 1 << 20;

CompareSettings settings_of() { return {.train = testing::device_bound_job()}; }

PolicyFigures figures_of(const std::string& name, double ratio, Outcome outcome, Bytes peak) {
  PolicyFigures figures;
  figures.name = name;
  figures.runs = 1;
  figures.batches_per_second = 2500;
  figures.ratio = ratio;
  figures.last.outcome = outcome;
  figures.last.batches = 39;
  figures.last.pool.reserved.peak = peak;
  return figures;
}

Comparison comparison_of() {
  Comparison comparison;
  comparison.reference = figures_of("reference", 1, Outcome::kFinished, mib(65));
  comparison.policies = {figures_of("unbounded", 0, Outcome::kOutOfMemory, mib(5)),
                         figures_of("throttled", 0.98, Outcome::kFinished, mib(3))};
  return comparison;
}

std::vector<MemoryCurve> curves() {
  return {{"reference", {{0, 0}, {1e6, 64 * kMiB}, {9e6, 64 * kMiB}}},
          {"unbounded", {{0, 0}, {1e6, 4 * kMiB}}},
          {"throttled", {{0, 0}, {1e6, 2 * kMiB}, {9e6, 2 * kMiB}}}};
}

TEST(ComparePicture, NamesPeakSpeedAndOutcomeOfEachCurve) {
  const std::string svg = comparison_svg(settings_of(), comparison_of(), curves());
  EXPECT_EQ(testing::xml_fault(svg), "");
  for (const char* words :
       {"unbounded, enough memory: peak 65 MiB", "unbounded in 5 MiB: out of memory in batch 40",
        "throttled: peak 3 MiB, 0.98 times its speed"}) {
    EXPECT_THAT(svg, HasSubstr(">" + std::string(words) + "</text>"));
    EXPECT_THAT(svg, HasSubstr("<g><title>" + std::string(words))) << "where a mouse points at it";
  }
  EXPECT_EQ(testing::occurrences(svg, ">budget<"), 2);
  EXPECT_EQ(testing::occurrences(svg, "fill=\"none\""), 5)
      << "the reference is in the upper plot alone";
}

TEST(ComparePicture, ARunThatRanOutOrDivergedHasNoSpeed) {
  Comparison comparison = comparison_of();
  comparison.reference.last.outcome = Outcome::kOutOfMemory;
  comparison.policies[1].ratio = 0;
  EXPECT_THAT(comparison_svg(settings_of(), comparison, curves()),
              AllOf(HasSubstr(">unbounded, enough memory: out of memory in batch 40<"),
                    HasSubstr(">throttled: peak 3 MiB<"), Not(HasSubstr("times its speed"))));
}

TEST(ComparePicture, OfAnInterruptedComparisonHasTheCurvesSoFar) {
  const std::string svg = comparison_svg(settings_of(), {}, {curves().front()});
  EXPECT_EQ(testing::xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr(">unbounded, enough memory<"));
  EXPECT_EQ(testing::xml_fault(comparison_svg(settings_of(), {}, {})), "");
}

TEST(ComparePicture, ARecordedRunBeginsAtZeroAndStaysInItsBudget) {
  CompareSettings settings = settings_of();
  settings.train.batches.value = 60;
  const std::vector<MemoryCurve> recorded = record_curves(settings, {});
  ASSERT_EQ(recorded.size(), 5U);
  EXPECT_EQ(recorded.front().name, "reference");
  for (const MemoryCurve& curve : recorded) {
    ASSERT_FALSE(curve.reserved.empty()) << curve.name;
    EXPECT_EQ(curve.reserved.front().time, 0) << curve.name;
    EXPECT_TRUE(std::ranges::is_sorted(curve.reserved, {}, &picture::Point::time)) << curve.name;
    EXPECT_GT(curve.reserved.back().value, 0) << curve.name;
    if (curve.name == "throttled" || curve.name == "barrier") {
      EXPECT_GT(curve.reserved.back().time, 0.2 * recorded.front().reserved.back().time)
          << "it ends with the run and not with the last change";
    }
    if (curve.name == "reference") continue;
    for (const picture::Point& point : curve.reserved) ASSERT_LE(point.value, 5 * kMiB);
  }
}

TEST(ComparePicture, WhenStoppedNothingMoreIsRecorded) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(record_curves(settings_of(), {.stop = stop.get_token()}).empty());
}

}  // namespace
}  // namespace weir
