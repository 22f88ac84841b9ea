// A run that is asked to stop ends with the figures so far.

#include <gtest/gtest.h>

#include <thread>

#include "support/gate.hpp"
#include "trainer/jobs.hpp"
#include "trainer/run/train.hpp"

namespace weir::testing {
namespace {

/// A stopped run has the figures of a run of that length.
void expect_figures_of_that_length(const TrainResult& stopped, TrainSettings settings) {
  settings.batches.value = stopped.batches;
  EXPECT_EQ(stopped.mean_loss, train(settings).mean_loss);
  EXPECT_EQ(stopped.samples.size(), stopped.batches);
  EXPECT_TRUE(stopped.weights.empty()) << "only a finished run is compared by its weights";
  EXPECT_EQ(stopped.admission.charged, Bytes{});
}

TEST(TrainerStop, EndsAfterTheBatchUnderWayWithTheFiguresSoFar) {
  std::stop_source stop;
  const auto at_five = [&](std::uint64_t done, std::uint64_t /*all*/) {
    if (done == 5) stop.request_stop();
  };
  const TrainResult run = train(tiny_job(), {.stop = stop.get_token(), .on_done = at_five});
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
  std::stop_source stop;
  const TrainSettings settings = tiny_job();
  const TrainResult run = train(
      settings, {.stop = stop.get_token(), .on_done = [&](std::uint64_t done, std::uint64_t all) {
                   if (done == all) stop.request_stop();
                 }});
  EXPECT_EQ(run.outcome, Outcome::kFinished);
  EXPECT_EQ(run.weights, train(settings).weights);
}

}  // namespace
}  // namespace weir::testing
