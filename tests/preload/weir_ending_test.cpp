// How programs end that the real library is in: as they would without it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "weir_process.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;

/// The program by itself, with the library in it and with these variables.
Finished run_ending(const Words& words, Variables variables = {}) {
  variables.insert({{"LD_PRELOAD", SWAP_IN_LIBRARY},
                    {"LD_LIBRARY_PATH", STANDIN_FOLDER},
                    {"CUDA_VISIBLE_DEVICES", ""}});
  return ChildProcess(words, {.program = ENDING_PROGRAM, .environment = std::move(variables)})
      .wait();
}

/// Calls that the library makes with locks of its own, and without any.
constexpr std::array kOwnCalls{"cuCtxGetCurrent", "cuMemAlloc", "cuStreamQuery", "cuEventRecord",
                               "cuEventQuery"};

TEST(WeirEnding, ExitInASignalHandlerEndsTheProgramInTheMiddleOfACall) {
  for (const char* call : kOwnCalls) {
    const Finished ended = run_ending({"exit-in", call});
    EXPECT_EQ(ended.exit_code, 0) << call << ": " << ended.signal << ended.err;
    EXPECT_EQ(ended.err, "") << "nothing was asked for that is missing";
  }
}

TEST(WeirEnding, ExitInASignalHandlerSaysThatTheSummaryIsMissing) {
  for (const char* call : kOwnCalls) {
    const Finished ended = run_ending({"exit-in", call}, {{"WEIR_SUMMARY", "-"}});
    EXPECT_EQ(ended.exit_code, 0) << call << ": " << ended.signal << ended.err;
    EXPECT_EQ(ended.err,
              "weir: no summary: exit() was called in a signal handler, in the middle of a call\n");
    EXPECT_EQ(ended.out, "");
  }
}

TEST(WeirEnding, AThreadThatIsStuckInACallDoesNotKeepTheProgram) {
  EXPECT_EQ(run_ending({"exit-beside"}).err, "");
  const Finished ended = run_ending({"exit-beside"}, {{"WEIR_SUMMARY", "-"}});
  EXPECT_EQ(ended.exit_code, 0) << ended.signal;
  EXPECT_THAT(ended.err, HasSubstr("weir: no summary: another thread is stuck in a call"));
}

}  // namespace
}  // namespace weir::testing
