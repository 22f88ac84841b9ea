// The first layer on a device of its own: two cpu devices here, and a GPU's code in
// standin_wide_test.cpp. The numbers are those of one device.

#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "trainer/temporary_directory.hpp"
#include "trainer/wide/placement_jobs.hpp"
#include "trainer/wide/wide_jobs.hpp"

namespace weir::testing {
namespace {

TEST(WidePlacement, HasTheBitsOfOneDeviceUnderEveryPolicy) {
  for (const Precision precision : {Precision::kFloat32, Precision::kFp16}) {
    for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdam}) {
      SCOPED_TRACE(std::string(to_string(precision)) + ", " + std::string(to_string(optimizer)));
      WideSettings settings = tiny_wide();
      settings.train.batches = 20;
      settings.precision = precision;
      settings.optimizer = optimizer;
      const WideResult expected = train_to_weights(settings);
      settings = placed(settings);
      for (const Policy policy : kAllPolicies) {
        SCOPED_TRACE(to_string(policy));
        settings.train.policy.policy = policy;
        const WideResult run = finished(train_to_weights(settings));
        EXPECT_EQ(run.run.weights, expected.run.weights);
        EXPECT_EQ(run.run.mean_loss, expected.run.mean_loss);
        EXPECT_EQ(run.run.test_accuracy, expected.run.test_accuracy);
        EXPECT_EQ(run.loss_scale, expected.loss_scale);
      }
    }
  }
}

TEST(WidePlacement, LazyRowsAndLogisticLossToo) {
  WideSettings settings = tiny_wide();
  settings.loss = SparseLoss::kLogistic;
  settings.lazy_rows = true;
  const WideResult expected = train_to_weights(settings);
  const WideResult run = finished(train_to_weights(placed(settings)));
  EXPECT_EQ(run.run.weights, expected.run.weights);
}

TEST(WidePlacement, OnlyActivationsLabelsAndGradientsGoOver) {
  WideSettings settings = placed(tiny_wide());
  settings.train.batches = 10;
  const WideResult run = finished(train_wide(settings));
  ASSERT_TRUE(run.placement.has_value());
  EXPECT_EQ(run.placement->to_rest.bytes, bytes_to_rest(settings));
  EXPECT_EQ(run.placement->to_first.bytes, bytes_to_first(settings));
  EXPECT_GT(run.placement->to_rest.seconds, 0);
  EXPECT_GT(run.placement->to_first.seconds, 0);
}

TEST(WidePlacement, EachDeviceHasItsPartOfTheNetworkInItsOwnBudget) {
  WideSettings settings = placed(tiny_wide());
  settings.inputs = 20'000;  // 0.96 MB of weights for each of three copies
  const WideResult run = finished(train_wide(settings));
  const Bytes first_layer{3 * 20'000 * 12 * sizeof(float)};
  EXPECT_GE(run.placement->memory.allocated, first_layer);
  EXPECT_LT(run.memory.allocated, first_layer);
  // Not enough for the first layer on either device.
  settings.first_layer_budget = BudgetRequest{.bytes = mib(1)};
  EXPECT_EQ(train_wide(settings).run.outcome, Outcome::kOutOfMemory);
  settings = placed(settings);
  settings.first_layer = LayerPlace::kDevice;
  settings.first_layer_budget = PoolOptions().budget;
  settings.train.pool.budget = BudgetRequest{.bytes = mib(2)};
  EXPECT_EQ(train_wide(settings).run.outcome, Outcome::kOutOfMemory);
}

TEST(WidePlacement, FinishesThrottledWithTwoBatchesOnEachDeviceWhereUnboundedRunsOut) {
  WideSettings settings = expect_throttled_in_two_batches(placed(large_placed_batches()));
  settings.train.policy.policy = Policy::kUnbounded;
  EXPECT_EQ(train_wide(settings).run.outcome, Outcome::kOutOfMemory);
}

TEST(WidePlacement, StopsAfterABatchWithItsFigures) {
  std::stop_source stop;
  const WideResult run =
      train_wide(placed(tiny_wide()),
                 {.stop = stop.get_token(), .on_done = [&](std::uint64_t done, std::uint64_t) {
                    if (done == 7) stop.request_stop();
                  }});
  EXPECT_EQ(run.run.outcome, Outcome::kInterrupted);
  EXPECT_EQ(run.run.batches, 7U);
  EXPECT_TRUE(run.run.mean_loss.has_value());
}

TEST(WidePlacement, RefusesWhatCannotWork) {
  const auto refused = [](const auto& change) {
    WideSettings settings = tiny_wide();
    change(settings);
    return message_of<UsageError>([&] { settings.settle(); });
  };
  const TemporaryDirectory directory;
  EXPECT_EQ(refused([&](WideSettings& s) {
              s.first_layer = {LayerPlace::kCpu, "--first-layer"};
              s.checkpoint = {directory.file("saved"), "--checkpoint"};
            }),
            "--checkpoint cannot save a network on two devices: leave out --first-layer or the "
            "checkpoint");
  EXPECT_NE(
      refused([](WideSettings& s) {
        s.first_layer = {LayerPlace::kCpu, "--first-layer"};
        s.first_layer_budget = {BudgetRequest{.bytes = gib(1'000'000)}, "--first-layer-budget"};
      }).find("--first-layer-budget"),
      std::string::npos);
}

}  // namespace
}  // namespace weir::testing
