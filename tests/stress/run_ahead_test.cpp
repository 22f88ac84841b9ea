// Out of memory by run-ahead: who runs out, and that the scheduler continues.

#include "bench/stress/run_ahead.hpp"

#include <gtest/gtest.h>

#include <future>

namespace weir::bench {
namespace {

RunAheadOptions options_with(std::function<void()> work) {
  RunAheadOptions options;
  options.budget = mib(4);
  options.inputs = kib(256);
  options.batches = 60;
  options.work = std::move(work);
  return options;
}

TEST(StressRunAhead, UnboundedRunsOutBehindADeviceThatStandsAndGoesOnAfterIt) {
  // The device stands still until the frontend has run out, which signals by a smaller request.
  std::promise<void> out;
  const std::shared_future<void> ran_out = out.get_future().share();
  RunAheadOptions options = options_with([ran_out] { ran_out.wait(); });
  options.on_refusal = [&out] { out.set_value(); };
  const RunAheadFigures figures = run_ahead(Policy::kUnbounded, options);
  EXPECT_TRUE(figures.ran_out);
  EXPECT_GE(figures.batches, 8U);
  EXPECT_LT(figures.batches, 16U);
  EXPECT_LE(figures.peak_reserved, options.budget);
  EXPECT_EQ(figures.wrong, "");
}

TEST(StressRunAhead, TheOtherPoliciesFinishInTheSameBudget) {
  const RunAheadOptions options = options_with([] {});
  for (const Policy policy : {Policy::kBackstop, Policy::kThrottled, Policy::kBarrier}) {
    const RunAheadFigures figures = run_ahead(policy, options);
    EXPECT_FALSE(figures.ran_out) << to_string(policy);
    EXPECT_EQ(figures.batches, options.batches);
    EXPECT_LE(figures.peak_reserved, options.budget);
    EXPECT_EQ(figures.wrong, "") << to_string(policy);
  }
}

}  // namespace
}  // namespace weir::bench
