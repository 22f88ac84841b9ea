// The bisected budget is a threshold: above it runs finish, below it they fail with the report.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>

#include "trainer/compare/compare.hpp"
#include "trainer/jobs.hpp"

namespace weir::testing {
namespace {

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
