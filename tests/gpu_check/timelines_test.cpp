#include "tools/gpu_check/report/timelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu_check/sample.hpp"
#include "tools/gpu_check/report/page.hpp"

namespace weir::gpu_check {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using weir::testing::json;
using weir::testing::made_up_evidence;
using weir::testing::step_in;

/// What is found of the condition in which `words` stand, behind its verdict: `met: ...`.
std::string found(const json& evidence, const std::string& words) {
  std::vector<Verdict> verdicts;
  judge_timelines(evidence, verdicts);
  for (const Verdict& verdict : verdicts) {
    if (verdict.condition.find(words) == std::string::npos) continue;
    return std::string(to_string(verdict.state)) + ": " + verdict.figure;
  }
  return "no such condition";
}

class GpuTimelines : public ::testing::Test {
 protected:
  [[nodiscard]] json& known() { return step_in(evidence_, kTimelineStep).at("figures"); }
  [[nodiscard]] json& stretch(std::size_t at) { return known().at("stretches").at(at); }
  [[nodiscard]] json& cost() { return step_in(evidence_, kTimelineCostStep).at("figures"); }
  [[nodiscard]] json& run(std::size_t at) {
    return step_in(evidence_, kTimelineProgramsStep).at("figures").at("runs").at(at);
  }

