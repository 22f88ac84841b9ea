// The training loop without Weir on the stand-in driver: it computes the same bits as training,
// holds only the memory it took, and appears beside the policies in a comparison.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/gate.hpp"
#include "trainer/compare/compare.hpp"
#include "trainer/jobs.hpp"
#include "trainer/plain/plain.hpp"
#include "trainer/report/report.hpp"
#include "trainer/standin_trainer.hpp"

namespace weir::testing {
namespace {

constexpr std::uint64_t kBatches = 20;

TrainSettings plain_job(InputKind inputs) {
  TrainSettings settings = tiny_job();
  settings.device.value = "cuda";
  settings.batches.value = kBatches;
  settings.inputs.value = inputs;
  settings.ring.value = 3;
  return settings;
}

class StandinPlain : public StandinTrainer {};

TEST_F(StandinPlain, ComputesTheBitsOfTraining) {
  for (const double momentum : {0.0, 0.9}) {
    for (const InputKind inputs : {InputKind::kRing, InputKind::kDrawn}) {
      SCOPED_TRACE(std::string(to_string(inputs)) + ", momentum " + std::to_string(momentum));
      TrainSettings settings = plain_job(inputs);
      settings.momentum.value = momentum;
      const TrainResult expected = train(settings);
      const TrainResult plain = finished(train_plain(settings));
      EXPECT_EQ(plain.batches, kBatches);
      EXPECT_EQ(plain.weights, expected.weights);
      EXPECT_EQ(plain.mean_loss, expected.mean_loss);
      EXPECT_GT(plain.seconds, 0);
      EXPECT_GT(plain.host_seconds, 0);
    }
  }
}

TEST_F(StandinPlain, AllMemoryIsTakenBeforeTheFirstBatch) {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const auto count = [&](std::uint64_t done, std::uint64_t) {
    last = weir_standin_calls("cuMemAlloc") + weir_standin_calls("cuMemHostAlloc") +
           weir_standin_calls("cuMemFree");
    if (done == 1) first = last;
  };
  const TrainResult plain =
      train_plain(plain_job(InputKind::kRing), {.stop = {}, .on_done = count});
  ASSERT_EQ(plain.outcome, Outcome::kFinished) << plain.report;
  EXPECT_GT(first, 0U);
  EXPECT_EQ(last, first);
  EXPECT_GE(Bytes{weir_standin_peak(0)}, plain.pool.reserved.peak);
  EXPECT_GT(plain.pool.reserved.peak, Bytes{});
  EXPECT_GT(plain.staging, Bytes{});
}

TEST_F(StandinPlain, TheHostRunsAheadByTheRingAndNoFurther) {
  std::atomic<std::uint64_t> ahead = 0;
  std::jthread releaser;
  const auto count = [&](std::uint64_t done, std::uint64_t) {
    ahead = done;
    if (done == 1) {
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      weir_standin_hold(weir_standin_all_streams());
    }
    // Three batches are held in the three places: the next one waits.
    if (done == 4) {
      releaser = std::jthread([&] {
        give_others_a_chance();
        EXPECT_EQ(ahead, 4U);
        weir_standin_release(weir_standin_all_streams());
      });
    }
  };
  const TrainResult plain =
      train_plain(plain_job(InputKind::kDrawn), {.stop = {}, .on_done = count});
  EXPECT_EQ(plain.outcome, Outcome::kFinished) << plain.report;
}

TEST_F(StandinPlain, RunsOutAndIsInterruptedAsTrainingIs) {
  const TrainSettings settings = plain_job(InputKind::kRing);
  weir_standin_fail("cuMemAlloc", 5, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinOnce);
  EXPECT_EQ(train_plain(settings).outcome, Outcome::kOutOfMemory);
  std::stop_source stop;
  const auto stop_early = [&](std::uint64_t done, std::uint64_t) {
    if (done == 2) stop.request_stop();
  };
  const TrainResult plain =
      train_plain(settings, {.stop = stop.get_token(), .on_done = stop_early});
  EXPECT_EQ(plain.outcome, Outcome::kInterrupted);
  EXPECT_EQ(plain.batches, 2U);
  EXPECT_TRUE(plain.weights.empty());
}

TEST_F(StandinPlain, StandsBesideThrottledInAComparison) {
  CompareSettings settings{.train = plain_job(InputKind::kRing)};
  settings.rounds.value = 2;
  settings.search = false;
  const Comparison c = compare(settings);
  ASSERT_TRUE(c.plain);
  EXPECT_EQ(c.plain->runs, 2U);
  EXPECT_EQ(c.plain->last.outcome, Outcome::kFinished) << c.plain->last.report;
  EXPECT_GT(c.plain->ratio, 0);
  EXPECT_TRUE(c.identical);
  EXPECT_EQ(c.finished_runs, 1U + 3 * 2 * 2 + 2) << "unbounded, the pairs, and two without Weir";
  for (const PolicyFigures& f : c.policies) {
    EXPECT_EQ(f.to_plain.has_value(), f.name == "throttled") << f.name;
    EXPECT_GT(f.host_seconds, 0) << f.name;
  }
  const auto j = nlohmann::json::parse(comparison_json(settings, c));
  EXPECT_EQ(j["plain"]["last_run"]["outcome"], "finished");
  EXPECT_EQ(j["policies"][2]["to_plain"]["ratio"], c.policies[2].to_plain->median);
  EXPECT_NE(format_comparison(settings, c).find("throttled to plain: "), std::string::npos);
}

TEST_F(StandinPlain, ThereIsNoneOfBatchesMadeOnTheWay) {
  CompareSettings settings{.train = plain_job(InputKind::kHost)};
  settings.train.batches.value = 2;
  settings.rounds.value = 1;
  settings.search = false;
  EXPECT_THROW((void)train_plain(settings.train), UsageError);
  const Comparison c = compare(settings);
  EXPECT_FALSE(c.plain);
  const auto j = nlohmann::json::parse(comparison_json(settings, c));
  EXPECT_EQ(j["plain"]["left_out"], "its inputs are drawn or made beforehand, not on the way");
}

}  // namespace
}  // namespace weir::testing
