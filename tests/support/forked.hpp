#pragma once

// A child of the test's own process by fork, which shares its objects as they were.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <ctime>
#include <exception>
#include <optional>
#include <random>
#include <type_traits>

namespace weir::testing {

/// What a child tells its parent.
class Telling {
 public:
  explicit Telling(int end) : end_(end) {}
  void operator()(std::uint64_t number = 0) const {
    if (write(end_, &number, sizeof number) != sizeof number) _exit(1);
  }
  /// Tells, and waits to be killed.
  [[noreturn]] void and_wait() const {
    (*this)();
    for (;;) pause();
  }

 private:
  int end_;
};

/// Runs `body`, which may take a Telling and may return the exit code, in a child. Killed at the
/// end of the scope if it still runs.
class Forked {
 public:
  template <typename Body>
  explicit Forked(const Body& body) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      run(body, Telling(ends[1]));
    }
    EXPECT_GT(pid_, 0);
    close(ends[1]);
    end_ = ends[0];
  }
  ~Forked() {
    kill();
    close(end_);
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The next number it tells; nothing if it ends before.
  [[nodiscard]] std::optional<std::uint64_t> told() {
    std::uint64_t number = 0;
    if (read(end_, &number, sizeof number) != sizeof number) return std::nullopt;
    return number;
  }
  void send(int signal) const { ::kill(pid_, signal); }
  void kill() {
    if (pid_ <= 0) return;
    send(SIGKILL);
    (void)wait();
  }
  /// Waits for its end. Returns the exit code, or minus the signal that ended it.
  int wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
  /// Kills it at a random moment after it has told something. Returns the last number that it told.
  std::uint64_t kill_at_a_moment(std::mt19937_64& random) {
    std::optional<std::uint64_t> last = told();
    EXPECT_TRUE(last) << "it ended";
    const timespec moment{.tv_sec = 0, .tv_nsec = static_cast<long>(random() % 10'000'000)};
    nanosleep(&moment, nullptr);
    send(SIGKILL);
    EXPECT_EQ(wait(), -SIGKILL);
    while (const auto next = told()) last = next;
    return last.value_or(0);
  }

 private:
  template <typename Body>
  [[noreturn]] static void run(const Body& body, const Telling& tell) {
    constexpr int kThrew = 99;
    try {
      if constexpr (std::is_invocable_r_v<int, Body, const Telling&>) _exit(body(tell));
      if constexpr (std::is_invocable_r_v<int, Body>) _exit(body());
      if constexpr (std::is_invocable_v<Body, const Telling&>) {
        body(tell);
      } else {
        body();
      }
    } catch (const std::exception& error) {
      dprintf(STDERR_FILENO, "in a child: %s\n", error.what());
      _exit(kThrew);
    }
    _exit(0);
  }

  pid_t pid_ = -1;
  int end_ = -1;
};

/// Runs `body` in a child, to its end. Returns the exit code, or minus the signal that ended it.
template <typename Body>
[[nodiscard]] int run_forked(const Body& body) {
  return Forked(body).wait();
}

}  // namespace weir::testing
