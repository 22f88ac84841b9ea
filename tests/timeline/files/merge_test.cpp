// Several recordings on one clock.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "../chrome/files.hpp"
#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::HasSubstr;
using weir::testing::message_of;

Timeline recording(ProcessInfo info, std::uint64_t time = 100) {
  Timeline timeline;
  Process& process = timeline.processes.emplace_back();
  process.info = std::move(info);
  process.complete = true;
  process.records = {{.begin = time, .end = time + 5, .thread = 1, .kind = TimelineKind::kBarrier}};
  return timeline;
}

TEST(TimelineMerge, ProcessesOfOneMachineAreJoinedByItsMonotonicClock) {
  // Their times of day differ by a second from the monotonic clock.
  const Timeline merged =
      merge({recording({.pid = 1, .boot = "b", .monotonic_ns = 5000, .unix_ns = 70}),
             recording({.pid = 2, .boot = "b", .monotonic_ns = 8000, .unix_ns = 1'000'000'070})});
  ASSERT_EQ(merged.processes.size(), 2U);
  EXPECT_EQ(merged.processes[0].records[0].begin, 100U);
  EXPECT_EQ(merged.processes[1].records[0].begin, 3100U);
  EXPECT_EQ(merged.processes[1].records[0].end, 3105U);
  for (const Process& process : merged.processes) {
    EXPECT_EQ(process.info.monotonic_ns, 5000U);
    EXPECT_EQ(process.info.unix_ns, 70U);
  }
}

TEST(TimelineMerge, MachinesAreJoinedByTheTimeOfDay) {
  const Timeline merged = merge(
      {recording(
           {.pid = 1, .rank = 1, .host = "y", .boot = "c", .monotonic_ns = 9, .unix_ns = 5000}),
       recording(
           {.pid = 1, .rank = 0, .host = "x", .boot = "b", .monotonic_ns = 5, .unix_ns = 6000})});
  ASSERT_EQ(merged.processes.size(), 2U);
  EXPECT_EQ(merged.processes[0].info.rank, 0U) << "by rank";
  EXPECT_EQ(merged.processes[0].records[0].begin, 1100U);
  EXPECT_EQ(merged.processes[1].records[0].begin, 100U);
}

TEST(TimelineMerge, AMergedFileCanBeMergedWithOthers) {
  const auto at = [](std::uint32_t pid, std::uint64_t zero) {
    return recording({.pid = pid, .boot = "b", .monotonic_ns = zero, .unix_ns = zero});
  };
  Timeline once = merge({at(1, 5000), at(2, 8000)});
  const Timeline twice = merge({std::move(once), at(3, 2000)});
  const Timeline all = merge({at(1, 5000), at(2, 8000), at(3, 2000)});
  ASSERT_EQ(twice.processes.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(twice.processes[i].info.pid, all.processes[i].info.pid);
    EXPECT_EQ(twice.processes[i].records, all.processes[i].records);
  }
}

TEST(TimelineMerge, AMachineThatWasStartedAfterTheFirstRecordingIsMergedAgainInItsPlace) {
  const auto first =
      recording({.pid = 1, .host = "x", .boot = "b", .monotonic_ns = 90'000, .unix_ns = 100'000});
  // Its recordings began 400 and 410 after the first, and it itself 395 after the first.
  const auto second = [](std::uint32_t pid, std::uint64_t since_boot) {
    return recording({.pid = pid,
                      .host = "y",
                      .boot = "c",
                      .monotonic_ns = since_boot,
                      .unix_ns = 100'395 + since_boot});
  };
  const Timeline twice = merge({merge({first, second(2, 5)}), second(3, 15)});
  ASSERT_EQ(twice.processes.size(), 3U);
  const auto begin_of = [&](std::uint32_t pid) {
    const auto found =
        std::ranges::find(twice.processes, pid, [](const Process& each) { return each.info.pid; });
    return found->records.front().begin;
  };
  EXPECT_EQ(begin_of(1), 100U);
  EXPECT_EQ(begin_of(2), 500U);
  EXPECT_EQ(begin_of(3), 510U);
}

TEST(TimelineMerge, OneRecordingGivenTwiceIsRefused) {
  const ProcessInfo info{.pid = 7, .rank = 3, .program = "p", .host = "h", .unix_ns = 5};
  EXPECT_THAT(message_of<UsageError>([&] {
                (void)merge({recording(info), recording(info)});
              }),
              HasSubstr("the same recording appears twice: p, rank 3, pid 7 on h"));
}

TEST(TimelineMerge, OneProcessNumberOfTwoMachinesIsTwoProcesses) {
  const Timeline merged = merge({recording({.pid = 7, .host = "x", .unix_ns = 5}),
                                 recording({.pid = 7, .host = "y", .unix_ns = 5})});
  const std::string bytes = to_chrome(merged);
  EXPECT_THAT(bytes, HasSubstr("process, pid 7 on x"));
  EXPECT_THAT(bytes, HasSubstr("process, pid 7 on y"));
  EXPECT_EQ(from_chrome(bytes).processes.size(), 2U);
}

TEST(TimelineMerge, ARecordingWithoutAClockBeginsWithTheFirstAndSaysSo) {
  const Timeline merged = merge({recording({.pid = 1, .unix_ns = 5000}), recording({.pid = 2}),
                                 recording({.pid = 3, .unix_ns = 4000})});
  ASSERT_EQ(merged.processes.size(), 3U);
  const Process& unknown = merged.processes[1];
  EXPECT_EQ(unknown.info.pid, 2U);
  ASSERT_EQ(unknown.records.size(), 2U);
  EXPECT_THAT(std::string(unknown.name(unknown.records[0].name)), HasSubstr("clock is unknown"));
  EXPECT_EQ(unknown.records[1].begin, 100U);
}

TEST(TimelineMerge, RecordingsThatAreYearsApartAreRefused) {
  constexpr std::uint64_t kFar = 1ULL << 62U;
  EXPECT_THAT(
      message_of<UsageError>([] {
        (void)merge({recording({.pid = 1, .unix_ns = 1}), recording({.pid = 2, .unix_ns = kFar})});
      }),
      HasSubstr("began more than a year after the first"));
}

TEST(TimelineMerge, TimesThatAreTooLargeStayTheLargest) {
  const Timeline merged = merge(
      {recording({.pid = 1, .unix_ns = 1}), recording({.pid = 2, .unix_ns = 1000}, ~0ULL - 10)});
  EXPECT_EQ(merged.processes[1].records[0].begin, ~0ULL);
}

TEST(TimelineMerge, WhoWasCutAndWhatWasLostStaysWithEachProcess) {
  Timeline cut = recording({.pid = 1, .unix_ns = 1});
  cut.processes[0].complete = false;
  cut.processes[0].lost = 3;
  const Timeline read = from_chrome(to_chrome(merge({cut, recording({.pid = 2, .unix_ns = 1})})));
  ASSERT_EQ(read.processes.size(), 2U);
  EXPECT_FALSE(read.processes[0].complete);
  EXPECT_EQ(read.processes[0].lost, 3U);
  EXPECT_TRUE(read.processes[1].complete);
  EXPECT_EQ(read.processes[1].lost, 0U);
}

}  // namespace
}  // namespace weir::timeline::testing
