// CUPTI in separate programs, until their end: with libweir_timeline.so, and with a recording of
// some batches.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace weir::timeline {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int exit_code = -1;
  std::string errors;
};

class TimelineInjection : public ::testing::Test {
 protected:
  /// Runs the program with these variables and arguments after the library.
  Outcome run(const std::string& variables, const std::string& arguments) const {
    return run_program(variables,
                       "'" WEIR_INJECT_PROGRAM "' '" WEIR_INJECT_LIBRARY "' " + arguments);
  }
  [[nodiscard]] Outcome run_program(const std::string& variables,
                                    const std::string& program) const {
    const std::string command = "unset WEIR_TIMELINE WEIR_TIMELINE_BATCHES WEIR_LOG; " + variables +
                                " " + program + " 2>'" + errors_ + "'";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(errors_)};
  }
  [[nodiscard]] static std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  [[nodiscard]] static std::size_t count(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  }

  const std::string file_ =
      ::testing::TempDir() + "weir_inject_" + std::to_string(getpid()) + ".json";
  const std::string errors_ = file_ + ".errors";

  void TearDown() override {
    std::filesystem::remove(file_);
    std::filesystem::remove(errors_);
  }
};

TEST_F(TimelineInjection, KernelsOfTheProgramAreInTheFile) {
  for (const std::string cupti : {WEIR_STANDIN_OLDER, WEIR_STANDIN_NEWER}) {
    const Outcome outcome =
        run("WEIR_TIMELINE='" + file_ + "' WEIR_CUPTI='" + cupti + "'", "'" + cupti + "'");
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_EQ(outcome.errors, "");
    EXPECT_EQ(count(text_of(file_), "\"step(float*)\""), 100U);
  }
}

// Libraries end in the reverse order of loading: here CUPTI is first.
TEST_F(TimelineInjection, CuptiThatIsOpenedInAWindowIsAskedBeforeItEnds) {
  for (const std::string cupti : {WEIR_STANDIN_OLDER, WEIR_STANDIN_NEWER}) {
    const Outcome outcome = run_program(
        "WEIR_TIMELINE='" + file_ + "' WEIR_TIMELINE_BATCHES=2: WEIR_CUPTI='" + cupti + "'",
        "'" WEIR_WINDOW_PROGRAM "' '" + cupti + "'");
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_EQ(outcome.errors, "");
    EXPECT_EQ(count(text_of(file_), "\"step(float*)\""), 1U);
  }
}

TEST_F(TimelineInjection, WithoutCuptiTheProgramGoesOnAfterOneLine) {
  const Outcome outcome = run("WEIR_TIMELINE='" + file_ + "' WEIR_CUPTI=/no/such", "");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count(outcome.errors, "\n"), 1U) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("/no/such"));
}

TEST_F(TimelineInjection, ABadNameCostsTheProgramOneLine) {
  const Outcome outcome = run("WEIR_TIMELINE=run.txt WEIR_CUPTI='" WEIR_STANDIN_OLDER "'", "");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count(outcome.errors, "\n"), 1U) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("WEIR_TIMELINE='run.txt' is not allowed"));
}

TEST_F(TimelineInjection, ARangeOfBatchesIsLeftAsideInOneLineForThereAreNone) {
  const std::string cupti = WEIR_STANDIN_NEWER;
  const Outcome outcome =
      run("WEIR_TIMELINE='" + file_ + "' WEIR_TIMELINE_BATCHES=10:20 WEIR_CUPTI='" + cupti + "'",
          "'" + cupti + "'");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count(outcome.errors, "\n"), 1U) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("WEIR_TIMELINE_BATCHES is ignored"));
  EXPECT_EQ(count(text_of(file_), "\"step(float*)\""), 100U);
}

TEST_F(TimelineInjection, WithoutANameItSaysThatNothingIsRecorded) {
  const Outcome outcome = run("WEIR_CUPTI='" WEIR_STANDIN_OLDER "'", "");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors, HasSubstr("WEIR_TIMELINE names no file"));
}

}  // namespace
}  // namespace weir::timeline
