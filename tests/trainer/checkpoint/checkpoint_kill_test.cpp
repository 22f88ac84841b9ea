// A process that writes checkpoints and is killed at any moment leaves a whole one, of some batch;
// and one whose disk is full leaves the one before.

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "allocator/base/error.hpp"
#include "checkpoint_samples.hpp"
#include "support/forked.hpp"
#include "support/random_seed.hpp"
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

/// Ends the calling process: 77 if it may not have a disk of its own; 0 if all holds.
[[noreturn]] void fill_a_small_disk(const std::string& folder) {
  const auto mount_here = [&] {
    return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("none", folder.c_str(), "tmpfs", 0, "size=64k") == 0;
  };
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) _exit(77);
  if (!mount_here()) _exit(77);
  try {
    const std::string path = folder + "/run.ckp";
    write_sample(path, small_header());
    CheckpointHeader large = small_header();
    large.sections.push_back({"w1", {100'000}});
    try {
      write_sample(path, large);
      _exit(1);
    } catch (const UsageError& full) {
      const std::string_view message = full.what();
      if (message.find("No space left on device") == std::string_view::npos) _exit(2);
      if (message.find(path) == std::string_view::npos) _exit(3);
    }
    if (std::filesystem::exists(path + ".partial")) _exit(4);
    _exit(read_all(path) == sample_of(small_header()) ? 0 : 5);
  } catch (...) {
    _exit(6);
  }
}

TEST(CheckpointDisk, FullKeepsTheOldFileAndSaysSo) {
  const TemporaryDirectory directory;
  const int code = run_forked([&] { fill_a_small_disk(directory.file("")); });
  if (code == 77) GTEST_SKIP() << "a small disk cannot be mounted here";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace weir::testing
