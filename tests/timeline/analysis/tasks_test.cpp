// The task table, and the share of copying that is hidden behind computing.

#include "tools/timeline/analysis/tasks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "timeline/support/made_timeline.hpp"
#include "tools/timeline/analysis/idle.hpp"

namespace weir::timeline {
namespace {

using Figures = std::pair<std::uint64_t, std::uint64_t>;

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

constexpr std::uint64_t kCompute = 1;
constexpr std::uint64_t kCopyIn = 2;
constexpr std::uint64_t kOther = 3;
constexpr Span kAlways{0, UINT64_MAX};

/// The works of GPU 0.
class GpuWorks {
 public:
  GpuWorks& add(TimelineKind kind, std::uint64_t stream, Span span,
                TimelineCopy direction = TimelineCopy::kOther) {
    process_.records.push_back({.begin = span.begin,
                                .end = span.end,
                                .stream = stream,
                                .device = 1,
                                .kind = kind,
                                .detail = static_cast<std::uint8_t>(direction)});
    return *this;
  }
  GpuWorks& compute(Span span, std::uint64_t stream = kCompute) {
    return add(TimelineKind::kKernel, stream, span);
  }
  GpuWorks& copy(Span span, std::uint64_t stream = kCopyIn,
                 TimelineCopy direction = TimelineCopy::kToDevice) {
    return add(TimelineKind::kCopy, stream, span, direction);
  }
  /// Copying and hidden.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> figures(Span during = kAlways) {
    testing::sort_records(process_);
    const HiddenCopies found = hidden_copies(Index(process_), {.device = 1}, during);
    return {found.copying, found.hidden};
  }

 private:
  Process process_;
};

TEST(TimelineHiddenCopies, AreHiddenWhileTheDeviceComputes) {
  EXPECT_EQ(GpuWorks().copy({10, 20}).figures(), Figures(10, 0));
  EXPECT_EQ(GpuWorks().copy({10, 20}).compute({0, 30}).figures(), Figures(10, 10));
  EXPECT_EQ(GpuWorks().copy({10, 20}).compute({15, 30}).figures(), Figures(10, 5));
  EXPECT_EQ(GpuWorks().copy({10, 20}).compute({0, 12}).compute({19, 25}).figures(), Figures(10, 3));
  EXPECT_EQ(GpuWorks().copy({10, 20}).compute({20, 30}).compute({0, 10}).figures(), Figures(10, 0));
  EXPECT_EQ(GpuWorks().compute({0, 30}).figures(), Figures(0, 0)) << "nothing is copied";
}

TEST(TimelineHiddenCopies, ATimeCountsOnceHoweverManyCopyOrComputeInIt) {
  GpuWorks works;
  works.copy({10, 20}).copy({15, 30}, kOther).copy({40, 50});
  works.compute({12, 18}).compute({14, 16}, kOther).compute({17, 22}, kOther).compute({45, 60});
  EXPECT_EQ(works.figures(), Figures(20 + 10, 10 + 5));
}

TEST(TimelineHiddenCopies, OtherCopiesAndFillsNeitherCountNorHide) {
  GpuWorks works;
  works.copy({10, 20});
  for (const TimelineCopy direction :
       {TimelineCopy::kFromDevice, TimelineCopy::kOnDevice, TimelineCopy::kPeer}) {
    works.copy({0, 100}, kOther, direction);
  }
  works.add(TimelineKind::kSet, kCompute, {0, 100});
  EXPECT_EQ(works.figures(), Figures(10, 0));
}

TEST(TimelineHiddenCopies, OnlyTheAskedTimeAndDeviceCount) {
  GpuWorks works;
  works.copy({10, 20}).copy({90, 110}).compute({0, 15}).compute({95, 105});
  EXPECT_EQ(works.figures({12, 100}), Figures(8 + 10, 3 + 5));
  EXPECT_EQ(works.figures({20, 90}), Figures(0, 0));
  Process process;
  process.records = {
      {.begin = 0, .end = 9, .stream = 1, .device = 2, .kind = TimelineKind::kKernel}};
  EXPECT_EQ(hidden_copies(Index(process), {.device = 1}, kAlways).copying, 0U);
}

TEST(TimelineHiddenCopies, OfTheSchedulersStreamsThoseThatCopyAreCopies) {
  Process process;
  process.names = {"", "copy-in", "compute"};
  const auto on = [&](std::uint64_t stream, TimelineKind kind, Span span, std::uint32_t name = 0) {
    process.records.push_back({.begin = span.begin,
                               .end = span.end,
                               .stream = stream,
                               .name = name,
                               .source = 7,
                               .kind = kind});
  };
  on(kCopyIn, TimelineKind::kStream, {}, 1);
  on(kCompute, TimelineKind::kStream, {}, 2);
  on(kCompute, TimelineKind::kExecute, {0, 14});
  on(kCopyIn, TimelineKind::kExecute, {10, 20});
  const HiddenCopies found = hidden_copies(Index(process), {.source = 7}, kAlways);
  EXPECT_EQ(found.copying, 10U);
  EXPECT_EQ(found.hidden, 4U);
}

}  // namespace
}  // namespace weir::timeline
