// What is written in a format is read back: whole, flushed, cut anywhere or damaged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../chrome/files.hpp"
#include "../chrome/random_process.hpp"
#include "allocator/base/error.hpp"
#include "support/random_seed.hpp"
#include "support/sanitized.hpp"
#include "tests/timeline/support/made_timeline.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline::testing {
namespace {

using weir::testing::random_seed;
using weir::testing::seed_message;

/// Of each suffix whose format is read by itself.
class RoundTrip : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static bool is_json() { return GetParam() == ".json"; }
  [[nodiscard]] static std::unique_ptr<Writer> writer_to(ByteSink& sink) {
    return find_format("run" + GetParam(), FormatUse::kWrite)->format->make_writer(sink);
  }
  [[nodiscard]] static std::string written(const Timeline& timeline) {
    StringSink sink;
    write_timeline(timeline, *writer_to(sink));
    return sink.text;
  }
  [[nodiscard]] static Timeline read(std::string_view bytes) {
    const MemoryFile file(bytes);
    return read_timeline(file.path());
  }
  [[nodiscard]] static Process only(std::string_view bytes) {
    Timeline timeline = read(bytes);
    EXPECT_EQ(timeline.processes.size(), 1U);
    return timeline.processes.empty() ? Process{} : std::move(timeline.processes.front());
  }
};
INSTANTIATE_TEST_SUITE_P(Formats, RoundTrip, ::testing::Values(".json", ".pftrace"),
                         [](const auto& suffix) { return suffix.param.substr(1); });

TEST_P(RoundTrip, EveryFieldOfEveryRecordComesBack) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10; ++round) {
    Timeline timeline;
    for (int i = 0; i <= round % 3; ++i) timeline.processes.push_back(random_process(random));
    const Timeline found = read(written(timeline));
    ASSERT_EQ(found.processes.size(), timeline.processes.size());
    for (std::size_t i = 0; i < found.processes.size(); ++i) {
      const Process& had = timeline.processes[i];
      const Process& has = found.processes[i];
      expect_same(had, has);
      if (is_json()) continue;  // it has no bytes that are no text
      EXPECT_EQ(has.info.program, had.info.program);
      for (std::size_t r = 0; r < has.records.size(); ++r) {
        ASSERT_EQ(has.name(has.records[r].name), had.name(had.records[r].name)) << r;
      }
    }
    if (HasFailure()) return;
  }
}

TEST_P(RoundTrip, ARunComesBackAlsoWhereItsSlicesCameLate) {
  Process run = made_process({.seed = 3});
  run.lost = 3;
  StringSink sink;
  const auto writer = writer_to(sink);
  writer->begin(run.info);
  const ProcessNames names(run);
  const std::span<const TimelineRecord> all(run.records);
  std::vector<TimelineRecord> slices;  // a flush later than the events within them
  for (std::size_t at = 0; at < all.size(); at += 100) {
    std::vector<TimelineRecord> now = std::exchange(slices, {});
    for (const TimelineRecord& record :
         all.subspan(at, std::min<std::size_t>(100, all.size() - at))) {
      (record.kind == TimelineKind::kExecute ? slices : now).push_back(record);
    }
    writer->write(now, names);
    writer->flush();
  }
  writer->write(slices, names);
  writer->finish(run.lost);
  const Process process = only(sink.text);
  EXPECT_EQ(process.lost, run.lost);
  EXPECT_TRUE(process.complete);
  EXPECT_TRUE(std::ranges::is_sorted(process.records, {}, &TimelineRecord::begin));
  EXPECT_THAT(shown(process), ::testing::UnorderedElementsAreArray(shown(run)));
}

TEST_P(RoundTrip, AFileThatIsCutAnywhereIsWhatThereIsOfIt) {
  constexpr std::size_t kRecords = WEIR_TEST_SANITIZED != 0 ? 2 : 12;  // its time is quadratic
  std::mt19937_64 random(random_seed());
  Timeline timeline;
  timeline.processes.push_back(random_process(random, {.records = kRecords}));
  timeline.processes.back().info.program = "p";
  timeline.processes.back().complete = true;
  const std::string bytes = written(timeline);
  const std::vector<std::string> lines = shown(only(bytes));
  const std::size_t last_event = is_json() ? bytes.rfind("{\"ph\"") : bytes.size() - 1;
  std::size_t most = 0;
  bool any = false;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    Process cut;
    try {
      cut = only(std::string_view(bytes).substr(0, size));
    } catch (const UsageError&) {
      ASSERT_FALSE(any);  // only before the process is told
      continue;
    }
    any = true;
    EXPECT_TRUE(!cut.complete || size > last_event);
    for (const std::string& line : shown(cut)) EXPECT_THAT(lines, ::testing::Contains(line));
    ASSERT_TRUE(cut.records.size() == most || cut.records.size() == most + 1);
    most = cut.records.size();
  }
  EXPECT_EQ(most, kRecords);
}

TEST_P(RoundTrip, WhatIsFlushedCanBeRead) {
  const Process run = made_process({.seed = 5, .batches = 10});
  StringSink sink;
  const auto writer = writer_to(sink);
  writer->begin(run.info);
  const ProcessNames names(run);
  for (std::size_t at = 0; at < run.records.size(); at += 37) {
    const std::size_t count = std::min<std::size_t>(37, run.records.size() - at);
    writer->write(std::span(run.records).subspan(at, count), names);
    writer->flush();
    const Process process = only(sink.text);
    ASSERT_EQ(process.records.size(), at + count);
    EXPECT_FALSE(process.complete);
  }
}

TEST_P(RoundTrip, BytesChangedAtRandomAreReadOrRefused) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  Timeline timeline;
  timeline.processes.push_back(random_process(random, {.records = 40}));
  timeline.processes.push_back(made_process({.batches = 4}));
  const std::string bytes = written(timeline);
  constexpr int kRounds = WEIR_TEST_SANITIZED != 0 ? 300 : 2'000;
  int was_read = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string changed = bytes;
    for (int i = 0; i < 3; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    try {
      (void)read(changed);
      ++was_read;
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(was_read, 0);
}

TEST(RoundTripOfJson, TheLargestTimesComeBackToTheNanosecond) {
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

TEST(RoundTripOfJson, ASliceThatEndsBeforeItBeginsHasNoLength) {
  Timeline timeline;
  timeline.processes.emplace_back().records = {
      {.begin = 10, .end = 5, .kind = TimelineKind::kBarrier}};
  const Timeline found = from_chrome(to_chrome(timeline));
  EXPECT_EQ(found.processes.at(0).records.at(0).begin, 10U);
  EXPECT_EQ(found.processes.at(0).records.at(0).end, 10U);
}

}  // namespace
}  // namespace weir::timeline::testing
