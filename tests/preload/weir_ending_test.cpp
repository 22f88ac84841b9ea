// Programs with the real library end as they would without it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include "weir_process.hpp"

namespace weir::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The program, with the library and with these variables.
Finished run_ending(const Words& words, Variables variables = {}) {
  variables.insert({{"LD_PRELOAD", SWAP_IN_LIBRARY},
                    {"LD_LIBRARY_PATH", STANDIN_FOLDER},
                    {"CUDA_VISIBLE_DEVICES", ""}});
  return ChildProcess(words, {.program = ENDING_PROGRAM, .environment = std::move(variables)})
      .wait();
}

/// Calls that the library makes while it holds locks, and while it holds none.
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

/// A cancellation in the middle of a call takes effect after it, in the program's own code.
TEST(WeirEnding, APthreadThatIsCancelledEndsAlone) {
  for (const char* when : {"cancel-first", "cancel-failing", "cancel-waiting"}) {
    const Finished ended = run_ending({when}, {{"WEIR_STANDIN_MEMORY", "1G"}});
    EXPECT_EQ(ended.exit_code, 0) << when << ": " << ended.signal << ended.err;
  }
}

/// The program, run where no file may grow.
std::string with_no_room() { return "ulimit -f 0; exec " ENDING_PROGRAM " exit"; }

TEST(WeirEnding, ASummaryThatFindsNoRoomIsALineAndNoSignal) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("summary.json");
  const Finished ended =
      ChildProcess({"-c", "export LD_PRELOAD=" SWAP_IN_LIBRARY "; " + with_no_room()},
                   {.program = "/bin/sh",
                    .environment = {{"LD_LIBRARY_PATH", STANDIN_FOLDER}, {"WEIR_SUMMARY", file}}})
          .wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.signal;
  EXPECT_THAT(ended.err, HasSubstr("weir: the summary cannot be written: WEIR_SUMMARY='" + file));
  EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(WeirEnding, LinesAndATimelineThatFindNoRoomAreNoSignal) {
  const TemporaryDirectory directory;
  for (const std::string& asked :
       {std::string("WEIR_LOG=info"), "WEIR_TIMELINE=" + directory.file("timeline.json")}) {
    const std::string line = "export LD_PRELOAD=" SWAP_IN_LIBRARY " " + asked + "; " +
                             with_no_room() + " 2> " + directory.file("lines");
    const Finished ended =
        ChildProcess({"-c", line},
                     {.program = "/bin/sh", .environment = {{"LD_LIBRARY_PATH", STANDIN_FOLDER}}})
            .wait();
    EXPECT_EQ(ended.exit_code, 0) << asked << ": " << ended.signal;
  }
}

TEST(WeirEnding, RunClaimsNoReasonThatItCannotKnowForASummaryThatIsMissing) {
  const Finished weir = run_weir(
      run_words({}, {"-c", with_no_room()}, "/bin/sh"),
      {{"WEIR_LIBRARY", ""}, {"LD_LIBRARY_PATH", STANDIN_FOLDER}, {"CUDA_VISIBLE_DEVICES", ""}});
  EXPECT_EQ(weir.exit_code, 0) << weir.signal;
  const std::string err = after_allocator(weir.err);
  EXPECT_THAT(err, StartsWith("weir: the summary cannot be written: "));
  EXPECT_THAT(err, EndsWith("\nweir: there is no summary: the program used no CUDA, or ended "
                            "without writing one\n"));
}

}  // namespace
}  // namespace weir::testing
