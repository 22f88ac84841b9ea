// `weir run` under a terminal and under a shell with job control. It needs its own process group,
// which ChildProcess does not make.

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "weir_process.hpp"

namespace weir::testing {
namespace {

/// `weir run -- FAKE_PROGRAM catch exit 7`, whose output and end the test controls.
class Job {
 public:
  enum class Under { kTerminal, kShell };

  explicit Job(Under under) {
    std::array<int, 2> pipe{-1, -1};
    if (under == Under::kShell && ::pipe(pipe.data()) != 0) return;
    process_ = under == Under::kTerminal ? forkpty(&output_, nullptr, nullptr, nullptr) : fork();
    if (process_ == 0) become_weir(pipe[1]);
    if (under == Under::kTerminal) return;
    close(pipe[1]);
    output_ = pipe[0];
  }
  ~Job() {
    // The group: the program must not outlive its `weir`.
    if (process_ > 0) {
      kill(-process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    close(output_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Reads until `text` has come so many times.
  void await(const std::string& text, int times = 1) {
    constexpr int kDeadlineMs = 100'000;
    while (count(text) < times) {
      pollfd news{output_, POLLIN, 0};
      std::array<char, 512> block{};
      ASSERT_GT(poll(&news, 1, kDeadlineMs), 0) << "no '" << text << "' in: " << text_;
      const ssize_t count = read(output_, block.data(), block.size());
      ASSERT_GT(count, 0) << "it ended without '" << text << "': " << text_;
      text_.append(block.data(), static_cast<std::size_t>(count));
    }
  }
  void type(char letter) const { ASSERT_EQ(write(output_, &letter, 1), 1); }
  void send(int signal) const { ASSERT_EQ(kill(process_, signal), 0); }
  /// The status when it stops or ends.
  [[nodiscard]] int wait() {
    int status = 0;
    waitpid(process_, &status, WUNTRACED);
    if (!WIFSTOPPED(status)) process_ = -1;
    return status;
  }
  [[nodiscard]] int count(const std::string& text) const {
    int count = 0;
    for (std::size_t at = 0; (at = text_.find(text, at)) != std::string::npos; ++at) ++count;
    return count;
  }

 private:
  [[noreturn]] static void become_weir(int output) {
    if (output >= 0) {
      setpgid(0, 0);
      dup2(output, STDERR_FILENO);
    } else {
      // Otherwise an interrupt drops output that was not read yet.
      termios settings{};
      tcgetattr(STDIN_FILENO, &settings);
      settings.c_lflag |= NOFLSH;
      tcsetattr(STDIN_FILENO, TCSANOW, &settings);
    }
    for (const auto& [name, value] : with_library({})) setenv(name.c_str(), value.c_str(), 1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int signal : {SIGINT, SIGTERM, SIGTSTP, SIGCONT}) (void)std::signal(signal, SIG_DFL);
    execl(WEIR_TRAIN_PROGRAM, "weir", "run", "--", FAKE_PROGRAM, "catch", "exit", "7", nullptr);
    _exit(127);
  }

  pid_t process_ = -1;
  int output_ = -1;
  std::string text_;
};

TEST(WeirTerminal, AnInterruptFromTheTerminalReachesTheProgramOnce) {
  Job job(Job::Under::kTerminal);
  job.await("ready");
  constexpr char kInterrupt = 3;  // Ctrl-C
  constexpr int kRounds = 20;     // a second one that comes too soon merges with the first
  for (int round = 1; round <= kRounds; ++round) {
    job.type(kInterrupt);
    job.await("got SIGINT", round);
    // After `weir` has handled the interrupt.
    job.send(SIGUSR1);
    job.await("got SIGUSR1", round);
  }
  job.send(SIGTERM);
  job.await("got SIGTERM");
  const int status = job.wait();
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(job.count("got SIGINT"), kRounds);
}

TEST(WeirTerminal, StopsAndGoesOnWithTheProgram) {
  Job job(Job::Under::kShell);
  job.await("ready");
  job.send(SIGTSTP);
  ASSERT_TRUE(WIFSTOPPED(job.wait()));
  // Before it continues: the kernel drops a pending stop then.
  job.await("got SIGTSTP");
  job.send(SIGCONT);
  job.await("got SIGCONT");
  job.send(SIGTERM);
  const int status = job.wait();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace weir::testing
