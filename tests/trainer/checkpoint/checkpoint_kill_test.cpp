// A process that writes checkpoints and is killed at any moment leaves a whole one, of some batch.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>

#include "allocator/base/error.hpp"
#include "checkpoint_samples.hpp"
#include "support/forked.hpp"
#include "support/message_of.hpp"
#include "support/random_seed.hpp"
#include "trainer/checkpoint/checkpointer.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

CheckpointHeader header_of_batch(std::uint64_t batch) {
  return {.settings = {},
          .position = {{"batch", std::to_string(batch)}},
          .sections = {{"a", {2000}}, {"b", {3}}, {"c", {500}}}};
}

/// Writes one checkpoint after another, all elements of which are the batch's number, from batch
/// `begun` on, and tells of each section before it and of each file after it.
[[noreturn]] void write_for_ever(const std::string& path, std::uint64_t begun,
                                 const Telling& tell) {
  OutputFile file("--checkpoint", path, OutputFile::Beside::kOneName);
  for (std::uint64_t batch = begun;; ++batch) {
    write_checkpoint(file, header_of_batch(batch),
                     [&](std::size_t, std::size_t, std::span<float> out) {
                       tell();
                       std::ranges::fill(out, static_cast<float>(batch));
                     });
    tell();
  }
}

/// Starts a writer and kills it after so many of its steps, wherever it is by then.
void write_until_killed(const std::string& path, std::uint64_t begun, int count) {
  Forked child([&](const Telling& tell) { write_for_ever(path, begun, tell); });
  for (int i = 0; i < count; ++i) EXPECT_TRUE(child.told());
  child.send(SIGKILL);
  EXPECT_EQ(child.wait(), -SIGKILL);
}

TEST(CheckpointKill, TheFileIsAlwaysWholeAndTheNextRunGoesOn) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("run.ckp");
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  std::uint64_t batch = 0;
  int beside = 0;
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    write_until_killed(path, batch + 1, std::uniform_int_distribution(1, 12)(random));
    beside += static_cast<int>(std::filesystem::exists(path + ".partial"));
    EXPECT_LE(directory.entries(), 2U);
    if (!std::filesystem::exists(path)) continue;
    const CheckpointReader reader("--resume", path);
    const std::uint64_t found = reader.number("batch");
    EXPECT_GE(found, batch);
    batch = found;
    for (const auto& elements : read_all(reader)) {
      EXPECT_EQ(std::ranges::count(elements, static_cast<float>(batch)), std::ssize(elements));
    }
  }
  EXPECT_GT(batch, 20U);
  EXPECT_GT(beside, 0) << "some were killed with a file half written";
  { const OutputFile next("--checkpoint", path, OutputFile::Beside::kOneName); }
  EXPECT_EQ(directory.entries(), 1U) << "the next run removes what a killed one left";
}

// A checkpoint's file belongs to one run, until that ends or is killed.

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
