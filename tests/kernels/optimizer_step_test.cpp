#include <gtest/gtest.h>

#include <cmath>

#include "kernels/optimizer/step.hpp"
#include "tests/kernels/optimizer_reference.hpp"

namespace {

using weir::begun;
using weir::ended;
using weir::initial_step_state;
using weir::kNoLossScaling;
using weir::LossScaling;
using weir::StepState;

StepState with_scale(float scale) {
  StepState state;
  state.loss_scale = scale;
  return state;
}
StepState after_overflow(StepState state) {
  state.overflow = 1;
  return ended(state, {});
}
StepState after_clean(StepState state, int steps, const LossScaling& scaling = {}) {
  for (int i = 0; i < steps; ++i) state = ended(state, scaling);
  return state;
}

TEST(LossScale, BeginsAtTwoToThe16) { EXPECT_EQ(initial_step_state({}).loss_scale, 65536.0F); }

TEST(LossScale, IsDoubledAfter2000CleanStepsAndNotBefore) {
  const StepState before = after_clean(initial_step_state({}), 1999);
  EXPECT_EQ(before.loss_scale, 65536.0F);
  EXPECT_EQ(before.clean_steps, 1999U);
  const StepState doubled = ended(before, {});
  EXPECT_EQ(doubled.loss_scale, 131072.0F);
  EXPECT_EQ(doubled.clean_steps, 0U);
  EXPECT_EQ(after_clean(doubled, 2000).loss_scale, 262144.0F);
}

TEST(LossScale, IsHalvedByAnOverflowWhichAlsoCountsAndClearsTheFlag) {
  const StepState state = after_overflow(after_clean(initial_step_state({}), 1999));
  EXPECT_EQ(state.loss_scale, 32768.0F);
  EXPECT_EQ(state.skipped_steps, 1U);
  EXPECT_EQ(state.overflow, 0U);
  EXPECT_EQ(after_clean(state, 1999).loss_scale, 32768.0F) << "clean steps are counted from zero";
  EXPECT_EQ(after_clean(state, 2000).loss_scale, 65536.0F);
}

TEST(LossScale, IsAtMostTwoToThe24AndAtLeastOne) {
  EXPECT_EQ(after_clean(with_scale(0x1p23F), 2000).loss_scale, 0x1p24F);
  EXPECT_EQ(after_clean(with_scale(0x1p24F), 4000).loss_scale, 0x1p24F);
  EXPECT_EQ(after_overflow(with_scale(2)).loss_scale, 1.0F);
  EXPECT_EQ(after_overflow(with_scale(1)).loss_scale, 1.0F);
}

TEST(LossScale, OfARunWithoutItIsAlwaysOne) {
  StepState state = initial_step_state(kNoLossScaling);
  EXPECT_EQ(state.loss_scale, 1.0F);
  EXPECT_EQ(after_clean(state, 5000, kNoLossScaling).loss_scale, 1.0F);
  state.overflow = 1;
  const StepState skipped = ended(state, kNoLossScaling);
  EXPECT_EQ(skipped.loss_scale, 1.0F);
  EXPECT_EQ(skipped.skipped_steps, 1U);
}

TEST(BeginStep, CountsAndKeepsThePowersOfTheBetasForManySteps) {
  StepState state;
  for (std::uint32_t t = 1; t <= 200'000; ++t) {
    state = begun(state, 0.999, 0.99999);
    ASSERT_EQ(state.steps, t);
  }
  // Each step rounds once: at most t 2^-53 relative.
  EXPECT_NEAR(state.beta1_power, std::pow(0.999, 200'000), 1e-10 * std::pow(0.999, 200'000));
  EXPECT_NEAR(state.beta2_power, std::pow(0.99999, 200'000), 1e-10 * std::pow(0.99999, 200'000));
}

TEST(BeginStep, ChangesNothingAfterAnOverflow) {
  StepState state = weir::reference::state_after(3, 64);
  state.overflow = 1;
  EXPECT_EQ(begun(state, 0.9, 0.999), state);
}

}  // namespace
