// A block as one process writes it and the reader finds it.

#include "tools/timeline/live/block_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "allocator/error.hpp"
#include "live_support.hpp"
#include "support/file_size_limit.hpp"
#include "support/message_of.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using weir::testing::FileSizeLimit;
using weir::testing::message_of;

TEST(LiveBlockFile, IsReadAsItWasWritten) {
  const Place place;
  BlockFile block(place.folders(), "train.py --lr 3");
  block.add_device("cpu");
  block.add_device("cuda:0");
  block.append(numbered(0));
  block.append(numbered(1));
  const LiveSurvey survey = place.survey();
  ASSERT_THAT(survey.programs, SizeIs(1));
  const LiveProgram& program = survey.programs.front();
  EXPECT_EQ(program.pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(program.uid, geteuid());
  EXPECT_EQ(program.program, "train.py --lr 3");
  EXPECT_THAT(program.devices, ElementsAre("cpu", "cuda:0"));
  EXPECT_THAT(program.samples, ElementsAre(numbered(0), numbered(1)));
  EXPECT_EQ(survey.unreadable, 0U);
}

TEST(LiveBlockFile, KeepsTheLastSamplesOfALongRun) {
  const Place place;
  BlockFile block(place.folders(), "long");
  constexpr std::uint64_t kCount = 3 * kLiveSamples + 7;
  for (std::uint64_t i = 0; i < kCount; ++i) block.append(numbered(i));
  const auto samples = place.survey().programs.at(0).samples;
  ASSERT_THAT(samples, SizeIs(kLiveHistory));
  EXPECT_EQ(samples.front(), numbered(kCount - kLiveHistory));
  EXPECT_EQ(samples.back(), numbered(kCount - 1));
}

TEST(LiveBlockFile, SamplesAreWholeWhileTheyAreWritten) {
  const Place place;
  BlockFile block(place.folders(), "busy");
  std::jthread writer([&block](const std::stop_token& stop) {
    for (std::uint64_t i = 0; !stop.stop_requested(); ++i) {
      block.append(numbered(i));
      std::this_thread::yield();  // a reader that is lapped sees nothing
    }
  });
  for (std::size_t seen = 0; seen < 20'000;) {
    const LiveSurvey survey = place.survey();
    for (const LiveSample& sample : survey.programs.at(0).samples) {
      ASSERT_EQ(sample, numbered(sample.time_ns - 1000));
      ++seen;
    }
  }
}

TEST(LiveBlockFile, IsGoneWithItsWriter) {
  const Place place;
  { const BlockFile block(place.folders(), "short"); }
  EXPECT_EQ(place.files(), 0U);
}

TEST(LiveBlockFile, CutsALongNameAtAWholeCharacter) {
  const Place place;
  const BlockFile block(place.folders(), std::string(126, 'x') + "\xc3\xa9");
  EXPECT_EQ(place.survey().programs.at(0).program, std::string(126, 'x'));
}

TEST(LiveBlockFile, NamesAsManyDevicesAsItHasRoomFor) {
  const Place place;
  BlockFile block(place.folders(), "many");
  for (std::size_t i = 0; i < kLiveDevices + 3; ++i) block.add_device(std::to_string(i));
  EXPECT_THAT(place.survey().programs.at(0).devices, SizeIs(kLiveDevices));
}

TEST(LiveBlockFile, IsForItsUserAloneAndKeepsNoDescriptor) {
  const Place place;
  const int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(before);
  const BlockFile block(place.folders(), "private");
  const int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(after);
  EXPECT_EQ(after, before);
  struct stat found {};
  ASSERT_EQ(stat(block.path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
}

TEST(LiveBlockFile, WhereThereIsNoRoomItSaysSoAndLeavesNothing) {
  const Place place;
  const FileSizeLimit limit(4096);
  EXPECT_THAT(message_of<Error>([&] { const BlockFile block(place.folders(), "large"); }),
              HasSubstr("fallocate: File too large"));
  EXPECT_EQ(place.files(), 0U);
}

TEST(LiveBlockFile, UsesTheFirstFolderThatCanBeUsed) {
  const Place place;
  const std::string inner = place.path() + "/inner";
  const std::vector<LiveFolder> folders{{"/proc/none/weir", {}}, {inner, {}}, {place.path(), {}}};
  const BlockFile block(folders, "choosy");
  EXPECT_EQ(block.path().substr(0, inner.size() + 1), inner + "/");
}

TEST(LiveBlockFile, AChildNeitherHasNorRemovesIt) {
  const Place place;
  auto block = std::make_unique<BlockFile>(place.folders(), "parent");
  block->append(numbered(0));
  const pid_t child = fork();
  if (child == 0) {
    block.reset();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_THAT(place.survey().programs, SizeIs(1));
  // A child that lives on does not keep it alive either.
  const Child other([](const std::function<void()>& ready) { ready(); });
  ASSERT_TRUE(other.ready());
  EXPECT_THAT(place.survey().programs, SizeIs(1));
}

TEST(LiveBlockFile, OfAKilledProcessIsNotShownAndIsRemoved) {
  const Place place;
  Child child([&place](const std::function<void()>& ready) {
    BlockFile block(place.folders(), "victim");
    block.append(numbered(0));
    ready();
  });
  ASSERT_TRUE(child.ready());
  const LiveSurvey alive = place.survey();
  ASSERT_THAT(alive.programs, SizeIs(1));
  EXPECT_EQ(alive.programs.front().pid, child.pid());
  place.remove_ended();
  EXPECT_EQ(place.files(), 1U) << "it runs";
  child.end();
  EXPECT_THAT(place.survey().programs, IsEmpty());
  place.remove_ended();
  EXPECT_EQ(place.files(), 0U);
}

TEST(LiveBlockFile, OfAProcessThatNobodyReapedIsNotShown) {
  const Place place;
  const Child child([&place](const std::function<void()>& ready) {
    const BlockFile block(place.folders(), "zombie");
    ready();
  });
  ASSERT_THAT(place.survey().programs, SizeIs(1));
  child.kill();
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, child.pid(), &info, WEXITED | WNOWAIT), 0);
  EXPECT_THAT(place.survey().programs, IsEmpty());
}

TEST(LiveBlockFile, OfAProcessThatBecameAnotherProgramIsNotShown) {
  const Place place;
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    static BlockFile block(place.folders(), "before");
    execlp("sleep", "sleep", "100", nullptr);
    _exit(127);
  }
  close(ends[1]);
  char letter = 0;
  EXPECT_EQ(read(ends[0], &letter, 1), 0) << "closed by exec";
  close(ends[0]);
  EXPECT_EQ(place.files(), 1U);
  // The kernel drops the lock a moment after it closed the pipe.
  while (!place.survey().programs.empty()) std::this_thread::yield();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(LiveBlockFile, ANewOneRemovesWhatEndedProcessesLeft) {
  const Place place;
  for (int i = 0; i < 3; ++i) {
    Child child([&place](const std::function<void()>& ready) {
      const BlockFile block(place.folders(), "victim");
      ready();
    });
    ASSERT_TRUE(child.ready());
    child.end();
    EXPECT_EQ(place.files(), 1U);
  }
}

TEST(LiveBlockFile, EachProgramHasItsOwn) {
  const Place place;
  const auto publish = [&place](const std::function<void()>& ready) {
    const BlockFile block(place.folders(), "one of two");
    ready();
  };
  const Child first(publish);
  const Child second(publish);
  const LiveSurvey survey = place.survey();
  ASSERT_THAT(survey.programs, SizeIs(2));
  EXPECT_LT(survey.programs[0].pid, survey.programs[1].pid);
}

}  // namespace
}  // namespace weir::timeline::testing
