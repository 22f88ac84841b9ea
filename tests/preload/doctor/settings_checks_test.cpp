// Weir's variables, and MXNet's.

#include "doctor_cases.hpp"

namespace weir::cli::doctor::testing {
namespace {

const std::vector<Use> kSettings{Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kTrainCpu};

TEST(DoctorSettings, EachVariable) {
  const std::vector<Case> cases{
      {"none", [](Facts&) {}, "variable", State::kOk, "no variable of Weir or MXNet is set", "",
       kNothing},
      {"a good one",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_BUDGET", "6GiB"}};
       },
       "variable", State::kOk, "WEIR_BUDGET=6GiB", "", kNothing},
      {"an empty one",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_BUDGET", ""}};
       },
       "variable", State::kOk, "WEIR_BUDGET is empty, which counts as not set", "", kNothing},
      {"a bad one",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_POOL", "slab"}};
       },
       "variable", State::kFails, "WEIR_POOL='slab' is not allowed", "correct WEIR_POOL",
       kSettings},
      {"a bad one of weir alone",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_ALLOCATOR", "native"}};
       },
       "variable", State::kFails, "WEIR_ALLOCATOR='native' is not allowed: framework or async",
       "correct WEIR_ALLOCATOR", kSettings},
      {"a bad one of PyTorch's",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_TORCH", "on"}};
       },
       "variable", State::kFails, "WEIR_TORCH='on' is not allowed", "correct WEIR_TORCH",
       kSettings},
      {"a bad one of timelines",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_TIMELINE", "run.txt"}};
       },
       "variable", State::kFails, "WEIR_TIMELINE='run.txt' is not allowed", "unset", kSettings},
      {"a bad one of weir-train alone",
       [](Facts& facts) {
         facts.settings.variables = {{"MXNET_KVSTORE_REDUCE_BUCKET_SIZE", "x"}};
       },
       "variable", State::kFails, "MXNET_KVSTORE_REDUCE_BUCKET_SIZE='x' is not allowed",
       "correct MXNET", kSettings},
      {"a misspelt one",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_BUGET", "6GiB"}};
       },
       "unknown-variable", State::kWarn,
       "WEIR_BUGET is set but is not a variable of Weir: the nearest is WEIR_BUDGET",
       "unset WEIR_BUGET", kNothing},
      {"MXNet's",
       [](Facts& facts) {
         facts.settings.variables = {{"MXNET_GPU_MEM_POOL_TYPE", "Round"}};
       },
       "variable", State::kOk, "MXNET_GPU_MEM_POOL_TYPE=Round", "", kNothing},
      {"MXNet's for the cpu",
       [](Facts& facts) {
         facts.settings.variables = {{"MXNET_CPU_MEM_POOL_TYPE", "slab"}};
       },
       "variable", State::kFails, "MXNET_CPU_MEM_POOL_TYPE='slab' is not allowed", "correct",
       kSettings},
      {"MXNet's that weir-train reads",
       [](Facts& facts) {
         facts.settings.variables = {{"MXNET_KVSTORE_REDUCE_BUCKET_SIZE", "4"}};
       },
       "variable", State::kOk, "MXNET_KVSTORE_REDUCE_BUCKET_SIZE=4", "", kNothing},
      {"MXNet's that Weir does not read",
       [](Facts& facts) {
         facts.settings.variables = {{"MXNET_CPU_WORKER_NTHREADS", "4"}};
       },
       "variable", State::kOk, "no variable of Weir or MXNet is set", "", kNothing},
      {"the stand-in's",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_STANDIN_MEMORY", "4G"}};
       },
       "variable", State::kOk, "WEIR_STANDIN_MEMORY=4G", "", kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorSettings, ABadSettingBreaksAlsoWhatItAloneIsFor) {
  const auto with = [](Use use) {
    std::vector<Use> broken = kSettings;
    broken.push_back(use);
    return broken;
  };
  expect_finding({"a bad share",
                  [](Facts& facts) {
                    facts.settings.variables = {{"WEIR_SHARE", "../x"}};
                  },
                  "variable", State::kFails, "WEIR_SHARE='../x' is not allowed",
                  "correct WEIR_SHARE", with(Use::kShare)});
  expect_finding({"a bad place to publish",
                  [](Facts& facts) {
                    facts.settings.variables = {{"WEIR_PUBLISH", "x"}};
                    facts.limits.publish_is_wrong = true;
                  },
                  "variable", State::kFails, "WEIR_PUBLISH='x' is not allowed",
                  "correct WEIR_PUBLISH", with(Use::kLive)});
}

TEST(DoctorSettings, WhatDoesNotFitTogether) {
  expect_finding(
      {"a page for another pool",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_POOL", "round"}, {"WEIR_POOL_PAGE_SIZE", "5000"}};
       },
       "settings", State::kFails, "the settings do not fit together: ", "environment.md",
       kSettings});
}

TEST(DoctorSettings, ABadValueIsSaidOnce) {
  Facts facts = good_machine();
  facts.settings.variables = {{"WEIR_POOL", "slab"}};
  const std::vector<Finding> found = check_settings(facts.settings, {});
  EXPECT_EQ(found.size(), 1U);
}

