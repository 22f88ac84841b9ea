// A recorder killed at any moment leaves a file with everything up to its last flush.

#include <gtest/gtest.h>

#include <random>

#include "../../trainer/temporary_directory.hpp"
#include "support/forked.hpp"
#include "support/random_seed.hpp"
#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/recorder/recording.hpp"

namespace weir::timeline::testing {
namespace {

/// 201 in the three formats. With a sanitizer a few are enough.
constexpr int kKills = 67;

/// Records frees of addresses 1, 2, ... and tells which are in the file.
[[noreturn]] void record_until_killed(const std::string& path, const weir::testing::Telling& tell) {
  Recorder* const recorder = begin_recording({.file = {path, "test"}});
  if (recorder == nullptr) _exit(1);
  for (std::uint64_t id = 1;; ++id) {
    recorder->write(
        {.id = id, .bytes = 512, .sequence = id, .source = 1, .kind = TimelineKind::kFree});
    if (id % 500 != 0) continue;
    if (!recorder->flush_now()) _exit(1);
    tell(id);
  }
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
    weir::testing::Forked child(
        [&](const weir::testing::Telling& tell) { record_until_killed(path, tell); });
    const std::uint64_t flushed = child.kill_at_a_moment(random);
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
