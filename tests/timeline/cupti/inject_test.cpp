// CUPTI in separate programs, until their end: with libweir_timeline.so, and with a recording of
// some batches.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/child_process.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::timeline {
namespace {

using ::testing::HasSubstr;
using weir::testing::ChildProcess;
using weir::testing::Finished;
using weir::testing::occurrences;
using weir::testing::read_file;
using weir::testing::Variables;

class TimelineInjection : public ::testing::Test {
 protected:
  /// The program that loads the library, and this CUPTI if it is named.
  static Finished run(const Variables& variables, weir::testing::Words more = {}) {
    more.insert(more.begin(), WEIR_INJECT_LIBRARY);
    return ended(more, {.program = WEIR_INJECT_PROGRAM, .environment = variables});
  }
  static Finished ended(const weir::testing::Words& words, weir::testing::ChildOptions options) {
    const Finished end = ChildProcess(words, std::move(options)).wait();
    EXPECT_EQ(end.exit_code, 3);
    return end;
  }
  [[nodiscard]] std::ptrdiff_t kernels() const {
    return occurrences(read_file(file_), "\"step(float*)\"");
  }

  const weir::testing::TemporaryDirectory folder_;
  const std::string file_ = folder_.file("run.json");
};

TEST_F(TimelineInjection, KernelsOfTheProgramAreInTheFile) {
  for (const std::string cupti : {WEIR_STANDIN_OLDER, WEIR_STANDIN_NEWER}) {
    EXPECT_EQ(run({{"WEIR_TIMELINE", file_}, {"WEIR_CUPTI", cupti}}, {cupti}).err, "");
    EXPECT_EQ(kernels(), 100);
  }
}

// Libraries end in the reverse order of loading: here CUPTI is first.
TEST_F(TimelineInjection, CuptiThatIsOpenedInAWindowIsAskedBeforeItEnds) {
  for (const std::string cupti : {WEIR_STANDIN_OLDER, WEIR_STANDIN_NEWER}) {
    const Variables variables{
        {"WEIR_TIMELINE", file_}, {"WEIR_TIMELINE_BATCHES", "2:"}, {"WEIR_CUPTI", cupti}};
    EXPECT_EQ(ended({cupti}, {.program = WEIR_WINDOW_PROGRAM, .environment = variables}).err, "");
    EXPECT_EQ(kernels(), 1);
  }
}

TEST_F(TimelineInjection, WhatCannotBeRecordedCostsTheProgramOneLine) {
  const std::string cupti = WEIR_STANDIN_NEWER;
  const auto expect_one_line = [](const Finished& end, const std::string& part) {
    EXPECT_EQ(occurrences(end.err, "\n"), 1) << end.err;
    EXPECT_THAT(end.err, HasSubstr(part));
  };
  expect_one_line(run({{"WEIR_TIMELINE", file_}, {"WEIR_CUPTI", "/no/such"}}), "/no/such");
  expect_one_line(run({{"WEIR_TIMELINE", "run.txt"}, {"WEIR_CUPTI", cupti}}),
                  "WEIR_TIMELINE='run.txt' is not allowed");
  expect_one_line(run({{"WEIR_CUPTI", cupti}}), "WEIR_TIMELINE names no file");
  const Variables batches{
      {"WEIR_TIMELINE", file_}, {"WEIR_TIMELINE_BATCHES", "10:20"}, {"WEIR_CUPTI", cupti}};
  expect_one_line(run(batches, {cupti}), "WEIR_TIMELINE_BATCHES is ignored");
  EXPECT_EQ(kernels(), 100) << "all of them: it has no batches";
}

}  // namespace
}  // namespace weir::timeline
