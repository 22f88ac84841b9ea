// Children that cannot outlive their time.

#include "tools/weir/doctor/bounded.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/sanitized.hpp"

namespace weir::cli::doctor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{600'000};  // ends only where something hangs
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

/// Whether the process is there, and no zombie that nobody has reaped yet.
bool runs(pid_t process) {
  const Bounded state = shell("cat /proc/" + std::to_string(process) + "/stat 2>&1");
  return state.exit_code == 0 && state.out.find(") Z ") == std::string::npos;
}

TEST(DoctorBounded, OneThatHangsIsEndedWithWhatItStarted) {
  Bounded ran;
  for (milliseconds limit{500}; ran.out.empty(); limit *= 2) {  // until it gets so far
    ran = shell("sleep 1000 & echo $!; wait", limit);
  }
  EXPECT_EQ(ran.answer, Answer::kTimedOut);
  const pid_t grandchild = std::stoi(ran.out);
  while (runs(grandchild)) continue;
}

TEST(DoctorBounded, OneThatLeavesAChildBehindIsNotWaitedForLonger) {
  const auto begin = std::chrono::steady_clock::now();
  const Bounded ran = shell("echo said; sleep 1000 & exit 0");
  EXPECT_EQ(ran.answer, Answer::kCame);
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "said\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong / 2);
}

TEST(DoctorBounded, OneThatIgnoresBeingAskedIsEndedToo) {
  EXPECT_EQ(shell("trap '' TERM INT HUP; while :; do sleep 1000; done", kShort).answer,
            Answer::kTimedOut);
}

/// Starts a process that waits for a shell with a child, sends it the signal, and returns the
/// processes of the shell and of its child.
std::array<pid_t, 2> left_by(int signal) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t waiting = fork();
  if (waiting == 0) {
    (void)dup2(ends[1], 9);  // shells know files of one digit
    (void)shell("sleep 1000 & echo $$ $! >&9; wait");
    _exit(0);
  }
  std::array<char, 64> text{};
  EXPECT_GT(read(ends[0], text.data(), text.size() - 1), 0) << "it has begun";
  for (const int end : ends) close(end);
  EXPECT_EQ(kill(waiting, signal), 0);
  int status = 0;
  EXPECT_EQ(waitpid(waiting, &status, 0), waiting);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
  std::istringstream words(text.data());
  std::array<pid_t, 2> left{};
  words >> left[0] >> left[1];
  return left;
}

TEST(DoctorBounded, ItEndsWithUs) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    const auto [program, started] = left_by(signal);
    while (runs(program)) continue;
    (void)kill(started, SIGKILL);
  }
}

TEST(DoctorBounded, WorksWhereSignalsAreIgnored) {
  (void)std::signal(SIGHUP, SIG_IGN);
  (void)std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(shell("kill -HUP $$; echo on").out, "on\n") << "as nohup has it";
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
  EXPECT_EQ(std::signal(SIGCHLD, SIG_DFL), SIG_DFL) << "or the kernel would reap the child";
}

TEST(DoctorBounded, AMebibyteOfOutputIsAllThatItCanWrite) {
  const Bounded ran = shell("yes & yes & yes >&2 & yes; wait; exit 3");
  EXPECT_EQ(ran.answer, Answer::kCame);
  EXPECT_EQ(ran.exit_code, 3);
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

TEST(DoctorBounded, AFunctionWithoutMemorySaysSo) {
  EXPECT_THROW((void)run_function([]() -> std::string { throw std::bad_alloc(); }, kLong),
               std::bad_alloc);
}

/// In a process that may open so many more files.
Bounded with_files(int more, const std::function<std::string()>& body) {
  return run_function(
      [&] {
        std::vector<int> open;
        for (int i = 0; i < more; ++i) open.push_back(dup(STDERR_FILENO));
        const auto most = static_cast<rlim_t>(open.back() + 1);
        for (const int file : open) close(file);
        const rlimit few{.rlim_cur = most, .rlim_max = most};
        return setrlimit(RLIMIT_NOFILE, &few) == 0 ? body() : "no limit";
      },
      kLong);
}

TEST(DoctorBounded, WithoutFilesItThrowsWhatTheSystemSays) {
#if WEIR_TEST_SANITIZED
  GTEST_SKIP() << "the sanitizer's own checks need files";
#endif
  const Bounded ran = with_files(1, [] { return shell("echo yes").out; });
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.err, "no file for an output can be made: Too many open files");
}

TEST(DoctorBounded, AChildHasAllFilesThatItMayHave) {
  const Bounded ran = with_files(6, [] {
    return run_function(
               [] {
                 std::string opened;
                 while (dup(STDERR_FILENO) >= 0) opened += 'x';
                 return opened;
               },
               kLong)
        .out;
  });
  EXPECT_EQ(ran.out, "xxxxx") << ran.err;  // and one for its result
}

TEST(DoctorBounded, NoChildIsLeft) {
  (void)shell("exit 0");
  (void)shell("sleep 1000", kShort);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace weir::cli::doctor
