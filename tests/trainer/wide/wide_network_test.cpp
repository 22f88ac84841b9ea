// The network's numbers, beside a dense network in double that shares no code with it.

#include "trainer/wide/wide_network.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/wide/wide_jobs.hpp"

namespace weir::testing {
namespace {

/// Relative to the larger of the two, or to 1.
double relative(double a, double b) {
  return std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1.0});
}

TEST(WideNetwork, HasTheParametersOfTheSeed) {
  EXPECT_EQ(parameter_count({250'000, 1024, 512, 200'000}), 359'125'824U);
}

TEST(WideNetwork, GradientsAreThoseOfDifferencesThroughTheWholeNetwork) {
  for (const SparseLoss loss : {SparseLoss::kSoftmax, SparseLoss::kLogistic}) {
    SCOPED_TRACE(to_string(loss));
    WideSettings settings = tiny_wide();
    settings.loss = loss;
    settings.optimizer = Optimizer::kSgd;
    settings.train.learning_rate = 1;  // so that a step is the gradient
    settings.train.batches = 1;
    const LayerWeights before = initial_weights(settings);
    const WideResult run = finished(train_to_weights(settings));
    const SparseRows rows = batch_rows(settings, 0);
    ReferenceWide reference(settings, before);
    EXPECT_LE(relative(*run.run.mean_loss, reference.loss(rows, loss)), 1e-5);
    constexpr double kStep = 1e-6;
    std::size_t moved = 0;
    for (std::size_t p = 0; p < before.size(); ++p) {
      for (std::size_t i = 0; i < before[p].size(); ++i) {
        double& weight = reference.parameters()[p][i];
        const double here = weight;
        weight = here + kStep;
        const double above = reference.loss(rows, loss);
        weight = here - kStep;
        const double below = reference.loss(rows, loss);
        weight = here;
        const double slope = (above - below) / (2 * kStep);
        const double step = double{before[p][i]} - double{run.run.weights[p][i]};
        ASSERT_NEAR(step, slope, 1e-5) << "parameter " << p << ", element " << i;
        if (std::abs(slope) > 1e-3) ++moved;
      }
    }
    EXPECT_GT(moved, 100U) << "the test compared zeros";
  }
}

TEST(WideNetwork, IsAsADenseOneAfterFiftySteps) {
  for (const SparseLoss loss : {SparseLoss::kSoftmax, SparseLoss::kLogistic}) {
    for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdam}) {
      SCOPED_TRACE(std::string(to_string(loss)) + ", " + std::string(to_string(optimizer)));
      WideSettings settings = tiny_wide();
      settings.loss = loss;
      settings.optimizer = optimizer;
      settings.train.learning_rate = optimizer == Optimizer::kSgd ? 0.1 : 1e-3;
      ReferenceWide reference(settings, initial_weights(settings));
      double total = 0;
      for (std::uint64_t i = 0; i < settings.train.batches.value; ++i) {
        const SparseRows rows = batch_rows(settings, i);
        total += reference.loss(rows, loss);
        const std::vector<Numbers> gradients = reference.gradients(rows, loss);
        if (optimizer == Optimizer::kSgd) {
          reference.sgd(gradients, settings.train.learning_rate.value);
        } else {
          reference.adam(gradients, settings.optimizer_options());
        }
      }
      const WideResult run = finished(train_to_weights(settings));
      EXPECT_LE(largest_difference(run.run.weights, reference.parameters()), 1e-5);
      EXPECT_LE(relative(*run.run.mean_loss, total / 50), 1e-5);
    }
  }
}

TEST(WideNetwork, LazyRowsRestWhereABatchDoesNotTouchThem) {
  WideSettings settings = tiny_wide();
  settings.train.batches = 2;
  settings.lazy_rows = true;
  const LayerWeights before = initial_weights(settings);
  const WideResult lazy = train_to_weights(settings);
  settings.lazy_rows = false;
  const WideResult all = train_to_weights(settings);
  ASSERT_EQ(lazy.run.outcome, Outcome::kFinished) << lazy.run.report;
  std::vector<bool> touched(60);
  for (const std::uint64_t batch : {0U, 1U}) {
    for (const std::uint32_t column : batch_rows(settings, batch).indices) touched[column] = true;
  }
  std::size_t resting = 0;
  for (std::size_t row = 0; row < touched.size(); ++row) {
    if (touched[row]) continue;
    ++resting;
    for (std::size_t j = 0; j < 12; ++j) {
      EXPECT_EQ(lazy.run.weights[0][row * 12 + j], before[0][row * 12 + j]);
    }
  }
  EXPECT_GT(resting, 0U) << "the batches touch every column";
  EXPECT_NE(lazy.run.weights, all.run.weights) << "with moments, rows of the first batch move on";
}

}  // namespace
}  // namespace weir::testing
