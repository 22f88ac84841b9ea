// The memory of a run: the promise of the policies.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/tensor.hpp"
#include "trainer/data/reader.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/jobs.hpp"
#include "trainer/run/run_resources.hpp"

namespace weir::testing {
namespace {

TEST(TrainerMemory, UnboundedRunsOutOfMemoryWithTheReportWhereTheOthersFinish) {
  const TrainSettings settings = device_bound_job();
  const TrainResult unbounded = train_with(settings, Policy::kUnbounded);
  EXPECT_EQ(unbounded.outcome, Outcome::kOutOfMemory);
  EXPECT_LT(unbounded.batches, settings.batches.value);
  EXPECT_LE(unbounded.pool.reserved.peak, mib(5));
  EXPECT_TRUE(unbounded.weights.empty());
  expect_parts(unbounded.report, {"budget", "allocated", "awaiting", "cached", "inputs"});
  for (const Policy policy : kBoundedPolicies) {
    SCOPED_TRACE(to_string(policy));
    const TrainResult run = finished(train_with(settings, policy));
    EXPECT_LE(run.pool.reserved.peak, mib(5));
  }
}

TEST(TrainerMemory, HeldAndStagingStayFlatUnderThrottledAtTheD2lSize) {
  constexpr std::uint64_t kBatches = 50;
  const TrainSettings settings = d2l_job(kBatches);
  const Footprint footprint = measure_footprint(settings);
  const TrainResult run = finished(train_with(settings, Policy::kThrottled));
  ASSERT_EQ(run.samples.size(), kBatches);

  // Flat means a level independent of the number of batches: two batches in flight, and host
  // buffers for those, for the current one and for the prefetched ones. Unbounded run-ahead passes
  // both levels before batch 30.
  const Bytes buffer = Shape{1024, 512 + 1}.bytes();
  const Bytes most_staging = buffer * (2 + 1 + Reader::kPrefetch);
  const Bytes most_held = footprint.live + footprint.batch * 2;
  ASSERT_LT(most_held, mib(96)) << "the budget alone would keep it flat";
  for (std::size_t i = 2; i < run.samples.size(); ++i) {
    EXPECT_LE(run.samples[i].held, most_held) << "batch " << i + 1;
    EXPECT_LE(run.samples[i].staging, most_staging) << "batch " << i + 1;
  }
  EXPECT_LE(run.pool.reserved.peak, mib(96));
}

TEST(TrainerMemory, ParametersGradientsAndTwoFootprintsAreEnoughForThrottled) {
  const TrainSettings settings = d2l_job(8);
  const Footprint footprint = measure_footprint(settings);
  const Bytes budget = footprint.live + footprint.batch * 2;
  const TrainResult run = finished(train_at(settings, Policy::kThrottled, budget));
  EXPECT_LE(run.pool.reserved.peak, budget);
  EXPECT_GE(run.admission.most_submitted, 2U) << "enough to overlap two batches";
}

TEST(TrainerMemory, TwoFootprintsAreEnoughForThrottledWithEveryPool) {
  for (const PoolKind pool : kAllPools) {
    SCOPED_TRACE(to_string(pool));
    TrainSettings settings = scaled_job();
    settings.pool.kind.value = pool;
    const Footprint footprint = measure_footprint(settings);
    EXPECT_GE(footprint.live, kib(256)) << "parameters and gradients";
    Bytes budget = footprint.live + footprint.batch * 2;
    // The minimum: one page of the device.
    if (pool == PoolKind::kPaged) budget = std::max(budget, mib(2));
    const TrainResult run = finished(train_at(settings, Policy::kThrottled, budget));
    EXPECT_LE(run.pool.reserved.peak, budget);
  }
}

TEST(TrainerMemory, ABatchThatCannotFitAtAllFailsWithTheReportUnderEveryPolicy) {
  for (const Policy policy : kAllPolicies) {
    for (const Bytes budget : {kib(4), kib(128), kib(400)}) {
      SCOPED_TRACE(std::string(to_string(policy)) + " at " + format_bytes(budget));
      const TrainResult run = train_at(scaled_job(), policy, budget);
      EXPECT_EQ(run.outcome, Outcome::kOutOfMemory);
      EXPECT_NE(run.report.find("budget"), std::string::npos) << run.report;
      EXPECT_EQ(describe_outcome(run), "out of memory in batch 1");
    }
  }
}

TEST(TrainerMemory, InputsThatCannotFitCostNoHostMemory) {
  TrainSettings settings = scaled_job();
  settings.batch_size.value = 1'000'000'000;
  EXPECT_EQ(train(settings).outcome, Outcome::kOutOfMemory);
}

TEST(TrainerMemory, BudgetIsCheckedAgainstTheDevice) {
  TrainSettings settings = scaled_job();
  settings.device_memory.value = mib(8);
  EXPECT_THROW((void)train_at(settings, Policy::kThrottled, mib(9)), UsageError);
  EXPECT_EQ(train_at(settings, Policy::kThrottled, mib(8)).outcome, Outcome::kFinished);
}

using ::testing::HasSubstr;
using ::testing::StartsWith;

const RunSoFar kUnbounded{.policy = Policy::kUnbounded, .batches = 41};
const RunSoFar kThrottled{.policy = Policy::kThrottled, .batches = 41};

/// Of a budget of 96 MiB, where the device is behind.
MemoryShortage behind() {
  return {.asked = mib(2),
          .block = mib(2),
          .budget = mib(96),
          .allocated = mib(16),
          .awaiting = mib(59),
          .cached = mib(20)};
}

TEST(TrainerRemedy, UnboundedRunAheadNeedsAnotherPolicy) {
  EXPECT_EQ(remedy_for(behind(), kUnbounded),
            "--policy throttled: it waits for the 59 MiB that is freed and still in use by the "
            "device");
  MemoryShortage cached = behind();
  cached.awaiting = {};
  cached.cached = mib(79);
  EXPECT_EQ(remedy_for(cached, kUnbounded), "--policy throttled: it hands cached memory over");
}

TEST(TrainerRemedy, MemoryInUseNeedsALargerBudgetWhateverThePolicyIs) {
  MemoryShortage shortage = behind();
  shortage.allocated = mib(95);
  shortage.awaiting = shortage.cached = {};
  for (const Policy policy : kAllPolicies) {
    EXPECT_EQ(
        remedy_for(shortage, {policy, 41}),
        "a larger --budget, or a smaller --batch-size: 95 MiB in use and this 2 MiB exceed it");
  }
  shortage.allocated = mib(94);  // now both fit, but something else takes the room
  shortage.cached = mib(2);
  EXPECT_THAT(remedy_for(shortage, kUnbounded), StartsWith("--policy throttled"));
}

TEST(TrainerRemedy, ARequestLargerThanTheBudgetNeedsALargerOne) {
  MemoryShortage shortage = behind();
  shortage.block = mib(97);
  EXPECT_THAT(remedy_for(shortage, kUnbounded), HasSubstr("this request alone exceeds"));
  shortage.block = {};  // no block can be that large
  EXPECT_THAT(remedy_for(shortage, kThrottled), HasSubstr("this request alone exceeds"));
}

TEST(TrainerRemedy, ABudgetIsNamedByItsFlagOrAsAPartOfASharedOne) {
  MemoryShortage shortage = behind();
  shortage.block = mib(97);
  EXPECT_THAT(remedy_for(shortage, {.budgets = "--budget or --first-layer-budget"}),
              StartsWith("a larger --budget or --first-layer-budget, or a smaller --batch-size: "));
  EXPECT_EQ(remedy_for(shortage, {.shared = true}),
            "a larger WEIR_SHARE_FLOOR, or fewer programs that share: the budget is this one's "
            "part");
}

TEST(TrainerRemedy, ADeviceWithoutMemoryNeedsASmallerBudget) {
  MemoryShortage shortage = behind();
  shortage.budget = mib(512);
  EXPECT_THAT(remedy_for(shortage, kThrottled), StartsWith("a smaller --budget: "));
  EXPECT_THAT(remedy_for(shortage, kUnbounded), StartsWith("a smaller --budget: "));
}

TEST(TrainerRemedy, PiecesThatAreTooSmallNeedAnotherPool) {
  MemoryShortage shortage = behind();
  shortage.awaiting = {};
  shortage.cached = mib(79);
  shortage.block = mib(32);
  EXPECT_THAT(remedy_for(shortage, kThrottled),
              StartsWith("another --pool, see `weir replay --recommend`: "));
}

TEST(TrainerRemedy, TheFirstBatchHasNoRunAhead) {
  EXPECT_EQ(remedy_for(behind(), {.policy = Policy::kUnbounded, .batches = 0}),
            "a larger --budget, or a smaller --batch-size: one batch does not fit");
}

TEST(TrainerRemedy, AnErrorWithoutFiguresHasNone) { EXPECT_EQ(remedy_for({}, kThrottled), ""); }

}  // namespace
}  // namespace weir::testing
