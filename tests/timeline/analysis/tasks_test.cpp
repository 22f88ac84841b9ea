// The task table.

#include "tools/timeline/analysis/tasks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

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

/// A row as group, name, count, total, longest and bytes.
using Row =
    std::tuple<TaskGroup, std::string, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
std::vector<Row> rows_of(const TaskTable& table) {
  std::vector<Row> rows;
  for (const TaskRow& row : table.rows)
    rows.emplace_back(row.group, row.name, row.count, row.total, row.longest, row.bytes);
  return rows;
}

TEST(TimelineTasks, SetsAreOneRowWithTheirTimeAndBytes) {
  Process process;
  process.names = {"", "memset", "gemm"};
  const auto work = [&](TimelineKind kind, std::uint64_t begin, std::uint64_t end,
                        std::uint64_t bytes, std::uint32_t name) {
    process.records.push_back({.begin = begin,
                               .end = end,
                               .bytes = bytes,
                               .stream = 1,
                               .name = name,
                               .device = 1,
                               .kind = kind});
  };
  work(TimelineKind::kSet, 0, 100, 4096, 1);
  work(TimelineKind::kSet, 200, 350, 1024, 0);
  work(TimelineKind::kKernel, 400, 650, 0, 2);
  const auto table = task_tables(Index(process)).front();
  EXPECT_EQ(rows_of(table), (std::vector<Row>{{TaskGroup::kOperation, "gemm", 1, 250, 250, 0},
                                              {TaskGroup::kSet, "set", 2, 250, 150, 5120}}));
  EXPECT_DOUBLE_EQ(table.rows.back().share, 0.5);
  EXPECT_DOUBLE_EQ(table.rows.back().bytes_per_second, 5120 / 250e-9);
}

TEST(TimelineTasks, TheAllocatorHasARowForEachThingItDidWithCountAndBytes) {
  Process process;
  const auto did = [&](TimelineKind kind, std::uint64_t bytes) {
    process.records.push_back({.bytes = bytes, .source = 1, .kind = kind});
  };
  did(TimelineKind::kReserve, 4096);
  did(TimelineKind::kAllocate, 512);
  did(TimelineKind::kAllocate, 1024);
  did(TimelineKind::kAllocate, 512);
  did(TimelineKind::kFree, 1024);
  did(TimelineKind::kFree, 512);
  did(TimelineKind::kMap, 300);
  did(TimelineKind::kRelease, 2048);
  did(TimelineKind::kDriverAlloc, 70);
  did(TimelineKind::kDriverAlloc, 7);
  did(TimelineKind::kDriverFree, 60);
  const auto tables = task_tables(Index(process));
  ASSERT_EQ(tables.size(), 1U) << "no device worked";
  constexpr auto kGroup = TaskGroup::kAllocator;
  EXPECT_EQ(rows_of(tables.front()), (std::vector<Row>{{kGroup, "allocate", 3, 0, 0, 2048},
                                                       {kGroup, "driver allocate", 2, 0, 0, 77},
                                                       {kGroup, "driver free", 1, 0, 0, 60},
                                                       {kGroup, "free", 2, 0, 0, 1536},
                                                       {kGroup, "map", 1, 0, 0, 300},
                                                       {kGroup, "release", 1, 0, 0, 2048},
                                                       {kGroup, "reserve", 1, 0, 0, 4096}}));
}

}  // namespace
}  // namespace weir::timeline
