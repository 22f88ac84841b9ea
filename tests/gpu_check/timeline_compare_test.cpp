#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/gpu_check/timeline_check/compare.hpp"

namespace weir::gpu_check {
namespace {

constexpr std::uint64_t kZero = 1'000'000'000;  // of the recording, on the machine's clock
constexpr std::uint64_t kMs = 1'000'000;

/// Two stretches: ten kernels of 1 ms in batch 1, five copies of 2 ms in batch 2.
std::vector<Stretch> two_stretches() {
  return {{.name = "kernels",
           .operations = 10,
           .batch = 1,
           .event_ms = 10,
           .is_timed = true,
           .begin_ns = kZero,
           .end_ns = kZero + 12 * kMs},
          {.name = "copies",
           .kind = StretchKind::kToDevice,
           .operations = 5,
           .batch = 2,
           .event_ms = 10,
           .is_timed = true,
           .begin_ns = kZero + 20 * kMs,
           .end_ns = kZero + 32 * kMs}};
}

timeline::Timeline recorded() {
  timeline::Process process;
  process.info.monotonic_ns = kZero;
  process.complete = true;
  for (std::uint64_t i = 0; i < 10; ++i) {
    process.records.push_back({.begin = kMs * (i + 1),
                               .end = kMs * (i + 2),
                               .id = 1 + i,
                               .batch = 1,
                               .kind = TimelineKind::kKernel});
  }
  for (std::uint64_t i = 0; i < 5; ++i) {
    process.records.push_back({.begin = 20 * kMs + 2 * kMs * i,
                               .end = 22 * kMs + 2 * kMs * i,
                               .id = 20 + i,
                               .batch = 2,
                               .kind = TimelineKind::kCopy,
                               .detail = static_cast<std::uint8_t>(TimelineCopy::kToDevice)});
  }
  return {{process}};
}

std::vector<TimelineRecord>& records_of(timeline::Timeline& timeline) {
  return timeline.processes.front().records;
}

TEST(GpuTimelineComparison, FindsEveryOperationWithItsBatchItsTimeAndItsPlace) {
  const TimelineComparison found = compare(recorded(), two_stretches());
  ASSERT_EQ(found.stretches.size(), 2U);
  for (const RecordedStretch& stretch : found.stretches) {
    EXPECT_EQ(stretch.recorded, stretch.launched.operations) << stretch.launched.name;
    EXPECT_EQ(stretch.joined, stretch.launched.operations);
    EXPECT_DOUBLE_EQ(stretch.sum_ms, 10);
    EXPECT_DOUBLE_EQ(stretch.span_ms, 10);
    EXPECT_TRUE(stretch.in_order);
    EXPECT_DOUBLE_EQ(stretch.outside_us, 0);
  }
  EXPECT_EQ(found.strays, 0U);
  EXPECT_TRUE(found.complete);
}

TEST(GpuTimelineComparison, GapsAreInTheSpanAndNotInTheSum) {
  timeline::Timeline timeline = recorded();
  for (TimelineRecord& record : records_of(timeline)) record.end -= kMs / 10;
  const RecordedStretch kernels = compare(timeline, two_stretches()).stretches.front();
  EXPECT_DOUBLE_EQ(kernels.sum_ms, 9);
  EXPECT_DOUBLE_EQ(kernels.span_ms, 9.9);
}

TEST(GpuTimelineComparison, AnOperationThatIsMissingOrMoreThanWereLaunchedIsSeen) {
  timeline::Timeline timeline = recorded();
  records_of(timeline).erase(records_of(timeline).begin() + 3);
  EXPECT_EQ(compare(timeline, two_stretches()).stretches.front().recorded, 9U);
  timeline = recorded();
  records_of(timeline).insert(records_of(timeline).begin() + 3, records_of(timeline)[3]);
  EXPECT_EQ(compare(timeline, two_stretches()).stretches.front().recorded, 11U);
}

TEST(GpuTimelineComparison, WithoutItsBatchAnOperationIsFoundByItsTimeAndNotJoined) {
  timeline::Timeline timeline = recorded();
  for (TimelineRecord& record : records_of(timeline)) record.batch = 0;
  const TimelineComparison found = compare(timeline, two_stretches());
  EXPECT_EQ(found.stretches.front().recorded, 10U);
  EXPECT_EQ(found.stretches.front().joined, 0U);
  EXPECT_EQ(found.strays, 0U);
}

TEST(GpuTimelineComparison, WhatIsOfNoStretchIsAStray) {
  timeline::Timeline timeline = recorded();
  TimelineRecord& kernel = records_of(timeline)[2];
  kernel.batch = 0;
  kernel.begin += 50 * kMs;
  kernel.end += 50 * kMs;
  TimelineRecord& copy = records_of(timeline).back();
  copy.detail = static_cast<std::uint8_t>(TimelineCopy::kFromDevice);
  const TimelineComparison found = compare(timeline, two_stretches());
  EXPECT_EQ(found.strays, 2U);
  EXPECT_EQ(found.stretches.front().recorded, 9U);
  EXPECT_EQ(found.stretches.back().recorded, 4U);
}

TEST(GpuTimelineComparison, WhatRunsBeforeItsTurnOrBesideAnotherIsNotInOrder) {
  timeline::Timeline timeline = recorded();
  std::swap(records_of(timeline)[2].id, records_of(timeline)[3].id);
  EXPECT_FALSE(compare(timeline, two_stretches()).stretches.front().in_order);
  timeline = recorded();
  records_of(timeline)[2].end += kMs / 2;
  EXPECT_FALSE(compare(timeline, two_stretches()).stretches.front().in_order);
  timeline = recorded();
  for (TimelineRecord& record : records_of(timeline)) record.id = record.batch;  // of a graph
  EXPECT_TRUE(compare(timeline, two_stretches()).stretches.front().in_order);
}

TEST(GpuTimelineComparison, AnotherClockIsSeenByHowFarItIsOff) {
  timeline::Timeline timeline = recorded();
  timeline.processes.front().info.monotonic_ns -= 3 * kMs;
  const TimelineComparison found = compare(timeline, two_stretches());
  EXPECT_EQ(found.stretches.front().recorded, 10U);
  EXPECT_DOUBLE_EQ(found.stretches.front().outside_us, 2000);
  EXPECT_DOUBLE_EQ(found.stretches.back().outside_us, 3000);
}

TEST(GpuTimelineComparison, ATimelineWithoutAProcessHasNothing) {
  const TimelineComparison found = compare({}, two_stretches());
  EXPECT_EQ(found.stretches.front().recorded, 0U);
  EXPECT_FALSE(found.complete);
  EXPECT_FALSE(count_activity({}).complete);
}

TEST(GpuTimelineComparison, ActivityIsCountedOverAllProcesses) {
  timeline::Timeline timeline = recorded();
  timeline.processes.push_back(recorded().processes.front());
  timeline.processes.back().lost = 7;
  timeline.processes.back().complete = false;
  const ActivityCounts counts = count_activity(timeline);
  EXPECT_EQ(counts.kernels, 20U);
  EXPECT_EQ(counts.copies, 10U);
  EXPECT_EQ(counts.lost, 7U);
  EXPECT_FALSE(counts.complete);
}

}  // namespace
}  // namespace weir::gpu_check