  static constexpr std::size_t kRecorded = 1;
  static constexpr std::size_t kInjected = 2;
  static constexpr std::size_t kInside = 3;
  static constexpr std::size_t kOutside = 4;
  json evidence_ = made_up_evidence();
};

TEST_F(GpuTimelines, WhatIsAsItShouldBeIsMetWithItsFigures) {
  EXPECT_EQ(found(evidence_, "equal those launched"), "met: 300 kernels and copies");
  EXPECT_EQ(found(evidence_, "of CUDA events"), "met: 1.000 to 1.000 of the events' times");
  EXPECT_EQ(found(evidence_, "in its batch"), "met: 0 us outside the host's times at most");
  EXPECT_EQ(found(evidence_, "costs at most 3%"),
            "met: 1.015 (0.990 to 1.250) times as long in 4 pairs");
  EXPECT_EQ(found(evidence_, "has a page"), "met: 500 kernels, 5 copies, a page of 1 MiB");
  EXPECT_EQ(found(evidence_, "libweir_timeline.so alone"), "met: 500 kernels, 5 copies");
}

TEST_F(GpuTimelines, AMissingOrLostOrUnknownRecordIsNotMet) {
  stretch(2)["recorded"] = 99;
  EXPECT_EQ(found(evidence_, "equal those launched"), "NOT MET: made-up empty kernel: 99 of 100");
  known() = weir::testing::made_up_timeline();
  known()["strays"] = 2;
  known()["lost"] = 3;
  known()["complete"] = false;
  EXPECT_EQ(found(evidence_, "equal those launched"),
            "NOT MET: 2 of nothing known; 3 events lost; the recording has no end");
  known()["stretches"] = json::array();
  EXPECT_THAT(found(evidence_, "equal those launched"), HasSubstr("nothing was launched"));
  EXPECT_EQ(found(evidence_, "of CUDA events"), "NOT MET: nothing was timed");
  EXPECT_THAT(found(evidence_, "in its batch"), StartsWith("NOT MET: nothing was launched"));
}

TEST_F(GpuTimelines, AStretchWithoutAnyTimeIsNotMetBesideOthersThatHaveTheirs) {
  stretch(0)["event_ms"] = 0.0;
  stretch(0)["sum_ms"] = 0.0;
  EXPECT_THAT(found(evidence_, "of CUDA events"), StartsWith("NOT MET: made-up kernel"));
}

TEST_F(GpuTimelines, ATimeThatIsOffByMoreThanTwoPercentIsNotMet) {
  stretch(0)["sum_ms"] = 102;
  stretch(1)["sum_ms"] = 196;
  EXPECT_THAT(found(evidence_, "of CUDA events"), StartsWith("met: 0.980 to 1.020"));
  stretch(0)["sum_ms"] = 102.1;
  EXPECT_EQ(found(evidence_, "of CUDA events"), "NOT MET: made-up kernel 1.021");
  stretch(1)["sum_ms"] = 195.8;
  EXPECT_EQ(found(evidence_, "of CUDA events"),
            "NOT MET: made-up kernel 1.021; made-up copy 0.979");
}

TEST_F(GpuTimelines, ARecordWithoutItsBatchOutOfOrderOrOnAnotherClockIsNotMet) {
  stretch(0)["joined"] = 90;
  EXPECT_EQ(found(evidence_, "in its batch"),
            "NOT MET: made-up kernel: 90 of 100 have their batch");
  stretch(0)["joined"] = 100;
  stretch(1)["in_order"] = false;
  EXPECT_EQ(found(evidence_, "in its batch"), "NOT MET: made-up copy is not in order");
  stretch(1)["in_order"] = true;
  stretch(1)["outside_us"] = 1000.0;
  EXPECT_THAT(found(evidence_, "in its batch"), StartsWith("met: 1000 us"));
  stretch(1)["outside_us"] = 1001.0;
  EXPECT_THAT(found(evidence_, "in its batch"), StartsWith("NOT MET: 1001 us"));
}

TEST_F(GpuTimelines, WithoutCuptiKnownWorkIsLeftOutAndWhatRefusesIsNotMet) {
  known()["no_cupti"] = "made-up CUPTI was not found";
  for (const char* words : {"equal those launched", "of CUDA events", "in its batch"}) {
    EXPECT_EQ(found(evidence_, words), "left out: made-up CUPTI was not found");
  }
  known()["no_cupti"] = "";
  known()["refused"] = "made-up CUPTI says 999";
  EXPECT_EQ(found(evidence_, "of CUDA events"), "NOT MET: made-up CUPTI says 999");
  step_in(evidence_, kTimelineStep)["exit_code"] = 1;
  known()["refused"] = "";
  EXPECT_THAT(found(evidence_, "of CUDA events"),
              AllOf(StartsWith("NOT MET"), HasSubstr("failed (exit 1)")));
}

TEST_F(GpuTimelines, ARecordingThatCostsMoreThanThreePercentIsNotMet) {
  for (json& pair : cost().at("pairs")) pair["recorded"] = 97.0;
  EXPECT_THAT(found(evidence_, "costs at most"), StartsWith("NOT MET: 1.031"));
  for (json& pair : cost().at("pairs")) pair["recorded"] = 97.1;
  EXPECT_THAT(found(evidence_, "costs at most"), StartsWith("met: 1.030"));
}

TEST_F(GpuTimelines, ACostOfFewPairsOrOfARecordingWithoutKernelsIsNotMet) {
  cost().at("pairs").erase(1);
  EXPECT_THAT(found(evidence_, "costs at most"), StartsWith("met"));
  cost().at("pairs")[0]["kernels"] = 0;
  EXPECT_THAT(found(evidence_, "costs at most"),
              AllOf(StartsWith("NOT MET"), HasSubstr("kernels are missing")));
  cost().at("pairs").erase(0);
  EXPECT_THAT(found(evidence_, "costs at most"), StartsWith("NOT MET: 1.005 (0.990 to 1.020)"));
  cost() = weir::testing::made_up_timeline_cost();
  for (json& pair : cost().at("pairs")) pair["plain"] = 0.0;
  EXPECT_THAT(found(evidence_, "costs at most"),
              AllOf(StartsWith("NOT MET"), HasSubstr("a run trained nothing")));
  for (json& pair : cost().at("pairs")) pair["plain"] = 200.0;
  cost()["why"] = "made-up CUPTI was not found";
  EXPECT_THAT(found(evidence_, "costs at most"), StartsWith("NOT MET"))
      << "it was found: there are kernels";
  cost()["pairs"] = json::array();
  cost()["why"] = "";
  EXPECT_EQ(found(evidence_, "costs at most"), "NOT MET: no pair of runs");
  cost()["why"] = "made-up CUPTI was not found";
  EXPECT_EQ(found(evidence_, "costs at most"), "left out: made-up CUPTI was not found");
}

TEST_F(GpuTimelines, AProgramWhoseRecordingLacksSomethingIsNotMet) {
  const char* const words = "has a page";
  run(kRecorded)["page_bytes"] = 0;
  EXPECT_EQ(found(evidence_, words), "NOT MET: no page");
  run(kRecorded)["printed"]["losses"] = {"0x1p+0"};
  EXPECT_EQ(found(evidence_, words), "NOT MET: losses differ from those without it");
  run(kRecorded)["timeline"]["lost"] = 3;
  EXPECT_EQ(found(evidence_, words), "NOT MET: 3 events lost");
  run(kRecorded)["timeline"]["complete"] = false;
  EXPECT_EQ(found(evidence_, words), "NOT MET: the recording was cut");
  run(kRecorded)["timeline"]["kernels"] = 0;
  run(kRecorded)["lines"] = {"made-up CUPTI is in use"};
  EXPECT_EQ(found(evidence_, words),
            "NOT MET: no kernel was recorded; it says: made-up CUPTI is in use");
  run(kRecorded)["timeline"] = nullptr;
  run(kRecorded)["lines"] = json::array();
  EXPECT_EQ(found(evidence_, words), "NOT MET: there is no timeline; nothing says why");
  run(kRecorded)["stopped"] = true;
  EXPECT_EQ(found(evidence_, words), "NOT MET: stopped at its limit");
  run(kInjected) = {{"setup", "injected"}, {"left_out", "there is no libweir_timeline.so"}};
  EXPECT_EQ(found(evidence_, "libweir_timeline.so alone"),
            "left out: there is no libweir_timeline.so");
}

TEST_F(GpuTimelines, TwoProfilersWorkOrALineSaysWhyNot) {
  const char* const words = "torch.profiler";
  EXPECT_EQ(found(evidence_, words),
            "met: torch.profiler has 500 of 500; the timeline has 500 kernels, 5 copies");
  run(kInside)["printed"]["profiled_kernels"] = 400;
  EXPECT_THAT(found(evidence_, words), AllOf(StartsWith("NOT MET: torch.profiler has 400 of 500"),
                                             HasSubstr("nothing says why")));
  run(kInside)["lines"] = {"CUPTI is in use by made-up"};
  EXPECT_THAT(found(evidence_, words),
              AllOf(StartsWith("met: "), HasSubstr("it says: CUPTI is in use by made-up")));
  run(kInside)["exit_code"] = 139;
  EXPECT_THAT(found(evidence_, words), StartsWith("NOT MET: failed (exit 139)"));
  run(0)["printed"]["profiled_kernels"] = 0;
  EXPECT_THAT(found(evidence_, words), StartsWith("left out: "));

  EXPECT_THAT(found(evidence_, "nsys"), StartsWith("met: nsys has its report"));
  run(kOutside)["other_report_bytes"] = 0;
  EXPECT_THAT(found(evidence_, "nsys"), StartsWith("NOT MET: nsys has no report"));
  run(kOutside) = {{"setup", "outside"}, {"left_out", "no nsys"}};
  EXPECT_EQ(found(evidence_, "nsys"), "left out: no nsys");
}

TEST_F(GpuTimelines, WhereThereIsNoPyTorchItsRunsAreLeftOut) {
  json& figures = step_in(evidence_, kTimelineProgramsStep).at("figures");
  figures = {{"left_out", "PyTorch is not there"}, {"runs", json::array()}};
  EXPECT_EQ(found(evidence_, "has a page"), "left out: PyTorch is not there");
  EXPECT_EQ(found(evidence_, "nsys"), "left out: PyTorch is not there");
  EXPECT_EQ(timeline_programs_section(figures), "Left out: PyTorch is not there.\n\n");
}

TEST_F(GpuTimelines, ThePageHasWhatWasFoundOfEach) {
  const std::string text = page(evidence_, judge(evidence_), "made_up.json");
  EXPECT_THAT(text, HasSubstr("| made-up copy | 100 | 100 | 100 | 200.000 ms | 200.000 ms |"));
  EXPECT_THAT(text, HasSubstr("| 100.0 | 80.0 | 7 | 0 |"));
  EXPECT_THAT(text, HasSubstr("| inside | finished | 500 | 5 | 0 | 500 |  |"));
  known()["no_cupti"] = "made-up CUPTI was not found";
  EXPECT_THAT(page(evidence_, judge(evidence_), "made_up.json"),
              HasSubstr("## Timelines\n\nmade-up CUPTI was not found\n\n| stretch |"));
}

}  // namespace
}  // namespace weir::gpu_check
