// Training gives the right result: against a reference in double that shares no code with it.

#include "trainer/run/train.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "support/gate.hpp"
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
    const TrainResult drawn = finished(train_with(settings, policy));
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
    const TrainResult run = finished(train_with(settings, policy));
    EXPECT_LE(run.pool.reserved.peak, mib(5));
    EXPECT_EQ(run.weights, whole.weights);
  }
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

// A run that is asked to stop ends with the figures so far.

/// A stopped run has the figures of a run of that length.
void expect_figures_of_that_length(const TrainResult& stopped, TrainSettings settings) {
  settings.batches.value = stopped.batches;
  EXPECT_EQ(stopped.mean_loss, train(settings).mean_loss);
  EXPECT_EQ(stopped.samples.size(), stopped.batches);
  EXPECT_TRUE(stopped.weights.empty()) << "only a finished run is compared by its weights";
  EXPECT_EQ(stopped.admission.charged, Bytes{});
}

TEST(TrainerStop, EndsAfterTheBatchUnderWayWithTheFiguresSoFar) {
  const TrainResult run = train_stopped_at(tiny_job(), 5);
  EXPECT_EQ(run.outcome, Outcome::kInterrupted);
  EXPECT_EQ(run.batches, 5U);
  EXPECT_EQ(describe_outcome(run), "interrupted after 5 batches");
  expect_figures_of_that_length(run, tiny_job());
}

TEST(TrainerStop, WhileHeldBackKeepsTheFiguresToo) {
  TrainSettings settings = scaled_job();
  settings.batches.value = 1'000'000;
  settings.policy.run_ahead.value = {.batches = 1, .time = std::chrono::nanoseconds(-1)};
  std::stop_source stop;
  Gate third_batch;
  third_batch.open();
  // From another thread the request mostly meets the frontend in begin_batch, where it spends most
  // of the time. The same must hold wherever it meets it.
  std::thread interrupter([&] {
    third_batch.await_arrival();
    stop.request_stop();
  });
  const TrainResult run =
      train(settings, {.stop = stop.get_token(), .on_done = [&](std::uint64_t done, std::uint64_t) {
                         if (done == 3) third_batch.pass();
                       }});
  interrupter.join();
  EXPECT_EQ(run.outcome, Outcome::kInterrupted);
  EXPECT_GE(run.batches, 3U);
  expect_figures_of_that_length(run, settings);
}

TEST(TrainerStop, BeforeTheFirstBatchHasFiguresOfNone) {
  std::stop_source stop;
  stop.request_stop();
  const TrainResult run = train(tiny_job(), {.stop = stop.get_token()});
  EXPECT_EQ(run.outcome, Outcome::kInterrupted);
  EXPECT_EQ(run.batches, 0U);
  EXPECT_EQ(run.mean_loss, std::nullopt);
}

TEST(TrainerStop, AfterTheLastBatchChangesNothing) {
  const TrainSettings settings = tiny_job();
  const TrainResult run = train_stopped_at(settings, settings.batches.value);
  EXPECT_EQ(run.outcome, Outcome::kFinished);
  EXPECT_EQ(run.weights, train(settings).weights);
}

}  // namespace
}  // namespace weir::testing
