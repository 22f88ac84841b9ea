// The wide network with a GPU's code: the stand-in driver and cuBLAS, and the real kernels compiled
// for the host.

#include <gtest/gtest.h>

#include <optional>

#include "trainer/standin_trainer.hpp"
#include "trainer/wide/placement_jobs.hpp"
#include "trainer/wide/wide_jobs.hpp"

namespace weir::testing {
namespace {

WideSettings gpu_wide() {
  WideSettings settings = tiny_wide();
  settings.train.device.value = "cuda";
  settings.train.batches = 10;
  return settings;
}

class StandinWide : public StandinTrainer {};

TEST_F(StandinWide, AgreesWithTheCpuDevice) {
  for (const SparseLoss loss : {SparseLoss::kSoftmax, SparseLoss::kLogistic}) {
    for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdam}) {
      for (const Precision precision : {Precision::kFloat32, Precision::kFp16}) {
        SCOPED_TRACE(std::string(to_string(loss)) + ", " + std::string(to_string(optimizer)) +
                     ", " + std::string(to_string(precision)));
        WideSettings settings = gpu_wide();
        settings.loss = loss;
        settings.optimizer = optimizer;
        settings.precision = precision;
        const WideResult gpu = train_to_weights(settings);
        settings.train.device.value = "cpu";
        const WideResult cpu = train_to_weights(settings);
        ASSERT_EQ(gpu.run.outcome, Outcome::kFinished) << gpu.run.report;
        ASSERT_EQ(cpu.run.outcome, Outcome::kFinished) << cpu.run.report;
        EXPECT_EQ(gpu.skipped_steps, cpu.skipped_steps);
        // Only the products may be rounded differently. In 16 bits an activation then falls on the
        // other side of a rounding boundary now and then.
        const double most = precision == Precision::kFloat32 ? 1e-5 : 1e-3;
        EXPECT_LE(relative_difference(gpu.run.weights, cpu.run.weights), most);
        EXPECT_NEAR(*gpu.run.mean_loss, *cpu.run.mean_loss, 1e-3 * *cpu.run.mean_loss);
      }
    }
  }
}

TEST_F(StandinWide, AFirstLayerOnTheCpuAgreesWithOneOnTheGpu) {
  for (const Precision precision : {Precision::kFloat32, Precision::kFp16}) {
    SCOPED_TRACE(to_string(precision));
    WideSettings settings = gpu_wide();
    settings.precision = precision;
    const WideResult together = finished(train_to_weights(settings));
    settings = placed(settings);
    std::optional<LayerWeights> expected;
    for (const Policy policy : kAllPolicies) {
      SCOPED_TRACE(to_string(policy));
      settings.train.policy.policy = policy;
      const WideResult run = finished(train_to_weights(settings));
      if (!expected) expected = run.run.weights;
      EXPECT_EQ(run.run.weights, *expected);
      EXPECT_EQ(run.skipped_steps, together.skipped_steps);
      EXPECT_EQ(run.placement->to_rest.bytes, bytes_to_rest(settings));
      EXPECT_EQ(run.placement->to_first.bytes, bytes_to_first(settings));
    }
    EXPECT_LE(relative_difference(*expected, together.run.weights),
              precision == Precision::kFloat32 ? 1e-5 : 1e-3);
  }
}

TEST_F(StandinWide, AFirstLayerOnTheCpuIsThrottledOnBothDevices) {
  WideSettings settings = placed(gpu_wide());
  settings.inputs = 500;
  settings.hidden = std::vector<std::size_t>{256, 8};
  settings.nnz = 100;
  settings.train.batch_size = 32;
  settings.train.batches = 8;
  settings.test_batches = 1;
  (void)expect_throttled_in_two_batches(settings);
}

TEST_F(StandinWide, GivesTheSameWeightsUnderEveryPolicy) {
  std::optional<LayerWeights> expected;
  for (const Policy policy : kAllPolicies) {
    SCOPED_TRACE(to_string(policy));
    WideSettings settings = gpu_wide();
    settings.train.policy.policy.value = policy;
    const WideResult run = finished(train_to_weights(settings));
    if (!expected) expected = run.run.weights;
    EXPECT_EQ(run.run.weights, *expected);
  }
}

}  // namespace
}  // namespace weir::testing