struct Verdict {
  std::string variable;
  void (*change)(Facts&);
  std::string check;
  State state;
};

TEST(DoctorSettings, ASettingHasOneVerdict) {
  const std::vector<Verdict> verdicts{
      {"WEIR_CUPTI",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_CUPTI", "/x/libcupti.so"}};
         facts.driver.cupti = {.problem = "CUPTI was not found: /x; WEIR_CUPTI can name its file"};
       },
       "cupti", State::kWarn},
      {"WEIR_CUPTI",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_CUPTI", "/x/libcupti.so"}};
       },
       "variable", State::kOk},
      {"WEIR_SUMMARY",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_SUMMARY", "/nowhere/x"}};
         facts.settings.outputs = {{"WEIR_SUMMARY", "WEIR_SUMMARY='/nowhere/x' is not allowed"}};
       },
       "output", State::kFails},
      {"WEIR_TIMELINE",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_TIMELINE", "x.txt"}};
         facts.settings.outputs = {{"WEIR_TIMELINE", "WEIR_TIMELINE='x.txt' is not allowed"}};
       },
       "variable", State::kFails},
      {"WEIR_LIBRARY",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_LIBRARY", "/x"}};
         facts.library = {};
         facts.library.is_named = true;
         facts.library.problem = "WEIR_LIBRARY='/x' is not allowed";
       },
       "library", State::kFails},
      {"WEIR_BUDGET",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_BUDGET", "100GiB"}};
         facts.settings.devices.push_back(facts.settings.devices.front());
         facts.settings.devices.back().number = 1;
       },
       "budget", State::kFails},
      {"WEIR_PUBLISH",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_PUBLISH", "0"}};
         facts.limits.publish_is_set = true;
         facts.limits.publishes = false;
       },
       "live", State::kWarn},
      {"WEIR_PUBLISH",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_PUBLISH", "x"}};
         facts.limits.publish_is_set = true;
         facts.limits.publish_is_wrong = true;
         facts.limits.live_folder.clear();
       },
       "variable", State::kFails},
      {"WEIR_POOL_PAGE_SIZE",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_POOL", "round"}, {"WEIR_POOL_PAGE_SIZE", "5000"}};
       },
       "settings", State::kFails},
      {"CUDA_VISIBLE_DEVICES",
       [](Facts& facts) {
         facts.settings.variables = facts.environment.variables = {{"CUDA_VISIBLE_DEVICES", "-1"}};
         facts.driver.driver.devices.clear();
         facts.settings.devices.clear();
       },
       "devices", State::kFails}};
  for (const Verdict& verdict : verdicts) {
    SCOPED_TRACE(verdict.variable);
    Facts facts = good_machine();
    verdict.change(facts);
    const std::vector<Finding> found = about(verdict.variable, facts);
    ASSERT_EQ(found.size(), 1U) << found.back().text;
    EXPECT_EQ(found.front().check, verdict.check) << found.front().text;
    EXPECT_EQ(found.front().state, verdict.state) << found.front().text;
  }
}

TEST(DoctorSettings, GpusThatCannotGiveTheBudgetAreInOneLine) {
  Facts facts = good_machine();
  facts.settings.variables = {{"WEIR_BUDGET", "100GiB"}};
  DeviceInfo device = facts.settings.devices.front();
  device.number = 1;
  facts.settings.devices.push_back(device);
  device.number = 2;
  device.total = gib(40);
  facts.settings.devices.push_back(device);
  const std::vector<Finding> found = about("WEIR_BUDGET", facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found.front().text, ::testing::HasSubstr("GPU 0, 1: WEIR_BUDGET='100 GiB'"));
  EXPECT_THAT(found.front().text, ::testing::HasSubstr("GPU 2: WEIR_BUDGET='100 GiB'"));
}

TEST(DoctorSettings, BudgetsAndFiles) {
  const std::vector<Case> cases{
      {"more than the device",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_BUDGET", "100GiB"}};
       },
       "budget",
       State::kFails,
       "GPU 0: WEIR_BUDGET='100 GiB' is not allowed",
       "such as 80%",
       {Use::kRun, Use::kPlug, Use::kTrainGpu}},
      {"more than the device, beside another mistake",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_BUDGET", "100GiB"}, {"WEIR_POOL", "slab"}};
       },
       "budget",
       State::kFails,
       "GPU 0: WEIR_BUDGET='100 GiB' is not allowed",
       "such as 80%",
       {Use::kRun, Use::kPlug, Use::kTrainGpu}},
      {"a file that cannot be written",
       [](Facts& facts) {
         facts.settings.outputs = {{"WEIR_ALLOC_LOG", "WEIR_ALLOC_LOG='/x/log' is not allowed"},
                                   {"WEIR_SUMMARY", ""}};
       },
       "output", State::kFails, "WEIR_ALLOC_LOG='/x/log' is not allowed", "unset WEIR_ALLOC_LOG",
       kSwapIn}};
  for (const Case& one : cases) expect_finding(one);
}

}  // namespace
}  // namespace weir::cli::doctor::testing
