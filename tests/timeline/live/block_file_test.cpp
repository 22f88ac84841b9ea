// A block that one process writes and the reader finds.

#include "tools/timeline/live/block_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "allocator/base/error.hpp"
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
  EXPECT_EQ(run_forked([&] { block.reset(); }), 0);
  EXPECT_THAT(place.survey().programs, SizeIs(1));
  // Nor does a surviving child keep it alive.
  Forked other([](const Telling& tell) { tell.and_wait(); });
  ASSERT_TRUE(other.told());
  EXPECT_THAT(place.survey().programs, SizeIs(1));
}

TEST(LiveBlockFile, OfAKilledProcessIsNotShownAndIsRemoved) {
  const Place place;
  Forked child([&place](const Telling& tell) {
    BlockFile block(place.folders(), "victim");
    block.append(numbered(0));
    tell.and_wait();
  });
  ASSERT_TRUE(child.told());
  const LiveSurvey alive = place.survey();
  ASSERT_THAT(alive.programs, SizeIs(1));
  EXPECT_EQ(alive.programs.front().pid, static_cast<std::uint32_t>(child.pid()));
  place.remove_ended();
  EXPECT_EQ(place.files(), 1U) << "it runs";
  child.kill();
  EXPECT_THAT(place.survey().programs, IsEmpty());
  place.remove_ended();
  EXPECT_EQ(place.files(), 0U);
}

