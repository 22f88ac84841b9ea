#include "tools/program/run_main.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "allocator/base/error.hpp"

namespace weir::testing {
namespace {

/// The exit code and what was printed, of a program that throws `error`.
template <typename E>
std::pair<int, std::string> run_throwing(const E& error) {
  ::testing::internal::CaptureStderr();
  const int code = run_main("prog", [&]() -> int { throw error; });
  return {code, ::testing::internal::GetCapturedStderr()};
}

TEST(RunMain, ReturnsTheExitCodeOfTheProgram) {
  EXPECT_EQ(run_main("prog", [] { return 7; }), 7);
}

TEST(RunMain, EveryErrorIsALineAndHasItsExitCode) {
  EXPECT_EQ(run_throwing(UsageError("wrong flag")),
            std::pair(2, std::string("prog: wrong flag\n")));
  EXPECT_EQ(run_throwing(OutOfMemory("full")), std::pair(3, std::string("prog: full\n")));
  EXPECT_EQ(run_throwing(Cancelled("stopped")), std::pair(130, std::string("prog: stopped\n")));
  EXPECT_EQ(run_throwing(std::runtime_error("bug")), std::pair(1, std::string("prog: bug\n")));
}

TEST(RunMain, EscapesWhatTheUserGaveAndKeepsTheLinesOfAReport) {
  EXPECT_EQ(run_throwing(UsageError("a\nb")).second, "prog: a\\x0ab\n");
  EXPECT_EQ(run_throwing(OutOfMemory("a\nb")).second, "prog: a\nb\n");
}

}  // namespace
}  // namespace weir::testing
