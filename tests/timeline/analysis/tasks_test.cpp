// The task table.

#include "tools/timeline/analysis/tasks.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "timeline/support/made_timeline.hpp"
#include "tools/timeline/analysis/idle.hpp"

namespace weir::timeline {
namespace {

std::uint64_t sum_of(const TaskTable& table) {
  std::uint64_t sum = 0;
  for (const TaskRow& row : table.rows) sum += row.total;
  return sum;
}

TEST(TimelineTasks, AddUpToTheStreamsBusyTimeExactly) {
  const Process process = testing::made_process();
  const Index index(process);
  const auto tables = task_tables(index);
  ASSERT_EQ(tables.size(), 2U);
  std::uint64_t busy = 0;
  for (const StreamBusy& stream : stream_busy(index)) busy += stream.busy;
  EXPECT_EQ(sum_of(tables.front()), tables.front().busy);
  EXPECT_EQ(tables.front().busy, busy);
  EXPECT_EQ(tables.front().count, 40U * 9U);
  const auto copy = std::ranges::find(tables.front().rows, "copy to device", &TaskRow::name);
  ASSERT_NE(copy, tables.front().rows.end());
  EXPECT_EQ(copy->count, 40U);
  EXPECT_EQ(copy->bytes, 40U * ((1U << 20U) - 100U));
  EXPECT_NEAR(copy->bytes_per_second * static_cast<double>(copy->total) / 1e9,
              static_cast<double>(copy->bytes), 1);
  const auto stall = std::ranges::find(tables.back().rows, "stall: run-ahead", &TaskRow::name);
  ASSERT_NE(stall, tables.back().rows.end());
  EXPECT_EQ(stall->count, 38U);
}

TEST(TimelineTasks, OverlappingWorkOfAStreamCountsOnce) {
  Process process;
  process.names = {"", "adam_update", "other"};
  process.records = {
      {.begin = 0, .end = 100, .stream = 1, .name = 1, .device = 1, .kind = TimelineKind::kKernel},
      {.begin = 50, .end = 120, .stream = 1, .name = 2, .device = 1, .kind = TimelineKind::kKernel},
      {.begin = 60, .end = 70, .stream = 1, .name = 2, .device = 1, .kind = TimelineKind::kKernel},
      {.begin = 60,
       .end = 70,
       .bytes = 5,
       .stream = 2,
       .device = 1,
       .kind = TimelineKind::kCopy,
       .detail = 2}};
  const auto table = task_tables(Index(process)).front();
  EXPECT_EQ(table.busy, 130U);
  EXPECT_EQ(sum_of(table), 130U);
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].name, "adam_update");
  EXPECT_EQ(table.rows[0].total, 100U);
  EXPECT_EQ(table.rows[1].total, 20U);
  EXPECT_EQ(table.rows[1].longest, 70U);
  EXPECT_EQ(table.rows[2].name, "copy from device");
}

}  // namespace
}  // namespace weir::timeline
