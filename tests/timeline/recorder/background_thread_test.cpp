// Background threads end with the program.

#include "tools/timeline/model/background_thread.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "support/forked.hpp"
#include "support/sanitized.hpp"

namespace weir::timeline {
namespace {

constexpr int kEnded = 3;

/// Ends the process once a background thread finds that no other thread is left.
[[noreturn]] void leave_a_background_thread() {
  std::thread([] {
    const BackgroundThread watching;
    while (!program_has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    _exit(kEnded);
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
  EXPECT_EQ(weir::testing::run_forked([] { leave_a_background_thread(); }), kEnded);
}

}  // namespace
}  // namespace weir::timeline
