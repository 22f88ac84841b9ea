// Children that cannot outlive their time.

#include "tools/weir/doctor/collect/bounded.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>

namespace weir::cli::doctor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{60'000};  // ends only where something is wrong
constexpr milliseconds kShort{100};

Bounded shell(const std::string& script, milliseconds limit = kLong) {
  return run_program("/bin/sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin", "GREETING=hello"},
                     limit);
}

TEST(DoctorBounded, AProgramsOutputsAndExitCode) {
  const Bounded ran = shell("echo \"$GREETING\"; echo no >&2; exit 3");
  EXPECT_EQ(ran.answer, Answer::kCame);
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.out, "hello\n");
  EXPECT_EQ(ran.err, "no\n");
}

TEST(DoctorBounded, ItsInputIsEmpty) { EXPECT_EQ(shell("cat; echo end").out, "end\n"); }

TEST(DoctorBounded, OneThatIsNotThereHasExitCode127) {
  const Bounded ran = run_program("/nowhere/program", {"program"}, {}, kLong);
  EXPECT_EQ(ran.answer, Answer::kCame);
  EXPECT_EQ(ran.exit_code, 127);
}

TEST(DoctorBounded, ASignalThatEndsItIsSaid) {
  const Bounded ran = shell("kill -SEGV $$");
  EXPECT_EQ(ran.answer, Answer::kCrashed);
  EXPECT_EQ(ran.signal, SIGSEGV);
}

TEST(DoctorBounded, OneThatHangsIsEndedWithWhatItStarted) {
  const Bounded ran = shell("sleep 1000 & echo $!; wait", kShort);
  EXPECT_EQ(ran.answer, Answer::kTimedOut);
  const pid_t grandchild = std::stoi(ran.out);
  // Nobody may have reaped it yet where init does not: then it is a zombie, which can be signalled.
  const std::string status = "/proc/" + std::to_string(grandchild) + "/stat";
  const Bounded state = shell("cat " + status);
  EXPECT_TRUE(state.exit_code != 0 || state.out.find(") Z ") != std::string::npos) << state.out;
}

TEST(DoctorBounded, OneThatLeavesAChildBehindIsNotWaitedForLonger) {
  const Bounded ran = shell("sleep 1000 & exit 0", kShort);
  EXPECT_EQ(ran.answer, Answer::kCame);
  EXPECT_EQ(ran.exit_code, 0);
}

TEST(DoctorBounded, OneThatIgnoresBeingAskedIsEndedToo) {
  EXPECT_EQ(shell("trap '' TERM INT HUP; while :; do sleep 1000; done", kShort).answer,
            Answer::kTimedOut);
}

TEST(DoctorBounded, KeepsAMebibyteOfOutput) {
  const Bounded ran = shell("head -c 3000000 /dev/zero");
  EXPECT_EQ(ran.answer, Answer::kCame);
  EXPECT_EQ(ran.out.size(), std::size_t{1} << 20U);
}

TEST(DoctorBounded, AFunctionsResultIsItsOutput) {
  const Bounded ran = run_function(
      [] {
        (void)!write(STDOUT_FILENO, "noise\n", 6);  // as libraries do when they are loaded
        return std::string("result");
      },
      kLong);
  EXPECT_EQ(ran.answer, Answer::kCame);
  EXPECT_EQ(ran.out, "result");
  EXPECT_EQ(ran.err, "noise\n");
}

TEST(DoctorBounded, AFunctionThatThrowsHasItsMessage) {
  const Bounded ran =
      run_function([]() -> std::string { throw std::runtime_error("no driver"); }, kLong);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "no driver");
}

TEST(DoctorBounded, AFunctionThatCrashesOrHangsDoesNotTakeUsAlong) {
  const Bounded crashed = run_function(
      []() -> std::string {
        (void)std::signal(SIGABRT, SIG_DFL);
        (void)raise(SIGABRT);
        return {};
      },
      kLong);
  EXPECT_EQ(crashed.answer, Answer::kCrashed);
  EXPECT_EQ(crashed.signal, SIGABRT);
  const Bounded hanging = run_function(
      []() -> std::string {
        for (;;) pause();
      },
      kShort);
  EXPECT_EQ(hanging.answer, Answer::kTimedOut);
}

TEST(DoctorBounded, NoChildIsLeft) {
  (void)shell("exit 0");
  (void)shell("sleep 1000", kShort);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace weir::cli::doctor
