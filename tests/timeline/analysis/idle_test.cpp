// Idle time and its causes, barriers.

#include "tools/timeline/analysis/idle.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "timeline/support/made_timeline.hpp"
#include "tools/timeline/analysis/barriers.hpp"
#include "tools/timeline/analysis/batches.hpp"

namespace weir::timeline {
namespace {

using testing::made_process;
using testing::MadeOptions;

std::uint64_t time_of(const DeviceIdle& device, IdleCause cause) {
  return device.causes.at(static_cast<std::size_t>(cause)).total;
}

/// Nearly all of the idle time is put down to this cause, and there is some.
void expect_mostly(const DeviceIdle& idle, IdleCause cause) {
  EXPECT_GT(idle.idle, idle.recorded / 100);
  EXPECT_GT(20 * time_of(idle, cause), 19 * idle.idle);
}

TimelineRecord execution(std::uint64_t begin, std::uint64_t end, std::uint64_t id = 0) {
  return {.begin = begin,
          .end = end,
          .id = id,
          .stream = 1,
          .source = 1,
          .kind = TimelineKind::kExecute};
}
TimelineRecord on_thread(TimelineKind kind, std::uint64_t begin, std::uint64_t end,
                         std::uint64_t id, std::uint32_t name = 0) {
  return {
      .begin = begin, .end = end, .id = id, .name = name, .thread = 1, .source = 1, .kind = kind};
}
TimelineRecord kernel(std::uint64_t begin, std::uint64_t end, std::uint64_t id,
                      std::uint64_t stream) {
  return {.begin = begin,
          .end = end,
          .id = id,
          .stream = stream,
          .device = 1,
          .kind = TimelineKind::kKernel};
}

DeviceIdle idle_of(const Process& process) {
  const auto devices = idle_by_cause(Index(process));
  EXPECT_EQ(devices.size(), 1U);
  std::uint64_t sum = 0;
  for (const IdleSum& cause : devices.front().causes) sum += cause.total;
  EXPECT_EQ(sum, devices.front().idle);
  EXPECT_EQ(devices.front().busy + devices.front().idle, devices.front().recorded);
  return devices.front();
}

TEST(TimelineIdleCause, IsDecidedByTheLongest) {
  GapFacts facts{.length = 100, .after_submission = 10, .submission_known = true};
  const auto set = [&](IdleCause cause, std::uint64_t time) {
    facts.before_submission.at(static_cast<std::size_t>(cause)) = time;
  };
  EXPECT_EQ(cause_of(facts), IdleCause::kUnknown);
  set(IdleCause::kLoader, 60);
  EXPECT_EQ(cause_of(facts), IdleCause::kLoader);
  set(IdleCause::kBarrier, 60);
  EXPECT_EQ(cause_of(facts), IdleCause::kBarrier) << "ties go by the order of the causes";
  set(IdleCause::kUnknown, 61);
  EXPECT_EQ(cause_of(facts), IdleCause::kUnknown);
  facts.after_submission = 50;
  EXPECT_EQ(cause_of(facts), IdleCause::kLaunch);
  facts.submission_known = false;
  EXPECT_EQ(cause_of(facts), IdleCause::kUnknown);
  facts = {};
  EXPECT_EQ(cause_of(facts), IdleCause::kUnknown);
}

TEST(TimelineIdle, DevicesThatAreNoGpuAreCountedFromOne) {
  Process process = made_process({.batches = 2});
  EXPECT_EQ(idle_of(process).name, "device");
  std::vector<TimelineRecord> second;
  for (TimelineRecord record : process.records) {
    if (record.kind != TimelineKind::kExecute) continue;
    record.source += 30;
    second.push_back(record);
  }
  process.records.insert(process.records.end(), second.begin(), second.end());
  std::vector<std::string> names;
  for (const DeviceIdle& device : idle_by_cause(Index(process))) names.push_back(device.name);
  EXPECT_EQ(names, (std::vector<std::string>{"device 1", "device 2"}));
}

TEST(TimelineIdle, WithoutALimitAndWithAFastLoaderThereIsNone) {
  const DeviceIdle idle = idle_of(made_process({.run_ahead = 0}));
  EXPECT_LT(idle.idle, idle.recorded / 100);
}

TEST(TimelineIdle, ALoaderThatIsLateTenTimesIsFound) {
  MadeOptions options{.batches = 60};
  for (std::uint32_t batch = 5; batch <= 50; batch += 5) options.slow_loads[batch] = 50'000'000;
  const Process process = made_process(options);
  const DeviceIdle idle = idle_of(process);
  // Two batches of some 4 ms are queued when the loader begins to be late.
  EXPECT_GT(idle.idle, 10U * 40'000'000U);
  expect_mostly(idle, IdleCause::kLoader);
  EXPECT_EQ(std::ranges::count_if(idle.gaps,
                                  [](const Gap& gap) {
                                    return gap.span.length() > 30'000'000 &&
                                           gap.cause == IdleCause::kLoader;
                                  }),
            10);
}

TEST(TimelineIdle, ABarrierAfterEachBatchIsFoundAndNamed) {
  const Process process = made_process({.barrier_every = 1});
  const DeviceIdle idle = idle_of(process);
  EXPECT_GT(idle.idle, idle.recorded / 50);
  expect_mostly(idle, IdleCause::kBarrier);
  for (const Gap& gap : idle.gaps) {
    if (gap.cause == IdleCause::kBarrier) {
      EXPECT_EQ(process.name(gap.site), "trainer/loop.py:88");
    }
  }
}

TEST(TimelineIdle, ALimitOfOneBatchIsFound) {
  expect_mostly(idle_of(made_process({.run_ahead = 1, .wake_ns = 500'000})), IdleCause::kRunAhead);
}

/// A run in which a limit of one batch blocked the frontend, reported as if it were another wait.
Process held_back(TimelineKind kind, TimelineStall why) {
  Process process = made_process({.run_ahead = 1, .wake_ns = 500'000});
  for (TimelineRecord& record : process.records) {
    if (record.kind != TimelineKind::kStall) continue;
    record.kind = kind;
    record.detail = static_cast<std::uint8_t>(why);
  }
  return process;
}

TEST(TimelineIdle, ABatchThatIsNotAdmittedForWantOfRoomOrForOthersIsPutDownToTheBudget) {
  for (const TimelineStall why : {TimelineStall::kBudget, TimelineStall::kTurn}) {
    SCOPED_TRACE(to_string(why));
    const DeviceIdle idle = idle_of(held_back(TimelineKind::kStall, why));
    expect_mostly(idle, IdleCause::kBudget);
    EXPECT_EQ(time_of(idle, IdleCause::kRunAhead), 0U);
  }
}

TEST(TimelineIdle, ALaunchThatIsHeldBackIsFoundWhateverHeldItBack) {
  for (const TimelineStall why : {TimelineStall::kBudget, TimelineStall::kRunAhead}) {
    SCOPED_TRACE(to_string(why));
    expect_mostly(idle_of(held_back(TimelineKind::kPace, why)), IdleCause::kPace);
  }
}

TEST(TimelineIdle, AnAllocationThatWaitsIsFound) {
  Process process = made_process({.batches = 1, .layers = 1, .jitter = 0});
  const auto second = std::ranges::find_if(process.records, [&](const TimelineRecord& record) {
    return record.kind == TimelineKind::kSubmit && process.name(record.name) == "backward";
  });
  ASSERT_NE(second, process.records.end());
  const std::uint64_t id = second->id;
  constexpr std::uint64_t kLate = 5'000'000;
  const TimelineRecord wait{.begin = second->begin + 1,
                            .end = second->begin + kLate,
                            .batch = 1,
                            .thread = second->thread,
                            .kind = TimelineKind::kPoolWait};
  second->end += kLate;
  std::uint64_t done = 0;  // with what was submitted before
  std::uint64_t late = 0;
  for (TimelineRecord& record : process.records) {
    if (record.kind != TimelineKind::kExecute) continue;
    if (record.id == id) {
      record.begin += kLate;
      record.end += kLate;
      late = record.begin;
    } else {
      done = std::max(done, record.end);
    }
  }
  process.records.push_back(wait);
  testing::sort_records(process);
  const DeviceIdle idle = idle_of(process);
  ASSERT_GT(late, done + kLate / 2);
  const auto known = static_cast<double>(late - done);
  EXPECT_NEAR(static_cast<double>(time_of(idle, IdleCause::kBudget)), known, known / 20);
}

TEST(TimelineIdle, WorkThatWasSubmittedBeforeTheGapBeganLate) {
  Process process;
  process.records = {on_thread(TimelineKind::kSubmit, 0, 5, 1),
                     on_thread(TimelineKind::kSubmit, 5, 9, 2), execution(10, 100, 1),
                     execution(150, 200, 2)};
  const DeviceIdle idle = idle_of(process);
  EXPECT_EQ(idle.idle, 50U);
  EXPECT_EQ(time_of(idle, IdleCause::kLaunch), 50U);
}

TEST(TimelineIdle, AProfilersKernelsFindTheirCallsByCorrelation) {
  Process process;
  process.names.emplace_back("cudaStreamSynchronize");
  process.records = {on_thread(TimelineKind::kCall, 0, 5, 7),
                     on_thread(TimelineKind::kCall, 6, 1010, 8, 1),
                     kernel(10, 1000, 7, 3),
                     on_thread(TimelineKind::kCall, 1200, 1300, 9),
                     kernel(1310, 1400, 9, 3),
                     kernel(1405, 1500, 9, 4)};
  const DeviceIdle idle = idle_of(process);
  EXPECT_EQ(idle.idle, 315U);
  EXPECT_EQ(time_of(idle, IdleCause::kBarrier), 310U);
  EXPECT_EQ(time_of(idle, IdleCause::kLaunch), 5U);
}

TEST(TimelineIdle, WhereTheRecordingWasStoppedNothingIsIdle) {
  Process process;
  process.records = {{.begin = 0, .end = 0, .kind = TimelineKind::kStart},
                     execution(0, 100),
                     {.begin = 110, .end = 110, .kind = TimelineKind::kStop},
                     {.begin = 900, .end = 900, .kind = TimelineKind::kStart},
                     execution(930, 1000)};
  const DeviceIdle idle = idle_of(process);
  EXPECT_EQ(idle.recorded, 210U);
  EXPECT_EQ(idle.idle, 40U);
  EXPECT_EQ(idle.gap_count, 2U);
}

TEST(TimelineIdle, StreamsAreBusyAsLongAsTheirWork) {
  const Process process = made_process();
  const Index index(process);
  const auto streams = stream_busy(index);
  ASSERT_EQ(streams.size(), 2U);
  std::array<std::uint64_t, 2> busy{};
  for (const TimelineRecord& record : process.records)
    if (record.kind == TimelineKind::kExecute)
      busy.at(record.stream - 1) += record.end - record.begin;
  EXPECT_EQ(streams[0].busy, busy[0]);
  EXPECT_EQ(streams[1].busy, busy[1]);
}

TEST(TimelineBarriers, ASiteHasItsWaitsAndTheIdleTimeThatFollows) {
  Process process;
  process.names = {"", "read", "trainer/loop.py:88", "other.py:1"};
  const auto wait = [](std::uint64_t begin, std::uint64_t end, std::uint32_t site) {
    TimelineRecord record = on_thread(TimelineKind::kBarrier, begin, end, 0, 1);
    record.site = site;
    return record;
  };
  process.records = {execution(0, 100), wait(50, 110, 2),  execution(150, 300), wait(160, 200, 3),
                     wait(250, 320, 2), wait(320, 330, 3), execution(400, 410)};
  testing::sort_records(process);
  const auto sites = barriers(Index(process));
  ASSERT_EQ(sites.size(), 2U);
  EXPECT_EQ(sites[0].site, "other.py:1");
  EXPECT_EQ(sites[0].count, 2U);
  EXPECT_EQ(sites[0].waited, 50U);
  EXPECT_EQ(sites[0].idle_in, 10U);
  EXPECT_EQ(sites[0].idle_after, 70U);
  EXPECT_EQ(sites[1].site, "trainer/loop.py:88");
  EXPECT_EQ(sites[1].waited, 130U);
  EXPECT_EQ(sites[1].idle_in, 30U);
  EXPECT_EQ(sites[1].idle_after, 50U);
  EXPECT_EQ(describe(sites[1]), "trainer/loop.py:88 read 2 times, 50 ns of device idle after it");
}

}  // namespace
}  // namespace weir::timeline
