// The page of the last seconds before memory ran out.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "allocator/timeline/source.hpp"
#include "kit.hpp"
#include "support/log_capture.hpp"
#include "tools/timeline/recorder/failure.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::timeline {
namespace {

TimelineRecord at(std::uint64_t time, TimelineKind kind, std::uint64_t id, std::uint64_t bytes) {
  return {.begin = time, .end = time, .id = id, .bytes = bytes, .source = 1, .kind = kind};
}

TEST(BeginWithLive, WorksOutWhatWasLiveWhenTheWindowBegan) {
  const std::vector<TimelineRecord> live{at(90, TimelineKind::kPool, 0, 4096),
                                         at(90, TimelineKind::kLive, 1, 512),
                                         at(90, TimelineKind::kLive, 3, 1024)};
  TimelineRecord freed = at(50, TimelineKind::kFree, 2, 2048);
  freed.allocated = 512;
  const std::vector<TimelineRecord> recent{freed, at(60, TimelineKind::kAllocate, 3, 1024),
                                           at(70, TimelineKind::kAllocate, 2, 64),
                                           at(80, TimelineKind::kFree, 2, 64)};
  const auto all = begin_with_live(live, recent);
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(all[0].kind, TimelineKind::kPool);
  EXPECT_EQ(all[0].begin, 50U);
  EXPECT_EQ(all[0].allocated, 512U);  // the accounting at the window's first record
  EXPECT_EQ(all[1], [&] {
    TimelineRecord block = at(50, TimelineKind::kLive, 1, 512);
    block.allocated = 512;
    return block;
  }());
  EXPECT_EQ(all[2].id, 2U);
  EXPECT_EQ(all[2].bytes, 2048U);
  EXPECT_EQ(all[2].kind, TimelineKind::kLive);
  EXPECT_TRUE(std::equal(recent.begin(), recent.end(), all.begin() + 3));
}

TEST(BeginWithLive, WithoutAWindowItIsWhatIsLiveNow) {
  const auto all = begin_with_live({at(90, TimelineKind::kLive, 1, 512)}, {});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].begin, 90U);
}

TEST(MakeProcess, HasTheNamesThatItsRecordsUse) {
  NameTable table;
  for (int i = 0; i < 100; ++i) (void)table.number("unused " + std::to_string(i));
  TimelineRecord record = at(1, TimelineKind::kAllocate, 1, 1);
  record.name = table.number("weights");
  record.site = table.number("loop.py:3");
  const Process process = make_process({}, {record, record}, table);
  EXPECT_EQ(process.names, (std::vector<std::string>{"", "weights", "loop.py:3"}));
  EXPECT_EQ(process.name(process.records[1].name), "weights");
  EXPECT_EQ(process.name(process.records[1].site), "loop.py:3");
}

class FailurePageTest : public ::testing::Test {
 protected:
  [[nodiscard]] Recorder& make(FailurePage page, RecentLimits recent = {}) const {
    RecorderOptions options;
    options.failure_page = std::move(page);
    options.recent = recent;
    return Recorder::make({}, in_file(folder_.file("run.json")), std::move(options));
  }
  const weir::testing::TemporaryDirectory folder_;
};

std::string ids_of(const Timeline& timeline) {
  std::string ids;
  for (const TimelineRecord& record : timeline.processes.at(0).records) {
    if (record.kind == TimelineKind::kFree) ids += std::to_string(record.id) + " ";
  }
  return ids;
}

TEST_F(FailurePageTest, HasWhatWasRecordedUpToTheFailure) {
  Recorder& recorder = make(ids_of);
  recorder.write(event(1));
  (void)recorder.flush_now();
  recorder.write(event(2));
  const char* const name = recorder.note_failure();
  ASSERT_STREQ(name, (folder_.file("run.oom.html")).c_str());
  EXPECT_EQ(weir::testing::read_file(name), "1 2 ");
  recorder.write(event(3));
  const char* const second = recorder.note_failure();
  ASSERT_STREQ(second, (folder_.file("run.oom.2.html")).c_str());
  EXPECT_EQ(weir::testing::read_file(second), "1 2 3 ");
  EXPECT_STREQ(name, (folder_.file("run.oom.html")).c_str());  // as long as the program runs
  (void)recorder.finish();
  EXPECT_EQ(recorder.note_failure(), nullptr);
}

TEST_F(FailurePageTest, ThereAreFiveAtMost) {
  Recorder& recorder = make([](const Timeline&) { return std::string("page"); });
  for (int i = 0; i < 5; ++i) EXPECT_NE(recorder.note_failure(), nullptr);
  EXPECT_EQ(recorder.note_failure(), nullptr);
  (void)recorder.finish();
}

TEST_F(FailurePageTest, HasNoMoreThanTheLastRecords) {
  Recorder& recorder = make(ids_of, {.records = 3});
  for (std::uint64_t id = 1; id <= 10; ++id) recorder.write(event(id));
  const char* const name = recorder.note_failure();
  ASSERT_NE(name, nullptr);
  EXPECT_EQ(weir::testing::read_file(name), "8 9 10 ");
  (void)recorder.finish();
}

TEST_F(FailurePageTest, OneThatCannotBeMadeIsSaidAndTheRecordingGoesOn) {
  const weir::testing::LogCapture capture;
  Recorder& recorder =
      make([](const Timeline&) -> std::string { throw std::runtime_error("no page today"); });
  recorder.write(event(1));
  EXPECT_EQ(recorder.note_failure(), nullptr);
  EXPECT_EQ(capture.containing("no page today").size(), 1U);
  recorder.write(event(2));
  (void)recorder.finish();
  EXPECT_EQ(weir::testing::read_file(folder_.file("run.json")),
            "[ weir_timeline\n1 whole\n2 whole\nend 0\n");
}

// A program may retry without end, and each page costs it time.
TEST_F(FailurePageTest, WhereNoneCanBeWrittenFiveAreTriedAtMost) {
  const weir::testing::LogCapture capture;
  std::filesystem::create_directory(folder_.file("run.oom.html"));
  int made = 0;
  Recorder& recorder = make([&made](const Timeline&) {
    ++made;
    return std::string("page");
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(recorder.note_failure(), nullptr);
  (void)recorder.finish();
  EXPECT_EQ(made, 5);
  EXPECT_EQ(capture.containing("run.oom.html").size(), 5U);
  EXPECT_TRUE(std::filesystem::is_directory(folder_.file("run.oom.html"))) << "it stays";
}

TEST_F(FailurePageTest, WithoutAPageNothingIsWritten) {
  Recorder& recorder = make({});
  EXPECT_EQ(recorder.note_failure(), nullptr);
  (void)recorder.finish();
}

}  // namespace
}  // namespace weir::timeline
