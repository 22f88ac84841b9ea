#pragma once

// A folder for blocks, and processes that publish in it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/forked.hpp"
#include "tools/timeline/live/block_file.hpp"
#include "tools/timeline/live/reader.hpp"

namespace weir::timeline::testing {

/// Time between two samples in tests.
inline constexpr std::chrono::milliseconds kShort{1};

/// In memory, like the users' folders. Removed at the test's end.
class Place {
 public:
  Place() {
    std::string name = "/dev/shm/weir-live-test.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder in /dev/shm";
    folders_ = {{name, {}}};
  }
  ~Place() { std::filesystem::remove_all(path()); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  [[nodiscard]] const std::string& path() const { return folders_.front().path; }
  [[nodiscard]] const std::vector<LiveFolder>& folders() const { return folders_; }
  [[nodiscard]] LiveSurvey survey() const { return read_live(folders_); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path()), {}));
  }
  void remove_ended() const { timeline::remove_ended(folders_.front()); }

 private:
  std::vector<LiveFolder> folders_;
};

/// Sample number `i`, with different values in every field.
[[nodiscard]] inline LiveSample numbered(std::uint64_t i) {
  return {.time_ns = 1000 + i,
          .budget = i + 1,
          .requested = i + 2,
          .allocated = i + 3,
          .awaiting = i + 4,
          .cached = i + 5,
          .reserved = 3 * i + 12,  // what the three before it make
          .peak = i + 7,
          .failures = i + 8,
          .open = i + 9,
          .submitted = i + 10,
          .settled = i + 11,
          .stalls = i + 12,
          .stalled_ns = i + 13,
          .knows_busy = 1,
          .busy_ns = i + 14};
}

/// A file in the folder, created and locked by this process like a running program's.
class Forged {
 public:
  Forged(const Place& place, const void* bytes, std::size_t size, const std::string& name)
      : descriptor_(open((place.path() + "/" + name).c_str(),
                         O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    EXPECT_EQ(write(descriptor_, bytes, size), static_cast<ssize_t>(size));
    EXPECT_EQ(flock(descriptor_, LOCK_EX), 0);
  }
  /// Under a valid name for a file of the block's process.
  Forged(const Place& place, const LiveBlock& block)
      : Forged(place, &block, sizeof block, std::to_string(block.pid) + "-2.live") {}
  ~Forged() { close(descriptor_); }
  Forged(const Forged&) = delete;
  Forged& operator=(const Forged&) = delete;

  void unlock() const { flock(descriptor_, LOCK_UN); }

 private:
  const int descriptor_;
};

/// The current contents of a block's file.
[[nodiscard]] inline LiveBlock contents_of(const std::string& path) {
  LiveBlock block;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&block), sizeof block);
  return block;
}

using weir::testing::Forked;
using weir::testing::run_forked;
using weir::testing::Telling;

}  // namespace weir::timeline::testing
