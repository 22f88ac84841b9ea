#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/jobs.hpp"
#include "trainer/run/run_resources.hpp"

namespace weir::testing {
namespace {

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
