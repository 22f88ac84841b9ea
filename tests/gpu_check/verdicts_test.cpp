#include "tools/gpu_check/report/verdicts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu_check/sample.hpp"
#include "tools/gpu_check/report/kernel_bounds.hpp"
#include "tools/gpu_check/report/text.hpp"

namespace weir::gpu_check {
namespace {

using ::testing::HasSubstr;
using weir::testing::json;
using weir::testing::made_up_evidence;
using weir::testing::made_up_policy;
using weir::testing::made_up_throttled;
using weir::testing::step_in;

/// The conditions that `evidence` does not meet, with what was found.
std::vector<std::string> not_met(const json& evidence) {
  std::vector<std::string> found;
  for (const Verdict& verdict : judge(evidence)) {
    if (verdict.state != State::kMet) found.push_back(verdict.condition + ": " + verdict.figure);
  }
  return found;
}

/// The one that it does not meet; the others do not change.
std::string only_not_met(const json& evidence) {
  const std::vector<std::string> found = not_met(evidence);
  EXPECT_EQ(found.size(), 1U) << ::testing::PrintToString(found);
  return found.empty() ? "" : found.front();
}

json& comparison(json& evidence) { return step_in(evidence, "compare_x16_ring").at("figures"); }

TEST(GpuVerdicts, ARunThatHasEverythingMeetsEverything) {
  const std::vector<Verdict> verdicts = judge(made_up_evidence());
  constexpr std::size_t kTimelines = 3 + 1 + 4;
  const std::size_t programs = 2 * kTrainingPrograms.size() + 3 + 1;
  EXPECT_EQ(verdicts.size(), 3 + 5 * kComparisons.size() + 1 + 1 + 2 + kTimelines + programs);
  EXPECT_TRUE(holds(verdicts)) << ::testing::PrintToString(not_met(made_up_evidence()));
}

TEST(GpuVerdicts, ThrottledMustReachItsShareOfUnbounded) {
  json evidence = made_up_evidence();
  comparison(evidence)["policies"][2] = made_up_throttled(0.989, 0.99);
  EXPECT_THAT(only_not_met(evidence), HasSubstr("at least 0.99 of unbounded: 0.989"));
  EXPECT_FALSE(holds(judge(evidence)));
  comparison(evidence)["policies"][2] = made_up_throttled(0.99, 0.99);
  EXPECT_TRUE(holds(judge(evidence)));
}

TEST(GpuVerdicts, ThrottledMustReachItsShareOfALoopWithoutWeir) {
  json evidence = made_up_evidence();
  comparison(evidence)["policies"][2] = made_up_throttled(1, 0.969);
  EXPECT_THAT(only_not_met(evidence),
              HasSubstr("at least 0.97 of a CUDA loop without Weir: 0.969 (0.484 to 1.938); host "
                        "time per batch 40.0 us, without Weir 30.0 us"));
  EXPECT_FALSE(holds(judge(evidence)));
  comparison(evidence)["policies"][2] = made_up_throttled(1, 0.97);
  EXPECT_TRUE(holds(judge(evidence)));
}

TEST(GpuVerdicts, WithoutALoopWithoutWeirThatIsNotMet) {
  json evidence = made_up_evidence();
  comparison(evidence)["plain"] = {{"left_out", "made up"}};
  comparison(evidence)["policies"][2].erase("to_plain");
  EXPECT_THAT(only_not_met(evidence), HasSubstr("without Weir: made up"));
  comparison(evidence)["plain"] = made_up_policy("plain", 0, "out of memory in batch 1");
  EXPECT_THAT(only_not_met(evidence), HasSubstr("without Weir: out of memory in batch 1"));
}

TEST(GpuVerdicts, ThrottledMustBeAboveTheBarrier) {
  json evidence = made_up_evidence();
  comparison(evidence)["policies"][3] = made_up_policy("barrier", 1, "finished");
  EXPECT_THAT(only_not_met(evidence), HasSubstr("above the barrier: 1.000 against 1.000"));
}

TEST(GpuVerdicts, UnboundedMustRunOutOfMemory) {
  json evidence = made_up_evidence();
  comparison(evidence)["policies"][0] = made_up_policy("unbounded", 1, "finished");
  EXPECT_THAT(only_not_met(evidence), HasSubstr("same budget: finished"));
}

TEST(GpuVerdicts, WeightsMustBeIdenticalAndOfEveryPolicyThatShouldLive) {
  json evidence = made_up_evidence();
  comparison(evidence)["weights_identical"] = false;
  EXPECT_THAT(only_not_met(evidence), HasSubstr("NOT identical in the 16 runs"));
  comparison(evidence)["weights_identical"] = true;
  comparison(evidence)["policies"][1] = made_up_policy("backstop", 0, "out of memory in batch 9");
  EXPECT_THAT(only_not_met(evidence), HasSubstr("bit-identical"));
}

TEST(GpuVerdicts, AFailedOrSkippedTestIsNotMet) {
  json evidence = made_up_evidence();
  json& tests = step_in(evidence, "tests")["figures"]["testsuites"][0]["testsuite"];
  tests[0]["failures"] = json::array({{{"failure", "made up"}}});
  EXPECT_THAT(only_not_met(evidence), HasSubstr("1 passed, 1 failed, 0 skipped"));
  tests[0].erase("failures");
  tests[0]["result"] = "SKIPPED";
  EXPECT_THAT(only_not_met(evidence), HasSubstr("1 passed, 0 failed, 1 skipped"));
  tests.clear();
  EXPECT_THAT(only_not_met(evidence), HasSubstr("0 passed"));
}

TEST(GpuVerdicts, TestsThatAllPassedInAProgramThatThenFailedAreNotEnough) {
  json evidence = made_up_evidence();
  step_in(evidence, "tests")["exit_code"] = 1;
  EXPECT_THAT(only_not_met(evidence), HasSubstr("failed (exit 1)"));
}

TEST(GpuVerdicts, ASanitizerMustFindNothing) {
  json evidence = made_up_evidence();
  step_in(evidence, "memcheck")["summary"] = "ERROR SUMMARY: 10 errors";
  EXPECT_THAT(only_not_met(evidence), HasSubstr("memcheck is clean: ERROR SUMMARY: 10"));
  step_in(evidence, "memcheck").erase("summary");
  EXPECT_THAT(only_not_met(evidence), HasSubstr("it printed no summary"));
}

TEST(GpuVerdicts, WhatIsLeftOutIsNeitherMetNorNotMet) {
  json evidence = made_up_evidence();
  step_in(evidence, "racecheck") = {{"name", "racecheck"}, {"left_out", "no such tool"}};
  const std::vector<Verdict> verdicts = judge(evidence);
  EXPECT_EQ(verdicts[2].state, State::kLeftOut);
  EXPECT_EQ(verdicts[2].figure, "no such tool");
  EXPECT_TRUE(holds(verdicts));
}

TEST(GpuVerdicts, AStepThatRanOutOfTimeMeetsNothing) {
  json evidence = made_up_evidence();
  json& step = step_in(evidence, "compare_x1_drawn");
  step["exit_code"] = 124;
  step.erase("figures");
  const std::vector<std::string> found = not_met(evidence);
  EXPECT_EQ(found.size(), 5U);
  for (const std::string& line : found) EXPECT_THAT(line, HasSubstr("stopped at its limit of 40"));
}

TEST(GpuVerdicts, FiguresOfAStepThatFailedDoNotCount) {
  json evidence = made_up_evidence();
  step_in(evidence, "compare_x1_ring")["exit_code"] = 1;
  EXPECT_EQ(not_met(evidence).size(), 5U);
}

TEST(GpuVerdicts, FiguresOfAnotherShapeAreNotMetAndSayWhy) {
  json evidence = made_up_evidence();
  comparison(evidence).erase("reference");
  const std::vector<std::string> found = not_met(evidence);
  EXPECT_EQ(found.size(), 5U);
  for (const std::string& line : found) EXPECT_THAT(line, HasSubstr("reference"));
  evidence = made_up_evidence();
  step_in(evidence, "bench").erase("figures");
  step_in(evidence, "bench")["unreadable"] = "bench.json";
  EXPECT_THAT(only_not_met(evidence), HasSubstr("bench.json is no JSON"));
}

json& kernels(json& evidence) { return step_in(evidence, "bench")["figures"]["kernels"]; }

TEST(GpuVerdicts, EveryKernelMustBeWithinItsBound) {
  json evidence = made_up_evidence();
  const std::size_t bench = 3 + 5 * kComparisons.size();
  EXPECT_EQ(judge(evidence).at(bench).figure,
            count(2 + kNamedBounds.size(), "kernel") +
                ", 1.00 (fill_normal 2^26) to 1.15 (made_up 2x3) times the floor");
  kernels(evidence)[2]["median_us"] = 115.5;
  EXPECT_THAT(only_not_met(evidence), HasSubstr("made_up 2x3 takes 1.16 of at most 1.15"));
  EXPECT_FALSE(holds(judge(evidence)));
}

TEST(GpuVerdicts, AProductHasABoundOfItsOwn) {
  json evidence = made_up_evidence();
  kernels(evidence)[2]["floor_of"] = "sgemm";
  EXPECT_THAT(only_not_met(evidence), HasSubstr("made_up 2x3 takes 1.15 of at most 1.10"));
  kernels(evidence)[2]["median_us"] = 110;
  EXPECT_TRUE(holds(judge(evidence)));
}

TEST(GpuVerdicts, AKernelThatHasABoundByNameIsHeldToThat) {
  json evidence = made_up_evidence();
  for (json& kernel : kernels(evidence)) {
    if (kernel["name"] == "fill_normal") kernel["median_us"] = 249;
  }
  EXPECT_TRUE(holds(judge(evidence)));
  for (json& kernel : kernels(evidence)) {
    if (kernel["name"] == "fill_normal") kernel["median_us"] = 251;
  }
  EXPECT_THAT(only_not_met(evidence), HasSubstr("fill_normal 2^26 takes 2.51 of at most 2.50"));
}

TEST(GpuVerdicts, AKernelWithoutABoundIsNotMet) {
  json evidence = made_up_evidence();
  kernels(evidence)[2]["floor_of"] = "another rate";
  EXPECT_THAT(only_not_met(evidence), HasSubstr("made_up 2x3: no bound for a floor of another"));
  kernels(evidence)[2] = weir::testing::made_up_kernel("made_up", "2x3", 3, 3);
  EXPECT_THAT(only_not_met(evidence),
              HasSubstr("made_up 2x3: a floor of 3.0 us is mostly its launch"));
}

TEST(GpuVerdicts, ABoundThatNoKernelOfTheBenchHasIsNotMet) {
  json evidence = made_up_evidence();
  kernels(evidence).erase(kernels(evidence).size() - 1);
  EXPECT_THAT(only_not_met(evidence),
              HasSubstr("dense_input_gradient 1024x1024x1024 was not timed"));
}

TEST(GpuVerdicts, KernelsThatTookNoTimeOrWereNotTimedAreNotMet) {
  json evidence = made_up_evidence();
  kernels(evidence)[2]["floor_us"] = 0;
  EXPECT_THAT(only_not_met(evidence), HasSubstr("made_up are no times"));
  kernels(evidence) = json::array({kernels(evidence)[0]});
  EXPECT_THAT(only_not_met(evidence), HasSubstr("no kernel"));
}

}  // namespace
}  // namespace weir::gpu_check
