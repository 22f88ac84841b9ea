// Training gives the right result: against a reference in double that shares no code with it.

#include "trainer/run/train.hpp"

#include <gtest/gtest.h>

#include "trainer/data/reader.hpp"
#include "trainer/jobs.hpp"
#include "trainer/reference_mlp.hpp"

namespace weir::testing {
namespace {

struct Trained {
  std::vector<Numbers> initial;
  std::vector<Numbers> weights;
  double mean_loss = 0;
};

Trained train_reference(const TrainSettings& s) {
  ReferenceMlp model(s.widths, s.seed.value);
  Trained result;
  result.initial = model.parameters;
  const BatchSource source = generated_source(s.seed.value);
  std::vector<float> inputs(s.batch_size.value * s.widths.front());
  std::vector<float> targets(s.batch_size.value * s.widths.back());
  // The trainer's rates are floats: the reference takes the same numbers.
  const double rate{static_cast<float>(s.learning_rate.value)};
  const double momentum{static_cast<float>(s.momentum.value)};
  for (std::uint64_t i = 0; i < s.batches.value; ++i) {
    source(i, inputs, targets);
    const auto tape = model.forward(widened(inputs));
    result.mean_loss += ReferenceMlp::loss(tape.back(), widened(targets));
    model.step(model.gradients(tape, widened(targets)), rate, momentum);
  }
  result.weights = model.parameters;
  result.mean_loss /= static_cast<double>(s.batches.value);
  return result;
}

/// Weights are near 1 and move by less than 1 in all: some tens of float roundings each step.
constexpr double kFloatError = 2e-6;
constexpr double kClearlyMoved = 0.01;

void expect_equals_reference(const TrainSettings& settings) {
  const Trained reference = train_reference(settings);
  const TrainResult run = train(settings);
  ASSERT_EQ(run.outcome, Outcome::kFinished);
  EXPECT_EQ(run.batches, settings.batches.value);
  EXPECT_LE(largest_difference(run.weights, reference.weights), kFloatError);
  EXPECT_GE(largest_difference(run.weights, reference.initial), kClearlyMoved);
  ASSERT_TRUE(run.mean_loss.has_value());
  EXPECT_NEAR(*run.mean_loss, reference.mean_loss, 1e-6 * reference.mean_loss);
}

TEST(Trainer, WeightsAndLossEqualTheFloat64Reference) { expect_equals_reference(tiny_job()); }

TEST(Trainer, WeightsAndLossWithMomentumEqualTheFloat64Reference) {
  TrainSettings settings = tiny_job();
  settings.momentum.value = 0.9;
  expect_equals_reference(settings);
}

TEST(Trainer, WeightsOfAnotherSeedEqualTheirOwnReference) {
  TrainSettings settings = tiny_job();
  settings.seed.value = 20240607;
  expect_equals_reference(settings);
  EXPECT_NE(train(settings).weights, train(tiny_job()).weights);
}

TEST(Trainer, MomentumChangesTheWeights) {
  TrainSettings settings = tiny_job();
  settings.momentum.value = 0.9;
  EXPECT_NE(train(settings).weights, train(tiny_job()).weights);
}

TEST(Trainer, LossFallsInTheCourseOfTraining) {
  TrainSettings settings = tiny_job();
  settings.batches.value = 1;
  const double first = train(settings).mean_loss.value();
  settings.batches.value = 200;
  EXPECT_LT(train(settings).mean_loss.value(), first / 2);
}

TEST(Trainer, BatchesMadeBeforehandAreUsedInTurn) {
  TrainSettings on_the_way = tiny_job();
  TrainSettings beforehand = tiny_job();
  beforehand.inputs.value = InputKind::kRing;
  beforehand.ring.value = beforehand.batches.value;
  EXPECT_EQ(train(on_the_way).weights, train(beforehand).weights);
  beforehand.ring.value = 2;
  EXPECT_NE(train(on_the_way).weights, train(beforehand).weights);
}

TEST(Trainer, DrawnInputsAreTheNumbersOfTheHostsAndNeedNoStaging) {
  for (const Policy policy : kAllPolicies) {
    SCOPED_TRACE(to_string(policy));
    TrainSettings settings = tiny_job();
    const TrainResult host = train_with(settings, policy);
    EXPECT_GT(host.staging, Bytes{});
    settings.inputs.value = InputKind::kDrawn;
    const TrainResult drawn = train_with(settings, policy);
    ASSERT_EQ(drawn.outcome, Outcome::kFinished) << drawn.report;
    EXPECT_EQ(drawn.weights, host.weights);
    EXPECT_EQ(drawn.mean_loss, host.mean_loss);
    EXPECT_EQ(drawn.staging, Bytes{});
  }
  TrainSettings other = tiny_job();
  other.inputs.value = InputKind::kDrawn;
  other.seed.value = 2;
  EXPECT_NE(train(other).weights, train(tiny_job()).weights);
}

TEST(Trainer, DrawnInputsKeepToABudgetThatUnboundedRunAheadCannotLiveIn) {
  TrainSettings settings = device_bound_job();
  settings.inputs.value = InputKind::kDrawn;
  const TrainResult whole = train_at(settings, Policy::kThrottled, mib(64));
  for (const Policy policy : kBoundedPolicies) {
    SCOPED_TRACE(to_string(policy));
    const TrainResult run = train_with(settings, policy);
    ASSERT_EQ(run.outcome, Outcome::kFinished) << run.report;
    EXPECT_LE(run.pool.reserved.peak, mib(5));
    EXPECT_EQ(run.weights, whole.weights);
  }
}

TEST(Trainer, AWiderModelIsTrained) {
  TrainSettings settings = tiny_job();
  settings.width_factor.value = 3;
  settings.widen();
  const TrainResult run = train(settings);
  ASSERT_EQ(run.weights.size(), 6U);
  EXPECT_EQ(run.weights[0].size(), 16U * 96);
  EXPECT_EQ(run.weights[2].size(), 96U * 24);
  EXPECT_EQ(run.weights[4].size(), 24U);
}

TEST(Trainer, FiguresOfAFinishedRunAddUp) {
  const TrainResult run = train(scaled_job());
  EXPECT_EQ(run.batches, 10U);
  EXPECT_EQ(run.samples.size(), 10U);
  EXPECT_EQ(run.admission.settled, 10U);
  EXPECT_EQ(run.admission.charged, Bytes{});
  EXPECT_EQ(run.pool.allocated.current + run.pool.awaiting.current, run.pool.held.current);
  EXPECT_EQ(run.pool.held.current + run.pool.cached.current, run.pool.reserved.current);
  EXPECT_LE(run.pool.held.peak, run.pool.reserved.peak);
  EXPECT_GT(run.seconds, 0);
  EXPECT_DOUBLE_EQ(run.batches_per_second(), 10 / run.seconds);
  EXPECT_LE(run.idle_share, 1);
  EXPECT_TRUE(run.report.empty());
}

TEST(Trainer, BarrierStallsOnceForEachBatch) {
  const TrainResult run = train_with(scaled_job(), Policy::kBarrier);
  EXPECT_EQ(run.stalls.count, 10U);
  EXPECT_EQ(run.admission.most_submitted, 1U);
}

TEST(Trainer, UnboundedWithEnoughMemoryNeverStalls) {
  EXPECT_EQ(train_with(scaled_job(), Policy::kUnbounded).stalls.count, 0U);
}

}  // namespace
}  // namespace weir::testing
