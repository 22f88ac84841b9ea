// Results do not depend on the policy, the pool, the budget or the run-ahead.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>

#include "trainer/compare/compare.hpp"
#include "trainer/jobs.hpp"

namespace weir::testing {
namespace {

using LayerWeights = std::vector<std::vector<float>>;

/// The smallest budget of one pool, found once: each policy needs the same, except for holes.
Bytes smallest_of(PoolKind pool) {
  TrainSettings settings = scaled_job();
  settings.pool.kind.value = pool;
  settings.pool.budget.value = {.bytes = mib(4)};
  const Bytes smallest =
      smallest_budget(settings, Policy::kBarrier, settings.batches.value, kib(16)).value();
  const bool exact = std::ranges::count(kExactPools, pool) != 0;
  return exact ? smallest : smallest + Bytes{smallest.count / 2};
}

class BitIdentical : public ::testing::TestWithParam<PoolKind> {
 protected:
  static void SetUpTestSuite() { expected() = train(scaled_job()).weights; }
  static LayerWeights& expected() {
    static LayerWeights weights;
    return weights;
  }
  static void expect_same(const TrainResult& run) {
    ASSERT_EQ(run.outcome, Outcome::kFinished) << run.report;
    EXPECT_EQ(run.weights, expected());
  }
};

TEST_P(BitIdentical, WeightsOverPoliciesAndBudgets) {
  TrainSettings settings = scaled_job();
  settings.pool.kind.value = GetParam();
  const Bytes smallest = smallest_of(GetParam());
  for (const Bytes budget : {smallest, smallest + kib(64), smallest * 2, mib(64)}) {
    for (const Policy policy : kBoundedPolicies) {
      SCOPED_TRACE(std::string(to_string(policy)) + " at " + format_bytes(budget));
      expect_same(train_at(settings, policy, budget));
    }
  }
  expect_same(train_at(settings, Policy::kUnbounded, mib(64)));
}

TEST_P(BitIdentical, WeightsOverRunAheadTargets) {
  TrainSettings settings = scaled_job();
  settings.pool.kind.value = GetParam();
  const Bytes tight = smallest_of(GetParam()) + kib(256);
  for (const char* run_ahead : {"auto", "off", "1", "3", "1us", "10s"}) {
    SCOPED_TRACE(run_ahead);
    settings.policy.run_ahead.value = parse_run_ahead("run-ahead", run_ahead);
    for (const Bytes budget : {tight, mib(64)}) {
      expect_same(train_at(settings, Policy::kThrottled, budget));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pools, BitIdentical, ::testing::ValuesIn(kAllPools),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

// The bisected budget is a threshold: above it runs finish, below it they fail with the report.

constexpr Bytes kStep = kib(16);
constexpr std::uint64_t kSearched = 6;

TrainSettings bounded_job(PoolKind pool) {
  TrainSettings settings = scaled_job();
  settings.batches.value = kSearched;
  settings.pool.kind.value = pool;
  settings.pool.budget.value = {.bytes = mib(3)};
  return settings;
}

class SmallestBudget : public ::testing::TestWithParam<std::tuple<Policy, PoolKind>> {};

TEST_P(SmallestBudget, IsAThreshold) {
  const auto& [policy, pool] = GetParam();
  const TrainSettings settings = bounded_job(pool);
  const std::optional<Bytes> smallest = smallest_budget(settings, policy, kSearched, kStep);
  ASSERT_TRUE(smallest.has_value());
  EXPECT_EQ(smallest->count % kStep.count, 0U);
  EXPECT_LT(*smallest, mib(3)) << "the settings' own budget bounds nothing";

  EXPECT_EQ(train_at(settings, policy, *smallest).outcome, Outcome::kFinished);
  EXPECT_EQ(train_at(settings, policy, *smallest + kStep).outcome, Outcome::kFinished);
  const TrainResult below = train_at(settings, policy, *smallest - kStep);
  EXPECT_EQ(below.outcome, Outcome::kOutOfMemory);
  EXPECT_NE(below.report.find("budget"), std::string::npos) << below.report;
}

INSTANTIATE_TEST_SUITE_P(PoliciesAndPools, SmallestBudget,
                         ::testing::Combine(::testing::ValuesIn(kBoundedPolicies),
                                            ::testing::ValuesIn(kExactPools)),
                         [](const auto& tested) {
                           return std::string(to_string(std::get<0>(tested.param))) + "_" +
                                  std::string(to_string(std::get<1>(tested.param)));
                         });

TEST(SmallestBudgetSearch, FindsNothingWhenTheSettingsBudgetIsNotEnough) {
  TrainSettings settings = bounded_job(PoolKind::kRound);
  settings.pool.budget.value = {.bytes = kib(256)};
  EXPECT_EQ(smallest_budget(settings, Policy::kThrottled, kSearched, kStep), std::nullopt);
  settings.pool.budget.value = {.bytes = kib(8)};
  EXPECT_EQ(smallest_budget(settings, Policy::kThrottled, kSearched, kStep), std::nullopt)
      << "less than one step";
}

TEST(SmallestBudgetSearch, StoppedWithinAnyOfItsRunsItFindsNothing) {
  // An interrupted run has not failed: counting it as failed would give a wrong threshold.
  const TrainSettings settings = bounded_job(PoolKind::kRound);
  std::uint64_t all_batches = UINT64_MAX;
  for (std::uint64_t stop_at = 1; stop_at <= all_batches; ++stop_at) {
    std::stop_source stop;
    std::uint64_t batches = 0;
    const auto found =
        smallest_budget(settings, Policy::kBarrier, kSearched, kStep,
                        {.stop = stop.get_token(), .on_done = [&](std::uint64_t, std::uint64_t) {
                           if (++batches == stop_at) stop.request_stop();
                         }});
    if (stop.stop_requested()) {
      EXPECT_EQ(found, std::nullopt) << "stopped in batch " << stop_at << " of all runs";
    } else {
      EXPECT_TRUE(found.has_value());
      all_batches = batches;
    }
  }
  EXPECT_GT(all_batches, 2 * kSearched) << "more than one run finished";
}

}  // namespace
}  // namespace weir::testing
