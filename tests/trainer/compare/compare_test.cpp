// The comparison of the policies, on a small job with all features.

#include "trainer/compare/compare.hpp"

#include <gtest/gtest.h>

#include <span>

#include "support/environment.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/jobs.hpp"
#include "trainer/model/maths.hpp"
#include "trainer/report/report.hpp"

namespace weir::testing {
namespace {

CompareSettings comparison_settings() {
  CompareSettings settings{.train = device_bound_job()};
  settings.train.batches.value = 30;
  settings.rounds.value = 2;
  settings.short_batches = 3;
  settings.step = kib(128);
  return settings;
}

TEST(Compare, RunsEachPolicyAgainstAReferenceThatHasEnoughMemory) {
  const CompareSettings settings = comparison_settings();
  const Comparison c = compare(settings);
  EXPECT_FALSE(c.interrupted);
  EXPECT_EQ(c.reference.last.outcome, Outcome::kFinished);
  EXPECT_EQ(c.reference.runs, 6U) << "one for each pair";
  EXPECT_EQ(c.finished_runs, 12U);
  EXPECT_TRUE(c.identical);
  EXPECT_FALSE(c.plain);
  EXPECT_EQ(c.why_no_plain, "it needs a GPU");

  ASSERT_EQ(c.policies.size(), 4U);
  EXPECT_EQ(c.policies[0].name, "unbounded");
  EXPECT_EQ(c.policies[0].last.outcome, Outcome::kOutOfMemory);
  EXPECT_FALSE(c.policies[0].last.report.empty());
  EXPECT_EQ(c.policies[0].smallest_budget, c.reference.last.pool.reserved.peak);
  EXPECT_GT(c.reference.last.pool.reserved.peak, mib(5));

  const std::vector<std::string> names{"backstop", "throttled", "barrier"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    SCOPED_TRACE(names[i]);
    const PolicyFigures& f = c.policies[i + 1];
    EXPECT_EQ(f.name, names[i]);
    EXPECT_EQ(f.last.outcome, Outcome::kFinished);
    EXPECT_EQ(f.runs, 2U);
    EXPECT_LE(f.last.pool.reserved.peak, mib(5));
    EXPECT_GT(f.batches_per_second, 0);
    EXPECT_GT(f.ratio_low, 0);
    EXPECT_LE(f.ratio_low, f.ratio);
    EXPECT_LE(f.ratio, f.ratio_high);
    EXPECT_EQ(f.smallest_budget,
              smallest_budget(settings.train, parse_name<Policy>("policy", names[i]),
                              settings.short_batches, settings.step));
  }
}

TEST(Compare, LeavesTheSearchOutWhereThatIsAskedFor) {
  CompareSettings settings = comparison_settings();
  settings.train.batches.value = 3;
  settings.rounds.value = 1;
  settings.search = false;
  const Comparison c = compare(settings);
  EXPECT_FALSE(c.interrupted);
  for (const PolicyFigures& figures : std::span(c.policies).subspan(1)) {
    EXPECT_EQ(figures.runs, 1U);
    EXPECT_EQ(figures.smallest_budget, std::nullopt);
  }
  EXPECT_EQ(format_comparison(settings, c).find("searched"), std::string::npos);
}

TEST(Compare, InterruptedItKeepsThePairsThatWereWhole) {
  const CompareSettings settings = comparison_settings();
  std::stop_source stop;
  const Comparison c =
      compare(settings, {.stop = stop.get_token(),
                         .on_done = [&](const std::string& label, std::uint64_t, std::uint64_t) {
                           if (label.starts_with("throttled, round 2")) stop.request_stop();
                         }});
  EXPECT_TRUE(c.interrupted);
  EXPECT_EQ(c.reference.runs, 4U);
  EXPECT_EQ(c.policies[1].runs, 2U);
  EXPECT_EQ(c.policies[2].runs, 1U);
  EXPECT_EQ(c.policies[3].runs, 1U);
  EXPECT_TRUE(c.identical);
  EXPECT_EQ(c.policies[2].smallest_budget, std::nullopt);
  const std::string text = format_comparison(settings, c);
  expect_parts(text, {"interrupted: these are the figures so far", "throttled not searched"});
}

TEST(Compare, InterruptedBeforeAnyReferenceItClaimsNoBudget) {
  std::stop_source stop;
  stop.request_stop();
  const Comparison c = compare(comparison_settings(), {.stop = stop.get_token()});
  EXPECT_EQ(c.reference.runs, 0U);
  EXPECT_EQ(c.policies[0].smallest_budget, std::nullopt);
  const std::string text = format_comparison(comparison_settings(), c);
  expect_parts(text, {"smallest budgets: not searched\n",
                      "\npolicy     peak MiB  result\n",  // no speed and no range
                      "\nthrottled         -  not run\n", "fewer than two runs finished"});
}

TEST(Compare, AReferenceThatRanOutItselfClaimsNoBudget) {
  CompareSettings settings = comparison_settings();
  settings.rounds.value = 1;
  settings.train.device_memory.value = mib(6);
  const Comparison c = compare(settings);
  EXPECT_EQ(c.reference.last.outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(c.policies[0].smallest_budget, std::nullopt);
}

TEST(Compare, OutOfMemoryIsItsOutcomeOnlyWhenEveryPolicyRanOut) {
  CompareSettings settings = comparison_settings();
  settings.rounds.value = 1;
  settings.train.pool.budget.value = {.bytes = mib(1)};
  Comparison c = compare(settings);
  EXPECT_EQ(c.reference.last.outcome, Outcome::kFinished);
  EXPECT_EQ(outcome_of(c), Outcome::kOutOfMemory);
  expect_parts(
      format_comparison(settings, c),
      {"throttled not found", ", 1 pair\n  with the reference (unbounded, enough memory)\n"});
  c.policies[3].last.outcome = Outcome::kFinished;
  EXPECT_EQ(outcome_of(c), Outcome::kFinished);
  c.interrupted = true;
  EXPECT_EQ(outcome_of(c), Outcome::kInterrupted);
}

TEST(Compare, ABudgetFromTheEnvironmentStandsAndTheDefaultIsTheExperiments) {
  const TrainSettings plain = TrainSettings::from_environment(environment_of({}));
  EXPECT_EQ(CompareSettings::d2l(plain).train.pool.budget.value.bytes, mib(64));
  EXPECT_EQ(CompareSettings::small(plain).train.pool.budget.value.bytes, mib(4));
  const TrainSettings told =
      TrainSettings::from_environment(environment_of({{"WEIR_BUDGET", "96MiB"}}));
  for (const CompareSettings& s : {CompareSettings::d2l(told), CompareSettings::small(told)}) {
    EXPECT_EQ(s.train.pool.budget.value.bytes, mib(96));
    EXPECT_EQ(s.train.pool.budget.source, "WEIR_BUDGET");
  }
}

TEST(Compare, ADefaultBudgetGrowsByWhatAWiderModelTakes) {
  const TrainSettings plain = TrainSettings::from_environment(environment_of({}));
  CompareSettings settings = CompareSettings::d2l(plain);
  settings.fit_to_model();
  EXPECT_EQ(settings.train.pool.budget.value.bytes, mib(64));

  settings.train.width_factor.value = 16;
  settings.fit_to_model();
  EXPECT_EQ(settings.train.widths, (std::vector<std::size_t>{512, 32768, 8192, 1}));
  // Weights of 64 MiB, 1 GiB and 32 KiB for 4 MiB, 4 MiB and 4 KiB (a page); activations of 128 and
  // 32 MiB for 8 and 2: each of them twice.
  const Bytes weights = (mib(64 + 1024 - 8) + kib(32 - 4)) * 2;
  EXPECT_EQ(settings.train.pool.budget.value.bytes, mib(64) + weights + mib(128 + 32 - 10) * 2);

  settings = CompareSettings::d2l(plain);
  settings.train.width_factor.value = 16;
  settings.train.momentum.value = 0.9;
  settings.fit_to_model();
  EXPECT_EQ(settings.train.pool.budget.value.bytes,
            mib(64) + Bytes{weights.count / 2} * 3 + mib(128 + 32 - 10) * 2)
      << "a velocity for each weight";
}

TEST(Compare, ADefaultBudgetOnAGpuHasRoomForTheInputsOfTwoMoreBatches) {
  CompareSettings settings = CompareSettings::d2l(TrainSettings{});
  settings.train.device.value = "cuda";
  settings.fit_to_model();
  const Bytes model = (mib(4 + 4) + kib(4)) * 2;        // with gradients
  const Bytes activations = (mib(8 + 2) + kib(4)) * 2;  // likewise
  const Bytes inputs = mib(2);
  EXPECT_EQ(settings.train.pool.budget.value.bytes,
            model + activations + inputs * 3 + cuda_workspace());
}

TEST(Compare, ABudgetThatWasGivenStandsWhateverTheModel) {
  CompareSettings settings = CompareSettings::small(TrainSettings{});
  settings.train.pool.budget = {{.bytes = mib(5)}, "--budget"};
  settings.train.width_factor.value = 2;
  settings.fit_to_model();
  EXPECT_EQ(settings.train.widths, (std::vector<std::size_t>{512, 512, 256, 1}));
  EXPECT_EQ(settings.train.pool.budget.value.bytes, mib(5));
}

TEST(Compare, EveryBoundedPolicyFinishesAWiderModelAtItsDefaultBudget) {
  CompareSettings settings = CompareSettings::small(TrainSettings{});
  settings.train.width_factor.value = 2;
  settings.train.batches.value = 30;
  settings.fit_to_model();
  for (const Policy policy : kBoundedPolicies) {
    const TrainResult run = train_with(settings.train, policy);
    EXPECT_EQ(run.outcome, Outcome::kFinished) << to_string(policy) << ": " << run.report;
  }
}

}  // namespace
}  // namespace weir::testing
