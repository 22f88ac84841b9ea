// The rule of the loss scale, and what PyTorch's optimizers make of the same gradients:
// vectors/optimizer.txt, by vectors/make_optimizer_vectors.py.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/optimizer/update.hpp"
#include "tests/kernels/optimizer_reference.hpp"

namespace {

using weir::begun;
using weir::ended;
using weir::initial_step_state;
using weir::kNoLossScaling;
using weir::LossScaling;
using weir::Optimizer;
using weir::OptimizerOptions;
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

/// The script's numbers.
class TorchNumbers {
 public:
  explicit TorchNumbers(std::uint32_t seed) : x_(seed) {}

  std::vector<float> weights(std::size_t count) {
    std::vector<float> drawn(count);
    for (float& value : drawn) value = next();
    return drawn;
  }
  std::vector<float> gradients(std::size_t count) {
    std::vector<float> drawn = weights(count);
    for (std::size_t i = 0; i < count; ++i) {
      drawn[i] = next() < -0.6F ? 0.0F : std::ldexp(drawn[i], -static_cast<int>(i % 16));
    }
    return drawn;
  }

 private:
  float next() {
    x_ = 1664525U * x_ + 1013904223U;
    return static_cast<float>(x_ >> 8U) / 0x1p23F - 1;
  }

  std::uint32_t x_;
};

/// A tensor and its scale: the largest number that it held until now.
struct ScaledTensor {
  std::vector<float> values;
  double scale = 0;

  void look() {
    for (const float value : values) {
      scale = std::max(scale, std::abs(static_cast<double>(value)));
    }
  }
  /// The largest difference to the rest of a line, over the scale.
  [[nodiscard]] double difference(std::istream& expected) const {
    double most = 0;
    std::string word;
    for (const float value : values) {
      if (!(expected >> word)) return HUGE_VAL;
      most = std::max(most, std::abs(static_cast<double>(value) - std::stod(word)));
    }
    return expected >> word ? HUGE_VAL : most / scale;
  }
};

/// A run of one case, step by step.
struct TorchCase {
  TorchCase(const std::string& name, std::size_t count, std::uint32_t seed)
      : numbers(seed), w{numbers.weights(count)} {
    options.optimizer = *std::ranges::find_if(weir::reference::kOptimizers, [&](Optimizer one) {
      return weir::reference::name_of(one) == name;
    });
    first.values.resize(weir::moments_of(options.optimizer) > 0 ? count : 0);
    second.values.resize(weir::moments_of(options.optimizer) > 1 ? count : 0);
  }
  void run_to(std::uint32_t step) {
    while (state.steps < step) {
      state = begun(state, options.beta1, options.beta2);
      weir::update(options, {w.values, first.values, second.values, {}},
                   numbers.gradients(w.values.size()), weir::reference::words_of(state));
      for (ScaledTensor* tensor : {&w, &first, &second}) tensor->look();
    }
  }

  OptimizerOptions options;
  TorchNumbers numbers;
  ScaledTensor w;
  ScaledTensor first{};
  ScaledTensor second{};
  StepState state;
};

TEST(OptimizerVectors, OfPyTorchAreMetToAMillionthOver100Steps) {
  std::ifstream file(WEIR_OPTIMIZER_VECTORS);
  std::string text;
  ASSERT_TRUE(std::getline(file, text));
  ASSERT_EQ(text.rfind("# PyTorch ", 0), 0U);
  std::vector<TorchCase> cases;
  std::size_t moments = 0;
  double worst = 0;
  while (std::getline(file, text)) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "case") {
      std::string name;
      std::size_t count = 0;
      std::uint32_t seed = 0;
      line >> name >> count >> seed;
      TorchCase& added = cases.emplace_back(name, count, seed);
      line >> added.options.lr >> added.options.beta1 >> added.options.beta2 >> added.options.eps;
      ASSERT_TRUE(line) << text;
      added.options.momentum = added.options.beta1;
      moments = 0;
      continue;
    }
    ASSERT_FALSE(cases.empty());
    TorchCase& now = cases.back();
    double found = HUGE_VAL;
    if (word == "w") {
      std::uint32_t step = 0;
      line >> step;
      now.run_to(step);
      found = now.w.difference(line);
    } else {
      ASSERT_EQ(word, "moment");
      found = (++moments == 1 ? now.first : now.second).difference(line);
    }
    EXPECT_LE(found, 1e-6) << "case " << cases.size() << ", " << word << " after step "
                           << now.state.steps;
    worst = std::max(worst, found);
  }
  EXPECT_EQ(cases.size(), 16U);
  EXPECT_EQ(cases.back().state.steps, 100U);
  std::cout << "largest difference over a tensor's scale: " << worst << '\n';
}

}  // namespace
