// The file of the last seconds before memory ran out.

#include "tools/timeline/recorder/failure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <stdexcept>

#include "allocator/timeline/source.hpp"
#include "kit.hpp"
#include "support/log_capture.hpp"
#include "tools/timeline/files/formats.hpp"
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

TEST(FailureFile, IsNamedAfterTheRecordingWhateverItsFormat) {
  for (const char* recording : {"/a/run.json", "/a/run.json.gz", "/a/run.pftrace"}) {
    EXPECT_EQ(failure_file(recording, 1), "/a/run.oom.pftrace");
    EXPECT_EQ(failure_file(recording, 2), "/a/run.oom.2.pftrace");
  }
  EXPECT_EQ(failure_page("/a/run.oom.2.pftrace"), "/a/run.oom.2.html");
}

TEST(FailureFile, TheCommandForItsPageIsForAShell) {
  EXPECT_EQ(failure_command("run.oom.pftrace"),
            "weir timeline report 'run.oom.pftrace' -o 'run.oom.html'");
  EXPECT_EQ(failure_command("it's $1.oom.pftrace"),
            "weir timeline report 'it'\\''s $1.oom.pftrace' -o 'it'\\''s $1.oom.html'");
}

class FailureFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] Recorder& make(RecentLimits recent = {}, bool keeps_failures = true) const {
    RecorderOptions options;
    options.keeps_failures = keeps_failures;
    options.recent = recent;
    return Recorder::make({}, in_file(folder_.file("run.json")), std::move(options));
  }
  [[nodiscard]] std::string ids_in(std::string_view name) const {
    std::string ids;
    const Timeline timeline = read_timeline(folder_.file(name));
    for (const TimelineRecord& record : timeline.processes.at(0).records) {
      if (record.kind == TimelineKind::kFree) ids += std::to_string(record.id) + " ";
    }
    return ids;
  }
  [[nodiscard]] std::string command_for(std::string_view name) const {
    return failure_command(folder_.file(name));
  }
  const weir::testing::TemporaryDirectory folder_;
};

TEST_F(FailureFileTest, HasWhatWasRecordedUpToTheFailure) {
  Recorder& recorder = make();
  recorder.write(event(1));
  (void)recorder.flush_now();
  recorder.write(event(2));
  const char* const first = recorder.note_failure();
  ASSERT_STREQ(first, command_for("run.oom.pftrace").c_str());
  EXPECT_EQ(ids_in("run.oom.pftrace"), "1 2 ");
  recorder.write(event(3));
  const char* const second = recorder.note_failure();
  ASSERT_STREQ(second, command_for("run.oom.2.pftrace").c_str());
  EXPECT_EQ(ids_in("run.oom.2.pftrace"), "1 2 3 ");
  EXPECT_STREQ(first, command_for("run.oom.pftrace").c_str());  // as long as the program runs
  (void)recorder.finish();
  EXPECT_EQ(recorder.note_failure(), nullptr);
}

TEST_F(FailureFileTest, ThereAreFiveAtMost) {
  Recorder& recorder = make();
  for (int i = 0; i < 5; ++i) EXPECT_NE(recorder.note_failure(), nullptr);
  EXPECT_EQ(recorder.note_failure(), nullptr);
  (void)recorder.finish();
}

TEST_F(FailureFileTest, HasNoMoreThanTheLastRecords) {
  Recorder& recorder = make({.records = 3});
  for (std::uint64_t id = 1; id <= 10; ++id) recorder.write(event(id));
  ASSERT_NE(recorder.note_failure(), nullptr);
  EXPECT_EQ(ids_in("run.oom.pftrace"), "8 9 10 ");
  (void)recorder.finish();
}

/// A source that cannot be asked once `throws`.
class ThrowingSource final : public TimelineSource {
 public:
  ThrowingSource() { enlist(); }
  ~ThrowingSource() override { leave(); }
  void add_figures(LiveFigures& /*figures*/) const override {}
  void record_live(TimelineSink& /*sink*/) override {
    if (throws) throw std::runtime_error("no file today");
  }
  std::atomic<bool> throws{false};
};

TEST_F(FailureFileTest, OneThatCannotBeMadeIsSaidAndTheRecordingGoesOn) {
  const weir::testing::LogCapture capture;
  ThrowingSource source;
  Recorder& recorder = make();
  recorder.write(event(1));
  (void)recorder.flush_now();
  source.throws = true;
  EXPECT_EQ(recorder.note_failure(), nullptr);
  EXPECT_EQ(capture.containing("no file today").size(), 1U);
  source.throws = false;
  recorder.write(event(2));
  (void)recorder.finish();
  EXPECT_EQ(weir::testing::read_file(folder_.file("run.json")),
            "[ weir_timeline\n1 whole\n2 whole\nend 0\n");
}

// A program may retry without end, and each attempt costs it time.
TEST_F(FailureFileTest, WhereNoneCanBeWrittenFiveAreTriedAtMost) {
  const weir::testing::LogCapture capture;
  std::filesystem::create_directory(folder_.file("run.oom.pftrace"));
  Recorder& recorder = make();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(recorder.note_failure(), nullptr);
  (void)recorder.finish();
  EXPECT_EQ(capture.containing("run.oom.pftrace").size(), 5U);
  EXPECT_TRUE(std::filesystem::is_directory(folder_.file("run.oom.pftrace"))) << "it stays";
}

TEST_F(FailureFileTest, ReplacesAnEarlierOneAndNoOtherFile) {
  const std::string file = folder_.file("run.oom.pftrace");
  const weir::testing::LogCapture capture;
  for (const std::string& contents : {bytes_of_failure({}), std::string(), std::string("notes")}) {
    weir::testing::write_file(file, contents);
    Recorder& recorder = make();
    recorder.write(event(1));
    const bool replaces = recorder.note_failure() != nullptr;
    (void)recorder.finish();
    EXPECT_EQ(replaces, contents != "notes");
    if (replaces) {
      EXPECT_EQ(ids_in("run.oom.pftrace"), "1 ");
    }
  }
  EXPECT_EQ(weir::testing::read_file(file), "notes");
  EXPECT_EQ(capture.containing("the name is taken by another file").size(), 1U);
}

TEST_F(FailureFileTest, NoneIsWrittenUnlessAskedFor) {
  Recorder& recorder = make({}, false);
  EXPECT_EQ(recorder.note_failure(), nullptr);
  (void)recorder.finish();
  EXPECT_EQ(folder_.entries(), 1U);
}

}  // namespace
}  // namespace weir::timeline
