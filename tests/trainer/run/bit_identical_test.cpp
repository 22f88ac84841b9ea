// Results do not depend on the policy, the pool, the budget or the run-ahead.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace weir::testing