TEST(LiveBlockFile, OfAProcessThatNobodyReapedIsNotShown) {
  const Place place;
  Forked child([&place](const Telling& tell) {
    const BlockFile block(place.folders(), "zombie");
    tell.and_wait();
  });
  ASSERT_TRUE(child.told());
  ASSERT_THAT(place.survey().programs, SizeIs(1));
  child.send(SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_THAT(place.survey().programs, IsEmpty());
}

TEST(LiveBlockFile, OfAProcessThatBecameAnotherProgramIsNotShown) {
  const Place place;
  Forked child([&] {
    static BlockFile block(place.folders(), "before");
    execlp("sleep", "sleep", "100", nullptr);
  });
  EXPECT_FALSE(child.told()) << "its end of the pipe is closed by exec";
  EXPECT_EQ(place.files(), 1U);
  // The kernel drops the lock a moment after it closed the pipe.
  while (!place.survey().programs.empty()) std::this_thread::yield();
}

TEST(LiveBlockFile, ANewOneRemovesWhatEndedProcessesLeft) {
  const Place place;
  for (int i = 0; i < 3; ++i) {
    Forked child([&place](const Telling& tell) {
      const BlockFile block(place.folders(), "victim");
      tell.and_wait();
    });
    ASSERT_TRUE(child.told());
    child.kill();
    EXPECT_EQ(place.files(), 1U);
  }
}

TEST(LiveBlockFile, EachProgramHasItsOwn) {
  const Place place;
  const auto publish = [&place](const Telling& tell) {
    const BlockFile block(place.folders(), "one of two");
    tell.and_wait();
  };
  Forked first(publish);
  Forked second(publish);
  ASSERT_TRUE(first.told() && second.told());
  const LiveSurvey survey = place.survey();
  ASSERT_THAT(survey.programs, SizeIs(2));
  EXPECT_LT(survey.programs[0].pid, survey.programs[1].pid);
}

/// Figures of devices at sample `i`, with different values in every field.
LiveDeviceSample devices_at(std::uint64_t i) {
  LiveDeviceSample sample{.count = 2};
  for (std::uint64_t device = 0; device < sample.count; ++device) {
    sample.devices.at(device) = {.device = device,
                                 .total = i + 1,
                                 .budget = i,
                                 .used = i + 2,
                                 .allocated = i + 3,
                                 .awaiting = i + 4,
                                 .cached = i + 5,
                                 .reserved = 3 * i + 12,
                                 .failures = i + 7,
                                 .waits = i + 8,
                                 .waited_ns = i + 9};
  }
  return sample;
}

TEST(LiveBlockFile, FiguresOfDevicesAreTheNewest) {
  const Place place;
  BlockFile block(place.folders(), "devices");
  EXPECT_THAT(place.survey().programs.at(0).device_figures, IsEmpty());
  for (std::uint64_t i = 0; i < 3 * kLiveDeviceSamples + 1; ++i) {
    block.append(numbered(i), devices_at(i));
    const LiveProgram program = place.survey().programs.at(0);
    EXPECT_THAT(program.device_figures,
                ElementsAre(devices_at(i).devices[0], devices_at(i).devices[1]));
  }
}

TEST(LiveBlockFile, FiguresOfDevicesAreWholeWhileTheyAreWritten) {
  const Place place;
  BlockFile block(place.folders(), "busy");
  std::jthread writer([&block](const std::stop_token& stop) {
    for (std::uint64_t i = 0; !stop.stop_requested(); ++i) {
      block.append(numbered(i), devices_at(i));
      std::this_thread::yield();
    }
  });
  for (std::size_t seen = 0; seen < 2000;) {
    const LiveSurvey survey = place.survey();
    for (const LiveDevice& device : survey.programs.at(0).device_figures) {
      ASSERT_EQ(device, devices_at(device.budget).devices.at(device.device));
      ++seen;
    }
  }
}

/// The block's file, opened by another program of the user.
class Opened {
 public:
  explicit Opened(const BlockFile& block)
      : descriptor_(open(block.path().c_str(), O_RDWR | O_CLOEXEC)) {}
  ~Opened() { close(descriptor_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  void put(std::size_t offset, const void* bytes, std::size_t size) const {
    ASSERT_EQ(pwrite(descriptor_, bytes, size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
  }
  void ask(const LiveRequest& request) const {
    put(offsetof(LiveBlock, request), &request, sizeof request);
  }
  [[nodiscard]] LiveAnswer answer() const {
    LiveAnswer answer;
    EXPECT_EQ(pread(descriptor_, &answer, sizeof answer, offsetof(LiveBlock, answer)),
              static_cast<ssize_t>(sizeof answer));
    return answer;
  }
  void cut(off_t size) const { ASSERT_EQ(ftruncate(descriptor_, size), 0); }

 private:
  const int descriptor_;
};

TEST(LiveBlockFile, ThatAnotherProgramCutsEndsNoWriter) {
  const Place place;
  for (const off_t size : {0, 64, 4096, 20'000}) {
    const auto write_and_cut = [&] {
      BlockFile block(place.folders(), "cut");
      const Opened other(block);
      other.cut(size);
      block.append(numbered(0), devices_at(0));
      block.add_device("GPU 0");
      (void)block.next_request();
      block.answer({});
      return block.is_intact() ? 1 : 0;
    };
    EXPECT_EQ(run_forked(write_and_cut), 0) << size;
  }
}

TEST(LiveBlockFile, WhatOthersWriteOverItDoesNotMisleadTheWriter) {
  const Place place;
  BlockFile block(place.folders(), "scribbled");
  block.add_device("GPU 0");
  const Opened other(block);
  const std::uint64_t most = ~std::uint64_t{0};
  for (int i = 0; i < 3; ++i) {
    other.put(offsetof(LiveBlock, count), &most, sizeof most);
    other.put(offsetof(LiveBlock, device_count), &most, sizeof(std::uint32_t));
    block.append(numbered(0));
    block.add_device("GPU 1");
  }
  const LiveProgram program = place.survey().programs.at(0);
  EXPECT_THAT(program.devices, ElementsAre("GPU 0", "GPU 1", "GPU 1", "GPU 1"));
  EXPECT_EQ(program.samples.back(), numbered(0));
}

TEST(LiveBlockFile, ARequestIsTakenOnceAndAnswered) {
  const Place place;
  BlockFile block(place.folders(), "asked");
  const Opened other(block);
  EXPECT_FALSE(block.next_request());
  other.ask({.begin = 7, .device = 2, .budget = 96, .end = 7});
  const auto ask = block.next_request();
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->device, 2U);
  EXPECT_EQ(ask->budget, Bytes{96});
  EXPECT_FALSE(block.next_request());
  block.answer(
      {.code = BudgetCode::kTaken, .before = {1}, .after = {2}, .used = {3}, .total = {4}});
  const LiveAnswer answer = other.answer();
  EXPECT_EQ(answer.serial, 7U);
  EXPECT_EQ(answer.code, 1U);
  EXPECT_EQ(answer.before, 1U);
  EXPECT_EQ(answer.after, 2U);
  EXPECT_EQ(answer.used, 3U);
  EXPECT_EQ(answer.total, 4U);
  other.ask({.begin = 8, .device = 2, .budget = 96, .end = 8});
  EXPECT_TRUE(block.next_request());
}

TEST(LiveBlockFile, ARequestThatIsNotWholeIsNotTaken) {
  const Place place;
  BlockFile block(place.folders(), "torn");
  const Opened other(block);
  other.ask({.begin = 7, .device = 2, .budget = 96, .end = 6});
  EXPECT_FALSE(block.next_request());
  other.ask({.begin = 0, .device = 2, .budget = 96, .end = 6});
  EXPECT_FALSE(block.next_request());
  other.ask({.begin = 6, .device = 2, .budget = 96, .end = 0});
  EXPECT_FALSE(block.next_request());
}

TEST(LiveBlockFile, IsIntactUntilSomebodyChangesTheFile) {
  const auto changed = [](const std::function<void(const std::string& path)>& change) {
    const Place place;
    const BlockFile block(place.folders(), "changed");
    EXPECT_TRUE(block.is_intact());
    change(block.path());
    return !block.is_intact();
  };
  EXPECT_TRUE(changed([](const std::string& path) { chmod(path.c_str(), 0660); }));
  EXPECT_TRUE(changed([](const std::string& path) { unlink(path.c_str()); }));
  EXPECT_TRUE(changed(
      [](const std::string& path) { EXPECT_EQ(link(path.c_str(), (path + ".too").c_str()), 0); }));
  EXPECT_TRUE(changed([](const std::string& path) { EXPECT_EQ(truncate(path.c_str(), 9), 0); }));
  EXPECT_TRUE(changed([](const std::string& path) {
    rename(path.c_str(), (path + ".old").c_str());
    EXPECT_EQ(symlink((path + ".old").c_str(), path.c_str()), 0);
  }));
}

}  // namespace
}  // namespace weir::timeline::testing
