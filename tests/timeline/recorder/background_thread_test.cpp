// Background threads end with the program.

#include "tools/timeline/model/background_thread.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "support/sanitized.hpp"

namespace weir::timeline {
namespace {

constexpr int kEnded = 3;
constexpr int kNeverEnded = 4;

/// Ends the process once a background thread finds that no other thread is left.
[[noreturn]] void leave_a_background_thread() {
  std::thread([] {
    const BackgroundThread watching;
    constexpr int kTries = 500;
    for (int i = 0; i < kTries && !program_has_ended(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    _exit(program_has_ended() ? kEnded : kNeverEnded);
  }).detach();
  // The last step of pthread_exit, which first unwinds the stack, and the test with it.
  for (;;) syscall(SYS_exit, 0);
}

TEST(BackgroundThreads, OfAProgramThatRunsDoNotTakeItForEnded) {
  const BackgroundThread watching;
  EXPECT_FALSE(program_has_ended());
}

TEST(BackgroundThreads, FindThatTheProgramHasEndedAlsoInTheChildOfAFork) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitizer has a thread of its own";
  const BackgroundThread of_the_parent;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) leave_a_background_thread();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kEnded);
}

}  // namespace
}  // namespace weir::timeline
