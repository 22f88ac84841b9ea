#include "tools/gpu_check/report/merge.hpp"

#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "gpu_check/sample.hpp"
#include "tools/gpu_check/report/evidence.hpp"
#include "tools/gpu_check/report/verdicts.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::gpu_check {
namespace {

using weir::testing::json;
using weir::testing::made_up_evidence;
using weir::testing::step_in;

/// A call of the made-up run: only the steps that `has` names.
json call_of(const std::vector<std::string>& has) {
  json call = made_up_evidence();
  json steps = json::array();
  for (const std::string& name : has) steps.push_back(step_in(call, name));
  call["steps"] = steps;
  return call;
}

/// A call of programs: some of them, all of which were planned.
json call_of_programs(std::size_t from, std::size_t to) {
  json call = call_of({"programs"});
  json& figures = step_in(call, "programs").at("figures");
  json some = json::array();
  figures["planned"] = json::array();
  for (std::size_t i = from; i < to; ++i) {
    some.push_back(figures.at("programs").at(i));
    figures["planned"].push_back(some.back().at("name"));
  }
  figures["programs"] = some;
  return call;
}

std::size_t number_of(const json& evidence, State state) {
  std::size_t number = 0;
  for (const Verdict& verdict : judge(evidence)) number += verdict.state == state ? 1 : 0;
  return number;
}

const std::vector<std::string> kFirstCall{"tests",
                                          "memcheck",
                                          "racecheck",
                                          "compare_x1_drawn",
                                          "compare_x1_ring",
                                          "compare_x16_drawn",
                                          "compare_x16_ring",
                                          "bench",
                                          "facts",
                                          "traces",
                                          "timeline",
                                          "timeline_cost",
                                          "timeline_programs"};
constexpr std::size_t kPrograms = kTrainingPrograms.size() + 2;

TEST(GpuMerge, ThreeCallsMakeThePageOfAllOfThem) {
  const json all = merge_calls(
      {call_of(kFirstCall), call_of_programs(0, 4), call_of_programs(4, kPrograms)}, "2000-01-02");
  EXPECT_EQ(all.at("date"), "2000-01-02");
  EXPECT_EQ(all.at("call"), kAllCalls);
  EXPECT_EQ(number_of(all, State::kMet), judge(made_up_evidence()).size());
  EXPECT_EQ(step_of(all, "programs").command, "weir-gpu programs; weir-gpu programs");
  EXPECT_EQ(step_of(all, "programs").seconds, 4);
}

TEST(GpuMerge, ProgramsThatNoCallRanAreNotMet) {
  const json half = call_of_programs(0, 4);
  EXPECT_EQ(number_of(half, State::kNotMet), 0U);
  const json all = merge_calls({call_of(kFirstCall), half}, "2000-01-02");
  EXPECT_GT(number_of(all, State::kNotMet), 0U);
  EXPECT_EQ(number_of(all, State::kLeftOut), 0U);
}

TEST(GpuMerge, AStepThatRanAgainTakesThePlaceOfTheFirst) {
  json first = call_of(kFirstCall);
  step_in(first, "bench")["exit_code"] = 1;
  json again = call_of({"bench", "facts"});
  step_in(again, "facts")["left_out"] = "made up";
  const json all = merge_calls({first, again}, "2000-01-02");
  EXPECT_EQ(step_of(all, "bench").exit_code, 0);
  EXPECT_TRUE(step_of(all, "facts").ran());
}

TEST(GpuMerge, AProgramThatRanAgainTakesThePlaceOfTheFirstAndAStopIsKept) {
  json first = call_of_programs(0, kPrograms);
  json& programs = step_in(first, "programs");
  programs["exit_code"] = 124;
  programs["figures"]["programs"][1]["runs"] = json::array();
  const json all = merge_calls({first, call_of_programs(1, 2)}, "2000-01-02");
  EXPECT_FALSE(figures_of(all, "programs").at("programs").at(1).at("runs").empty());
  EXPECT_EQ(figures_of(all, "programs").at("programs").size(), kPrograms);
  EXPECT_TRUE(step_of(all, "programs").timed_out());
}

TEST(GpuMerge, NoPageIsOfTwoMachinesOrBuilds) {
  for (const char* key : {"driver", "commit"}) {
    json other = call_of({"bench"});
    other["machine"][key] = "another";
    EXPECT_THROW((void)merge_calls({call_of({"facts"}), other}, "2000-01-02"), Error) << key;
  }
  json other = call_of({"bench"});
  other["machine"]["gpus"][0]["name"] = "Another GPU";
  EXPECT_THROW((void)merge_calls({call_of({"facts"}), other}, "2000-01-02"), Error);
  other = call_of({"bench"});
  other["machine"]["rehearsal"] = true;
  EXPECT_THROW((void)merge_calls({call_of({"facts"}), other}, "2000-01-02"), Error);
  EXPECT_THROW((void)merge_calls({}, "2000-01-02"), Error);
}

TEST(GpuMerge, ACallIsAFolderOrTheFileThatWasMadeOfIt) {
  const weir::testing::TemporaryDirectory run;
  weir::testing::write_file(run.file("info.json"), weir::testing::made_up_machine().dump());
  weir::testing::write_file(run.file("steps.tsv"), "bench\t0\t3\t40\tweir-gpu bench\n");
  const json gathered = read_call(run.file("."), "2000-01-01");
  EXPECT_TRUE(step_of(gathered, "bench").ran());
  weir::testing::write_file(run.file("page.json"), gathered.dump());
  EXPECT_EQ(read_call(run.file("page.json"), "2000-01-02"), gathered);
  EXPECT_THROW((void)read_call(run.file("info.json"), "2000-01-02"), Error);
  EXPECT_THROW((void)read_call(run.file("none"), "2000-01-02"), Error);
}

}  // namespace
}  // namespace weir::gpu_check
