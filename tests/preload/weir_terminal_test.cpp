// `weir run` under a terminal and under a shell with job control.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>

#include "weir_process.hpp"

namespace weir::testing {
namespace {

/// `weir run -- FAKE_PROGRAM catch exit 7`, whose output and end the test controls.
ChildOptions in_a_job(int terminal = -1) {
  return {.environment = with_library({}), .is_job = true, .terminal = terminal};
}
const Words kCatch = run_words({}, {"catch", "exit", "7"});

TEST(WeirTerminal, AnInterruptFromTheTerminalReachesTheProgramOnce) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_TRUE(grantpt(terminal) == 0 && unlockpt(terminal) == 0);
  // Otherwise an interrupt drops output that was not read yet.
  termios settings{};
  ASSERT_EQ(tcgetattr(terminal, &settings), 0);
  settings.c_lflag |= NOFLSH;
  ASSERT_EQ(tcsetattr(terminal, TCSANOW, &settings), 0);
  ChildProcess job(kCatch, in_a_job(terminal));
  job.await_text("ready");
  constexpr char kInterrupt = 3;  // Ctrl-C
  constexpr int kRounds = 20;     // a second one that comes too soon merges with the first
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(write(terminal, &kInterrupt, 1), 1);
    job.await_text("got SIGINT");
    // After `weir` has handled the interrupt.
    job.send(SIGUSR1);
    job.await_text("got SIGUSR1");
  }
  job.send(SIGTERM);
  const Finished end = job.wait();
  close(terminal);
  EXPECT_EQ(end.exit_code, 7);
  EXPECT_EQ(occurrences(end.out, "got SIGINT"), kRounds);
  EXPECT_EQ(occurrences(end.out, "got SIGTERM"), 1);
}

TEST(WeirTerminal, StopsAndGoesOnWithTheProgram) {
  ChildProcess job(kCatch, in_a_job());
  job.await_error_text("ready");
  job.send(SIGTSTP);
  ASSERT_TRUE(job.has_stopped());
  // Before it continues: the kernel drops a pending stop then.
  job.await_error_text("got SIGTSTP");
  job.send(SIGCONT);
  job.await_error_text("got SIGCONT");
  job.send(SIGTERM);
  EXPECT_EQ(job.wait().exit_code, 7);
}

}  // namespace
}  // namespace weir::testing
