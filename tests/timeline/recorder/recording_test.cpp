// The recording of a process, in the formats that people open.

#include "tools/timeline/recorder/recording.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "support/forked.hpp"
#include "tools/timeline/chrome/chrome.hpp"
#include "tools/timeline/perfetto/perfetto.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::timeline {
namespace {

using weir::testing::run_forked;

class RecordingTest : public ::testing::Test {
 protected:
  [[nodiscard]] TimelineSettings settings(const std::string& name) const {
    TimelineSettings settings;
    settings.file = folder_.file(name);
    return settings;
  }
  [[nodiscard]] static Process read(const std::string& path) {
    Timeline timeline = path.ends_with(".pftrace") ? read_perfetto(path) : read_chrome(path);
    EXPECT_EQ(timeline.processes.size(), 1U);
    return timeline.processes.empty() ? Process{} : std::move(timeline.processes[0]);
  }
  const weir::testing::TemporaryDirectory folder_;
};

TimelineRecord allocation(Recorder& recorder, std::uint64_t id) {
  return {.id = id << 9U,
          .bytes = 512,
          .requested = 500,
          .stream = 1,
          .sequence = id,
          .name = recorder.name("weights"),
          .source = 1,
          .kind = TimelineKind::kAllocate};
}

TEST_F(RecordingTest, WhatWasRecordedIsReadBackInEachFormat) {
  for (const char* name : {"run.json", "run.json.gz", "run.pftrace"}) {
    Recorder* const recorder = begin_recording(settings(name));
    ASSERT_NE(recorder, nullptr);
    EXPECT_EQ(begin_recording(settings("other.json")), recorder);  // one at a time
    for (std::uint64_t id = 1; id <= 100; ++id) recorder->write(allocation(*recorder, id));
    const RecordingResult result = recorder->finish();
    EXPECT_EQ(result.file, folder_.file(name));
    const Process process = read(result.file);
    EXPECT_TRUE(process.complete);
    EXPECT_EQ(process.lost, 0U);
    EXPECT_EQ(process.info.pid, static_cast<std::uint32_t>(getpid()));
    EXPECT_FALSE(process.info.program.empty());
    EXPECT_FALSE(process.info.host.empty());
    EXPECT_EQ(process.records.size(), result.events);
    std::uint64_t id = 0;
    for (const TimelineRecord& record : process.records) {
      if (record.kind != TimelineKind::kAllocate) continue;
      EXPECT_EQ(record.id, ++id << 9U);
      EXPECT_EQ(process.name(record.name), "weights");
    }
    EXPECT_EQ(id, 100U);
    EXPECT_TRUE(is_timeline_or_empty(result.file)) << name;  // the next run may replace it
  }
}

TEST_F(RecordingTest, NothingIsRecordedWithoutAFile) {
  EXPECT_EQ(begin_recording({}), nullptr);
  EXPECT_EQ(timeline_sink(), nullptr);
}

TEST_F(RecordingTest, AFileThatMayNotGrowDoesNotEndTheProgram) {
  const auto record_nothing = [&] {
    constexpr rlimit kNothing{0, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &kNothing) != 0) return 1;
    Recorder* const recorder = begin_recording(settings("run.json"));
    return recorder != nullptr && recorder->finish().note.ends_with("(File too large)") ? 0 : 1;
  };
  EXPECT_EQ(run_forked(record_nothing), 0);
}

// Its sender cannot know that the program is ending.
TEST_F(RecordingTest, TheSignalThatComesTooLateDoesNotEndTheProgram) {
  const auto end_twice = [&] {
    (void)std::atexit([] { raise(SIGUSR2); });  // after the recording's own
    (void)begin_recording(settings("run.json"))->finish();
    raise(SIGUSR2);
    Recorder* const next = begin_recording(settings("run.json"));
    raise(SIGUSR2);
    (void)next->flush_now();
    const bool was_stopped = !next->is_recording();
    const bool is_the_parents = run_forked([] { return raise(SIGUSR2); }) == -SIGUSR2;
    std::exit(was_stopped && is_the_parents ? 0 : 1);  // NOLINT(concurrency-mt-unsafe)
  };
  EXPECT_EQ(run_forked(end_twice), 0);
  EXPECT_TRUE(read(folder_.file("run.json")).complete);
}

TEST_F(RecordingTest, WhereNoThreadCanBeHadTheNameIsFreeAgain) {
  pthread_attr_t usual;
  pthread_attr_t huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 48U), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  EXPECT_EQ(begin_recording(settings("run.json")), nullptr);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  Recorder* const recorder = begin_recording(settings("run.json"));
  ASSERT_NE(recorder, nullptr);
  EXPECT_EQ(recorder->finish().file, folder_.file("run.json"));
}

TEST_F(RecordingTest, AProgramThatJustEndsHasACompleteFile) {
  const auto record_and_end = [&] {
    Recorder* const recorder = begin_recording(settings("run.json"));
    recorder->write(allocation(*recorder, 1));
    std::exit(0);  // NOLINT(concurrency-mt-unsafe)
  };
  EXPECT_EQ(run_forked(record_and_end), 0);
  EXPECT_TRUE(read(folder_.file("run.json")).complete);
}

}  // namespace
}  // namespace weir::timeline
