// A checkpoint's file belongs to one run, until that ends or is killed.

#include "trainer/checkpoint/checkpoint_lock.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "allocator/base/error.hpp"
#include "support/forked.hpp"
#include "support/message_of.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

class CheckpointLocks : public ::testing::Test {
 protected:
  /// Returns why the file may not be used.
  [[nodiscard]] static std::string refusal(const std::string& path, LockCall lock = flock) {
    return message_of<UsageError>([&] { const CheckpointLock tried("--checkpoint", path, lock); });
  }
  static void expect_refused(const std::string& message, const std::string& path,
                             const std::string& reason) {
    EXPECT_EQ(message.rfind("--checkpoint='" + path + "' is not allowed", 0), 0U) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
    EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
  }

  TemporaryDirectory directory;
  const std::string path = directory.file("run.ckp");
  const std::string me = "process " + std::to_string(getpid());
};

TEST_F(CheckpointLocks, AreOfOneRunUntilItEnds) {
  {
    const CheckpointLock first("--checkpoint", path);
    expect_refused(refusal(path), path, "a file that no other run uses: " + me);
    EXPECT_NO_THROW(CheckpointLock("--checkpoint", directory.file("other.ckp")));
  }
  EXPECT_EQ(directory.entries(), 0U);
  EXPECT_NO_THROW(CheckpointLock("--checkpoint", path));
}

TEST_F(CheckpointLocks, HoldAlthoughEachCheckpointReplacesTheFile) {
  write_file(path, "old");
  const CheckpointLock first("--checkpoint", path);
  write_file(path + ".partial", "new");
  std::filesystem::rename(path + ".partial", path);
  expect_refused(refusal(path), path, me);
}

TEST_F(CheckpointLocks, AreTheSameThroughALink) {
  const std::string link = directory.file("link");
  std::filesystem::create_symlink("run.ckp", link);
  const CheckpointLock first("--checkpoint", link);
  expect_refused(refusal(path), path, me);
}

TEST_F(CheckpointLocks, OfAKilledRunAreReleased) {
  {
    Forked other([&](const Telling& tell) {
      const CheckpointLock lock("--checkpoint", path);
      tell.and_wait();
    });
    ASSERT_TRUE(other.told());
    expect_refused(refusal(path), path, "uses: process " + std::to_string(other.pid()) + " ");
  }
  EXPECT_TRUE(std::filesystem::exists(path + ".lock")) << "it could not remove it";
  const CheckpointLock next("--checkpoint", path);
  expect_refused(refusal(path), path, me);
}

TEST_F(CheckpointLocks, NeedAFileSystemThatHasThem) {
  const LockCall none = [](int, int) {
    errno = ENOLCK;
    return -1;
  };
  expect_refused(refusal(path, none), path, path + ".lock can be locked");
  expect_refused(refusal(path, none), path, "No locks available");
}

TEST_F(CheckpointLocks, NeverTakeAFileThatIsNoRuns) {
  write_file(path + ".lock", "notes of somebody\n");
  expect_refused(refusal(path), path, "no run wrote that one");
  EXPECT_EQ(read_file(path + ".lock"), "notes of somebody\n");
  std::filesystem::remove(path + ".lock");
  std::filesystem::create_symlink("elsewhere", path + ".lock");
  expect_refused(refusal(path), path, path + ".lock can be locked");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST_F(CheckpointLocks, ShowNothingOfAnOwnerThatIsNoRuns) {
  const int held = open((path + ".lock").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(held, 0);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  ASSERT_EQ(write(held, "process \x1b[31m\n", 14), 14);
  expect_refused(refusal(path), path, "uses: another run does");
  close(held);
}

TEST_F(CheckpointLocks, AreOnlyForFilesThatARunReplaces) {
  for (const std::string other : {"", "-", "/dev/null", "/nowhere/run.ckp"}) {
    EXPECT_NO_THROW(CheckpointLock("--checkpoint", other)) << other;
  }
  EXPECT_FALSE(std::filesystem::exists("/dev/null.lock"));
}

}  // namespace
}  // namespace weir::testing
