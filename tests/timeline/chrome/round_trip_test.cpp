// Reading returns what was written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "files.hpp"
#include "random_process.hpp"
#include "support/random_seed.hpp"
#include "support/sanitized.hpp"

namespace weir::timeline::testing {
namespace {

using weir::testing::random_seed;
using weir::testing::seed_message;

TEST(ChromeRoundTrip, EveryFieldOfEveryRecordComesBack) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10; ++round) {
    Timeline timeline;
    for (int i = 0; i <= round % 3; ++i) timeline.processes.push_back(random_process(random));
    const Timeline read = from_chrome(to_chrome(timeline));
    ASSERT_EQ(read.processes.size(), timeline.processes.size());
    for (std::size_t i = 0; i < read.processes.size(); ++i) {
      expect_same(timeline.processes[i], read.processes[i]);
    }
    if (HasFailure()) return;
  }
}

TEST(ChromeRoundTrip, TheLargestTimesComeBackToTheNanosecond) {
  Timeline timeline;
  Process& process = timeline.processes.emplace_back();
  process.complete = true;
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  process.records = {
      {.begin = 1, .end = 2, .kind = TimelineKind::kBarrier},
      {.begin = (1ULL << 60U) + 1, .end = (1ULL << 60U) + 2, .kind = TimelineKind::kBarrier},
      {.begin = kMost, .end = kMost, .kind = TimelineKind::kNote}};
  expect_same(process, from_chrome(to_chrome(timeline)).processes.at(0));
}

TEST(ChromeRoundTrip, ASliceThatEndsBeforeItBeginsHasNoLength) {
  Timeline timeline;
  timeline.processes.emplace_back().records = {
      {.begin = 10, .end = 5, .kind = TimelineKind::kBarrier}};
  const Timeline read = from_chrome(to_chrome(timeline));
  EXPECT_EQ(read.processes.at(0).records.at(0).begin, 10U);
  EXPECT_EQ(read.processes.at(0).records.at(0).end, 10U);
}

TEST(ChromeRoundTrip, RecordsThatComeLateAreInOrderWhenRead) {
  StringSink sink;
  const auto writer = make_chrome_writer(sink);
  Process names;
  writer->begin({});
  const TimelineRecord late{.begin = 5, .end = 90, .thread = 1, .kind = TimelineKind::kBarrier};
  const TimelineRecord early{.begin = 10, .end = 20, .thread = 2, .kind = TimelineKind::kBarrier};
  writer->write(std::span(&early, 1), ProcessNames(names));
  writer->flush();
  writer->write(std::span(&late, 1), ProcessNames(names));
  writer->finish(3);
  const Timeline read = from_chrome(sink.text);
  EXPECT_THAT(read.processes.at(0).records, ::testing::ElementsAre(late, early));
  EXPECT_EQ(read.processes.at(0).lost, 3U);
  EXPECT_TRUE(read.processes.at(0).complete);
}

TEST(ChromeRoundTrip, AFileThatIsCutAnywhereIsWhatThereIsOfIt) {
  constexpr std::size_t kRecords = WEIR_TEST_SANITIZED != 0 ? 2 : 12;  // its time is quadratic
  std::mt19937_64 random(random_seed());
  Timeline timeline;
  timeline.processes.push_back(random_process(random, {.records = kRecords}));
  timeline.processes.back().info.program = "p";
  timeline.processes.back().complete = true;
  const std::string bytes = to_chrome(timeline);
  const Process whole = from_chrome(bytes).processes.at(0);
  const std::vector<std::string> lines = shown(whole);
  const std::size_t first_line = bytes.find('\n', 2);  // the event that names the process
  const std::size_t last_event = bytes.rfind("{\"ph\"");
  ASSERT_GT(last_event, first_line);
  std::size_t most = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    if (size < first_line - 1) {
      EXPECT_THROW((void)from_chrome(bytes.substr(0, size)), UsageError);
      continue;
    }
    const Process cut = from_chrome(bytes.substr(0, size)).processes.at(0);
    EXPECT_TRUE(!cut.complete || size > last_event);
    for (const std::string& line : shown(cut)) {
      EXPECT_THAT(lines, ::testing::Contains(line));
    }
    EXPECT_TRUE(cut.records.size() == most || cut.records.size() == most + 1);
    most = cut.records.size();
  }
  EXPECT_EQ(most, kRecords);
}

TEST(ChromeRoundTrip, WhatIsCutAfterAFlushHasAllThatWasFlushed) {
  StringSink sink;
  const auto writer = make_chrome_writer(sink);
  Process names;
  writer->begin({});
  std::vector<TimelineRecord> records;
  for (std::uint64_t i = 0; i < 100; ++i) {
    records.push_back(
        {.begin = i, .end = i, .sequence = i + 1, .thread = 1, .kind = TimelineKind::kAllocate});
  }
  writer->write(records, ProcessNames(names));
  writer->flush();
  const Timeline read = from_chrome(sink.text);
  EXPECT_EQ(read.processes.at(0).records, records);
  EXPECT_FALSE(read.processes.at(0).complete);
}

}  // namespace
}  // namespace weir::timeline::testing
