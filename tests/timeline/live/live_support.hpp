#pragma once

// A folder for blocks, and processes that publish in it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

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

/// Runs `body` in a child, which reports that it is ready and then waits for its end.
class Child {
 public:
  /// `body` gets the function to call when it is ready, which does not return.
  explicit Child(const std::function<void(const std::function<void()>& ready)>& body) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      body([&] {
        (void)!write(ends[1], "r", 1);
        for (;;) pause();
      });
      _exit(1);
    }
    close(ends[1]);
    char letter = 0;
    ready_ = read(ends[0], &letter, 1) == 1;
    close(ends[0]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  void kill() const { ::kill(pid_, SIGKILL); }
  void end() {
    if (pid_ <= 0) return;
    kill();
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  bool ready_ = false;
};

}  // namespace weir::timeline::testing
