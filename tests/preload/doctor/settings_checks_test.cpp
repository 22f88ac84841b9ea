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

TEST(DoctorSettings, WhatDoesNotFitTogether) {
  expect_finding(
      {"a page for another pool",
       [](Facts& facts) {
         facts.settings.variables = {{"WEIR_POOL", "round"}, {"WEIR_POOL_PAGE_SIZE", "5000"}};
       },
       "settings", State::kFails, "the settings do not fit together: ", "docs/environment.md",
       kSettings});
}

TEST(DoctorSettings, ABadValueIsSaidOnce) {
  Facts facts = good_machine();
  facts.settings.variables = {{"WEIR_POOL", "slab"}};
  const std::vector<Finding> found = check_settings(facts.settings);
  EXPECT_EQ(found.size(), 1U);
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
