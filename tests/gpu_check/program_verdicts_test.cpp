#include "tools/gpu_check/report/program_verdicts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu_check/sample.hpp"
#include "tools/gpu_check/report/page.hpp"
#include "tools/gpu_check/report/traces.hpp"

namespace weir::gpu_check {
namespace {

using ::testing::HasSubstr;
using weir::testing::json;
using weir::testing::made_up_evidence;
using weir::testing::made_up_run;
using weir::testing::made_up_summary;
using weir::testing::step_in;

json& program(json& evidence, const std::string& name) {
  for (json& one : step_in(evidence, "programs").at("figures").at("programs")) {
    if (one.at("name") == name) return one;
  }
  throw std::out_of_range(name);
}

json& run(json& evidence, const std::string& name, const std::string& setup) {
  for (json& one : program(evidence, name).at("runs")) {
    if (one.at("setup") == setup) return one;
  }
  throw std::out_of_range(setup);
}

/// Every condition of one program, with verdict and figure.
std::vector<std::string> verdicts_of(const json& evidence, const std::string& title) {
  std::vector<Verdict> all;
  judge_programs(evidence, all);
  std::vector<std::string> found;
  for (const Verdict& verdict : all) {
    if (!verdict.condition.starts_with(title + ": ")) continue;
    found.push_back(std::string(to_string(verdict.state)) + ": " + verdict.figure);
  }
  return found;
}
std::string first_of(const json& evidence, const std::string& title) {
  return verdicts_of(evidence, title).at(0);
}

constexpr const char* kGpt = "PyTorch, transformer";
constexpr const char* kGraphs = "PyTorch, captured step";
constexpr const char* kPrefetch = "PyTorch, prefetching";
constexpr const char* kShared = "PyTorch, 8 processes";
constexpr const char* kCupy = "CuPy, products";
constexpr const char* kJax = "JAX, dense network";

TEST(GpuProgramVerdicts, LossesAreComparedBitForBit) {
  json evidence = made_up_evidence();
  EXPECT_EQ(first_of(evidence, kGpt), "met: bit-identical over 3 steps in 2 runs with Weir");
  run(evidence, "torch_gpt", "weir_async")["printed"]["losses"][1] = "0x1.0000000000001p-1";
  EXPECT_EQ(first_of(evidence, kGpt), "NOT MET: with Weir, in stream order differs from step 1");
  run(evidence, "torch_gpt", "weir_async")["printed"]["losses"] = json::array();
  EXPECT_THAT(first_of(evidence, kGpt), HasSubstr("NOT MET: "));
}

TEST(GpuProgramVerdicts, NoLossesAreNotTheSameLosses) {
  json evidence = made_up_evidence();
  for (json& one : program(evidence, "jax_train")["runs"]) one["printed"]["losses"] = json::array();
  EXPECT_THAT(first_of(evidence, kJax), HasSubstr("NOT MET: "));
}

TEST(GpuProgramVerdicts, AProgramThatDiffersByItselfIsCalledSo) {
  json evidence = made_up_evidence();
  run(evidence, "torch_gpt", "plain")["printed"]["losses"][2] = "0x1p+9";
  EXPECT_EQ(first_of(evidence, kGpt),
            "NOT MET: with Weir differs from step 2; two runs without Weir differ too");
}

TEST(GpuProgramVerdicts, WhatFailsOnlyWithWeirIsNotMet) {
  json evidence = made_up_evidence();
  json& failed = run(evidence, "cupy_loop", "weir");
  failed["exit_code"] = 1;
  failed["said"] = "made-up error";
  EXPECT_EQ(first_of(evidence, kCupy), "NOT MET: with Weir: failed (exit 1): made-up error");
  failed["stopped"] = true;
  EXPECT_EQ(first_of(evidence, kCupy), "NOT MET: with Weir: stopped at its limit");
  failed["exit_code"] = nullptr;
  failed["said"] = "no time was left";
  EXPECT_EQ(first_of(evidence, kCupy), "NOT MET: with Weir: not run: no time was left");
}

TEST(GpuProgramVerdicts, WhatFailsWithoutWeirTooSaysNothingOfIt) {
  json evidence = made_up_evidence();
  for (const char* setup : {"plain_async", "weir_async"}) {
    run(evidence, "torch_graphs", setup)["exit_code"] = 1;
  }
  EXPECT_EQ(first_of(evidence, kGraphs),
            "met: bit-identical over 3 steps in 1 run with Weir; with Weir, in stream order is "
            "compared with nothing: without Weir it failed (exit 1)");
  for (const char* setup : {"plain", "weir"}) {
    run(evidence, "torch_graphs", setup)["exit_code"] = 1;
  }
  EXPECT_THAT(first_of(evidence, kGraphs), HasSubstr("left out: "));
  run(evidence, "torch_graphs", "plain")["exit_code"] =
      nullptr;  // not come to: that spares nothing
  EXPECT_THAT(first_of(evidence, kGraphs), HasSubstr("NOT MET: "));
}

TEST(GpuProgramVerdicts, ARunWithoutWeirThatWasStoppedSparesNothing) {
  json evidence = made_up_evidence();
  for (const char* setup : {"plain", "plain_async"}) {
    json& stopped = run(evidence, "torch_graphs", setup);
    stopped["exit_code"] = -9;
    stopped["stopped"] = true;
  }
  EXPECT_EQ(first_of(evidence, kGraphs),
            "NOT MET: with Weir: without Weir stopped at its limit; with Weir, in stream order: "
            "without Weir stopped at its limit");
  // Nor does it where the run with Weir failed as well.
  for (const char* setup : {"weir", "weir_async"})
    run(evidence, "torch_graphs", setup)["exit_code"] = 1;
  EXPECT_THAT(first_of(evidence, kGraphs), HasSubstr("NOT MET: with Weir: failed (exit 1)"));
}

TEST(GpuProgramVerdicts, WhatTheCallDidNotPlanIsLeftOutOfItsPage) {
  json evidence = made_up_evidence();
  json& figures = step_in(evidence, "programs").at("figures");
  figures["programs"] = json::array();
  figures["planned"] = {"torch_gpt"};
  EXPECT_EQ(first_of(evidence, kGpt), "NOT MET: not run; the step ok");
  EXPECT_EQ(first_of(evidence, kJax), "left out: not among the programs of this call");
}

TEST(GpuProgramVerdicts, WeirMustServeWhatItCan) {
  json evidence = made_up_evidence();
  EXPECT_EQ(verdicts_of(evidence, kGpt).at(1),
            "met: with Weir 99.50%; with Weir, in stream order 99.50%");
  json& summary = run(evidence, "torch_gpt", "weir")["summary"];
  summary = made_up_summary(989, 11);
  EXPECT_EQ(verdicts_of(evidence, kGpt).at(1),
            "NOT MET: with Weir 98.90%; with Weir, in stream order 99.50%");
  summary = made_up_summary(990, 10);
  EXPECT_EQ(verdicts_of(evidence, kGpt).at(1),
            "met: with Weir 99.00%; with Weir, in stream order 99.50%");
  summary = made_up_summary(0, 0);
  EXPECT_THAT(verdicts_of(evidence, kGpt).at(1), HasSubstr("NOT MET: with Weir no memory"));
  summary = nullptr;
  EXPECT_THAT(verdicts_of(evidence, kGpt).at(1), HasSubstr("with Weir no summary: there is none"));
  summary = {{"devices", json::array()}};
  EXPECT_THAT(verdicts_of(evidence, kGpt).at(1), HasSubstr("no summary: it names no device"));
}

TEST(GpuProgramVerdicts, ThePrefetchingLoopDiesWithoutAndLivesWith) {
  json evidence = made_up_evidence();
  EXPECT_EQ(first_of(evidence, kPrefetch), "met: out of memory; in stream order out of memory");
  EXPECT_EQ(verdicts_of(evidence, kPrefetch).at(1),
            "met: finished, losses bit-identical to those with enough memory, 5 waits of 1.25 s "
            "together");
  run(evidence, "torch_prefetch", "plain_async") = made_up_run("plain_async");
  EXPECT_EQ(first_of(evidence, kPrefetch), "NOT MET: out of memory; in stream order finished");
  run(evidence, "torch_prefetch", "weir_async")["printed"]["losses"][0] = "0x1p+9";
  EXPECT_THAT(verdicts_of(evidence, kPrefetch).at(1),
              HasSubstr("NOT MET: finished, losses differ"));
  run(evidence, "torch_prefetch", "weir_batches") =
      weir::testing::made_up_out_of_memory("weir_batches");
  EXPECT_EQ(verdicts_of(evidence, kPrefetch).at(2), "NOT MET: out of memory");
}

TEST(GpuProgramVerdicts, AllThatShareTheGpuMustFinishWithinTheirBudgets) {
  json evidence = made_up_evidence();
  EXPECT_EQ(first_of(evidence, kShared),
            "met: 8 of 8 finished within their budgets with the same losses");
  run(evidence, "torch_shared", "weir_async")["summary"]["devices"][0]["budget_bytes"] = 1;
  EXPECT_EQ(first_of(evidence, kShared),
            "NOT MET: 7 of 8 finished within their budgets with the same losses; reserved more "
            "than its budget");
  program(evidence, "torch_shared")["runs"].erase(1);
  EXPECT_THAT(first_of(evidence, kShared), HasSubstr("NOT MET: 7 of 8"));
}

TEST(GpuProgramVerdicts, AFrameworkThatIsNotThereIsLeftOut) {
  json evidence = made_up_evidence();
  program(evidence, "jax_train")["left_out"] = "JAX is not there";
  for (const std::string& found : verdicts_of(evidence, kJax)) {
    EXPECT_EQ(found, "left out: JAX is not there");
  }
  EXPECT_TRUE(holds(judge(evidence)));
}

TEST(GpuProgramVerdicts, WhatTheStepDidNotComeToIsNotMet) {
  json evidence = made_up_evidence();
  json& step = step_in(evidence, "programs");
  step["exit_code"] = 124;
  step["figures"]["programs"] = json::array();
  EXPECT_EQ(first_of(evidence, kGpt), "NOT MET: not run; the step stopped at its limit of 40 s");
  step.erase("figures");
  EXPECT_EQ(first_of(evidence, kGpt), "NOT MET: stopped at its limit of 40 s");
}

std::string verdict_of_facts(const json& evidence) {
  std::vector<Verdict> found;
  judge_facts(evidence, found);
  return std::string(to_string(found.at(0).state)) + ": " + found.at(0).figure;
}
json& facts(json& evidence) { return step_in(evidence, "facts")["figures"]["facts"]; }

TEST(GpuProgramVerdicts, FactsAreCountedAndTheUnexpectedOnesNamed) {
  json evidence = made_up_evidence();
  EXPECT_EQ(verdict_of_facts(evidence),
            "met: 3 answers, 1 unexpected: made-up fact: expected 7, found 8");
  facts(evidence)[0]["answer"] = "7";
  EXPECT_EQ(verdict_of_facts(evidence), "met: 3 answers, none unexpected");
  facts(evidence)[0]["answered"] = false;
  facts(evidence)[0]["answer"] = "not answered: made up";
  EXPECT_EQ(verdict_of_facts(evidence),
            "NOT MET: made-up fact: not answered: made up; 2 answers, none unexpected");
  facts(evidence) = json::array();
  EXPECT_EQ(verdict_of_facts(evidence), "NOT MET: no fact");
}

TEST(GpuProgramVerdicts, AFactThatWeirCountsOnMustBeAsExpected) {
  json evidence = made_up_evidence();
  json& needed = facts(evidence)[1];
  needed["answer"] = "no";
  EXPECT_EQ(verdict_of_facts(evidence),
            "NOT MET: made-up harm may be done: made-up need: expected yes, found no; 3 answers, "
            "1 unexpected: made-up fact: expected 7, found 8");
  EXPECT_FALSE(holds(judge(evidence)));
  needed["expected"] = "yes or no";
  EXPECT_TRUE(holds(judge(evidence)));
  needed["expected"] = "yes or not";
  EXPECT_FALSE(holds(judge(evidence)));
  needed["expected"] = "yes";
  needed["answered"] = false;
  EXPECT_THAT(verdict_of_facts(evidence),
              HasSubstr("NOT MET: made-up harm may be done: made-up need: expected yes, found no"));
}

TEST(GpuProgramVerdicts, AFactThatWasAskedLastBeforeACrashHasNoAnswer) {
  json evidence = made_up_evidence();
  json& step = step_in(evidence, "facts");
  facts(evidence).erase(2);
  for (const char* key : {"answer", "answered"}) facts(evidence)[1].erase(key);
  step["figures"]["cut"] = true;
  EXPECT_EQ(verdict_of_facts(evidence),
            "NOT MET: made-up harm may be done: made-up need: expected yes, found no answer, the "
            "step ended here; 1 answer, 1 unexpected: made-up fact: expected 7, found 8; its "
            "figures are cut");
  EXPECT_THAT(page(evidence, {}, "made-up.json"),
              HasSubstr("| made-up need | yes | no answer, the step ended here |"));
  facts(evidence).erase(1);  // cut, though each has an answer
  EXPECT_THAT(verdict_of_facts(evidence), HasSubstr("NOT MET: 1 answer"));
}

TEST(GpuTraceVerdicts, AllCompleteAndPagedReservesHardlyMoreThanIsRequested) {
  json evidence = made_up_evidence();
  json& pools = step_in(evidence, "traces")["figures"]["traces"][0]["pools"];
  const auto lines = [&] {
    std::vector<Verdict> found;
    judge_traces(evidence, found);
    return verdict_lines(found);
  };
  const std::string met = lines();
  EXPECT_THAT(met, ::testing::StartsWith("met       every trace completes on the device: all"));
  EXPECT_THAT(met, ::testing::HasSubstr("\nmet       paged reserves at most 1.03 of the peak "
                                        "requested there, and two pages: made_up 1.020\n"));
  pools[0]["completed"] = false;
  pools[1]["peak_reserved_bytes"] = 1.04e9;
  const std::string not_met = lines();
  EXPECT_THAT(not_met, ::testing::StartsWith("NOT MET   every trace completes on the device: out "
                                             "of memory: made_up with round:24\nNOT MET   "));
  EXPECT_THAT(not_met, ::testing::HasSubstr("made_up 1.040"));
  pools[0]["completed"] = true;
  pools[1]["completed"] = false;
  pools[1]["peak_reserved_bytes"] = 1e9;  // where it ended
  EXPECT_THAT(lines(), ::testing::HasSubstr("\nNOT MET   paged reserves"));
  pools[1]["completed"] = true;
  step_in(evidence, "traces")["exit_code"] = 1;
  EXPECT_THAT(lines(), ::testing::StartsWith(
                           "NOT MET   every trace completes on the device: all that were replayed; "
                           "the step failed"));
  step_in(evidence, "traces")["figures"]["traces"] = json::array();
  EXPECT_THAT(lines(),
              ::testing::HasSubstr("NOT MET   every trace completes on the device: nothing"));
}

}  // namespace
}  // namespace weir::gpu_check
