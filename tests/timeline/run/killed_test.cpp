// A recorder killed at any moment leaves a file with everything up to its last flush.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <ctime>
#include <random>

#include "../../trainer/temporary_directory.hpp"
#include "support/random_seed.hpp"
#include "support/sanitized.hpp"
#include "tools/timeline/files/read.hpp"
#include "tools/timeline/recorder/recording.hpp"

namespace weir::timeline::testing {
namespace {

/// 201 in the three formats. With a sanitizer a few are enough.
constexpr int kKills = WEIR_TEST_SANITIZED != 0 ? 4 : 67;

/// Records frees of addresses 1, 2, ... and reports through `progress` which are in the file.
[[noreturn]] void record_until_killed(const std::string& path, int progress) {
  Recorder* const recorder = begin_recording({.file = {path, "test"}});
  if (recorder == nullptr) _exit(1);
  for (std::uint64_t id = 1;; ++id) {
    recorder->write(
        {.id = id, .bytes = 512, .sequence = id, .source = 1, .kind = TimelineKind::kFree});
    if (id % 500 != 0) continue;
    if (!recorder->flush_now()) _exit(1);
    if (write(progress, &id, sizeof id) != sizeof id) _exit(1);
  }
}

/// Kills such a process at a random moment. Returns how far it had come.
std::uint64_t kill_at_a_moment(const std::string& path, std::mt19937_64& random) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  EXPECT_GE(child, 0);
  if (child == 0) record_until_killed(path, ends[1]);
  close(ends[1]);
  std::uint64_t flushed = 0;
  EXPECT_EQ(read(ends[0], &flushed, sizeof flushed), 8);
  const timespec moment{.tv_sec = 0, .tv_nsec = static_cast<long>(random() % 10'000'000)};
  nanosleep(&moment, nullptr);
  EXPECT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  for (std::uint64_t next = 0; read(ends[0], &next, sizeof next) == sizeof next;) flushed = next;
  close(ends[0]);
  return flushed;
}

class KilledRecorder : public ::testing::TestWithParam<const char*> {};

TEST_P(KilledRecorder, LeavesAFileThatOpensWithEverythingUpToItsLastFlush) {
  const std::uint64_t seed = weir::testing::random_seed();
  SCOPED_TRACE(weir::testing::seed_message(seed));
  std::mt19937_64 random(seed);
  const weir::testing::TemporaryDirectory folder;
  for (int i = 0; i < kKills; ++i) {
    SCOPED_TRACE(i);
    const std::string path = folder.file(std::to_string(i) + GetParam());
    const std::uint64_t flushed = kill_at_a_moment(path, random);
    if (HasFailure()) return;
    const Timeline timeline = read_timeline(path);
    ASSERT_EQ(timeline.processes.size(), 1U);
    EXPECT_FALSE(timeline.processes[0].complete);
    EXPECT_EQ(timeline.processes[0].lost, 0U);
    std::uint64_t id = 0;
    for (const TimelineRecord& record : timeline.processes[0].records) {
      if (record.kind != TimelineKind::kFree) continue;
      ASSERT_EQ(record.id, ++id);
    }
    EXPECT_GE(id, flushed);
  }
}
INSTANTIATE_TEST_SUITE_P(Formats, KilledRecorder,
                         ::testing::Values(".json", ".pftrace", ".json.gz"));

}  // namespace
}  // namespace weir::timeline::testing
