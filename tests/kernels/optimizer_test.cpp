#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/precision/precision.hpp"
#include "tests/kernels/optimizer_reference.hpp"

namespace {

using weir::HalfKind;
using weir::Optimizer;
using weir::OptimizerOptions;
using weir::StepState;
using weir::update;
using weir::UsageError;
using weir::Weights;
using weir::reference::bits_of;
using weir::reference::kNan;
using weir::reference::kOptimizers;
using weir::reference::name_of;
using weir::reference::random_numbers;
using weir::reference::state_after;
using weir::reference::TrainedWeights;
using weir::reference::words_of;

constexpr int kSteps = 100;
/// Not a multiple of four, and more than the kernel does at a time.
constexpr std::size_t kCount = 2051;

/// The formulas in double: one weight from the start.
struct DoubleWeight {
  double w = 0;
  double first = 0;
  double second = 0;
  double error = 0;  ///< how far a float may be away

  void step(const OptimizerOptions& o, double g, int t) {
    const double before = w;
    move(o, g, t);
    // Of the weight, each step rounds once; a millionth is for the roundings of how far it goes.
    error += 1.01 * weir::reference::kUnitRoundoff * std::abs(w) + 1e-6 * std::abs(w - before);
  }

 private:
  void move(const OptimizerOptions& o, double g, int t) {
    if (o.optimizer == Optimizer::kSgd) {
      w -= o.lr * g;
    } else if (o.optimizer == Optimizer::kMomentum) {
      first = o.momentum * first + g;
      w -= o.lr * first;
    } else {
      first = o.beta1 * first + (1 - o.beta1) * g;
      const double rate = o.lr / (1 - std::pow(o.beta1, t));
      if (o.optimizer == Optimizer::kAdam) {
        second = o.beta2 * second + (1 - o.beta2) * g * g;
        w -= rate * first / (std::sqrt(second / (1 - std::pow(o.beta2, t))) + o.eps);
      } else {
        second = std::max(o.beta2 * second, std::abs(g) + o.eps);
        w -= rate * first / second;
      }
    }
  }
};

class Update : public testing::TestWithParam<Optimizer> {
 protected:
  OptimizerOptions options_{.optimizer = GetParam(), .lr = 0.01};
};

TEST_P(Update, IsThatOfFloat64UpToItsRoundingsOver100Steps) {
  TrainedWeights trained(GetParam(), kCount, 1);
  std::ranges::fill(trained.first, 0.0F);
  std::ranges::fill(trained.second, 0.0F);
  std::vector<DoubleWeight> exact(kCount);
  for (std::size_t i = 0; i < kCount; ++i) exact[i].w = static_cast<double>(trained.w[i]);
  StepState state;
  for (int t = 1; t <= kSteps; ++t) {
    std::vector<float> g = random_numbers(kCount, static_cast<std::uint64_t>(10 + t));
    for (std::size_t i = 0; i < kCount; ++i) {
      // As for rows that are not touched, and of many sizes.
      g[i] = (i + static_cast<std::size_t>(t)) % 5 == 0 ? 0.0F : std::ldexp(g[i], -int(i % 16));
      exact[i].step(options_, static_cast<double>(g[i]), t);
    }
    state = begun(state, options_.beta1, options_.beta2);
    update(options_, trained.view(), g, words_of(state));
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(trained.w[i], exact[i].w, exact[i].error) << i;
  }
}

TEST_P(Update, OfAScaledGradientHasTheBitsOfTheGradientsOwn) {
  const std::vector<float> g = random_numbers(kCount, 5);
  std::vector<float> scaled = g;
  for (float& value : scaled) value *= 65536.0F;
  TrainedWeights plain(GetParam(), kCount, 1);
  TrainedWeights from_scaled = plain;
  update(options_, plain.view(), g, words_of(state_after(3)));
  update(options_, from_scaled.view(), scaled, words_of(state_after(3, 65536)));
  EXPECT_EQ(plain, from_scaled);
  EXPECT_NE(plain, TrainedWeights(GetParam(), kCount, 1));
}

TEST_P(Update, AfterAnOverflowChangesNothingButTheScale) {
  const TrainedWeights before(GetParam(), kCount, 1, true);
  TrainedWeights trained = before;
  std::vector<float> g = random_numbers(kCount, 2);
  g[7] = kNan;
  StepState state = state_after(3, 64);
  state.overflow = 1;
  std::vector<float> words = words_of(state);
  weir::begin_step(words, options_.beta1, options_.beta2);
  update(options_, trained.view(), g, words);
  weir::end_step(words, {});
  EXPECT_EQ(trained, before);
  StepState expected = state_after(3, 32);
  expected.skipped_steps = 1;
  EXPECT_EQ(weir::load_step_state(words), expected);
}

TEST_P(Update, WritesACopyInAShorterFormatInTheSamePass) {
  const std::vector<float> g = random_numbers(kCount, 2);
  for (const HalfKind kind : {HalfKind::kBf16, HalfKind::kFp16}) {
    TrainedWeights plain(GetParam(), kCount, 1);
    TrainedWeights with_copy(GetParam(), kCount, 1, true);
    update(options_, plain.view(), g, words_of(state_after(1)));
    update(options_, with_copy.view(kind), g, words_of(state_after(1)));
    EXPECT_EQ(bits_of(with_copy.w), bits_of(plain.w));
    std::vector<std::uint16_t> expected(kCount);
    weir::to_half(plain.w, expected, kind);
    EXPECT_EQ(with_copy.copy, expected);
  }
}

TEST_P(Update, KeepsANan) {
  TrainedWeights trained(GetParam(), 3, 1);
  update(options_, trained.view(), std::vector<float>{1, kNan, 1}, words_of(state_after(1)));
  EXPECT_FALSE(std::isnan(trained.w[0]));
  EXPECT_TRUE(std::isnan(trained.w[1]));
  EXPECT_FALSE(std::isnan(trained.w[2]));
}

TEST_P(Update, OfZeroGradientsFromTheStartLeavesTheWeights) {
  TrainedWeights trained(GetParam(), 5, 1);
  const std::vector<float> before = trained.w;
  std::ranges::fill(trained.first, 0.0F);
  std::ranges::fill(trained.second, 0.0F);
  for (int t = 1; t <= 3; ++t) {
    update(options_, trained.view(), std::vector<float>(5), words_of(state_after(t)));
  }
  EXPECT_EQ(trained.w, before);
}

TEST_P(Update, AtLargeTHasNoCorrectionsLeft) {
  StepState state = state_after(1);
  state.steps = 4'000'000'000U;
  state.beta1_power = state.beta2_power = 0;
  TrainedWeights trained(GetParam(), kCount, 1);
  TrainedWeights before = trained;
  const std::vector<float> g = random_numbers(kCount, 2);
  update(options_, trained.view(), g, words_of(state));
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto at = [i](const std::vector<float>& moment) {
      return moment.empty() ? 0.0 : static_cast<double>(moment[i]);
    };
    DoubleWeight exact{.w = at(before.w), .first = at(before.first), .second = at(before.second)};
    exact.step(options_, static_cast<double>(g[i]), 4'000'000);
    ASSERT_NEAR(trained.w[i], exact.w, exact.error) << i;
  }
}

TEST_P(Update, RefusesWhatIsNotAllowedAndChangesNothing) {
  const TrainedWeights before(GetParam(), 4, 1, true);
  TrainedWeights trained = before;
  const std::vector<float> g(4, 1.0F);
  const std::vector<float> state = words_of(state_after(1));
  std::vector<float> other(5);
  const auto refused = [&](const OptimizerOptions& options, const Weights& weights,
                           std::span<const float> gradient, std::span<const float> words) {
    EXPECT_THROW(update(options, weights, gradient, words), UsageError);
  };
  const auto with = [&](auto member, double value) {
    OptimizerOptions changed = options_;
    changed.*member = value;
    return changed;
  };
  for (const double bad : {-1.0, HUGE_VAL, std::nan("")}) {
    for (const auto member :
         {&OptimizerOptions::lr, &OptimizerOptions::momentum, &OptimizerOptions::beta1,
          &OptimizerOptions::beta2, &OptimizerOptions::eps}) {
      refused(with(member, bad), trained.view(), g, state);
    }
  }
  refused(with(&OptimizerOptions::beta1, 1), trained.view(), g, state);
  refused(with(&OptimizerOptions::eps, 1e-60), trained.view(), g, state);
  refused(options_, trained.view(), std::span(g).first(3), state);
  refused(options_, trained.view(), g, std::span(state).first(8));
  Weights bad_first = trained.view();
  bad_first.first = other;
  refused(options_, bad_first, g, state);
  Weights bad_second = trained.view();
  bad_second.second = other;
  refused(options_, bad_second, g, state);
  Weights bad_copy = trained.view();
  bad_copy.copy.words = bad_copy.copy.words.first(3);
  refused(options_, bad_copy, g, state);
  EXPECT_EQ(trained, before);
}

INSTANTIATE_TEST_SUITE_P(All, Update, testing::ValuesIn(kOptimizers),
                         [](const auto& tested) { return name_of(tested.param); });

TEST(UpdateOfSgd, HasTheBitsOfSgdAndOfMomentum) {
  const std::vector<float> g = random_numbers(kCount, 2);
  TrainedWeights trained(Optimizer::kSgd, kCount, 1);
  TrainedWeights expected = trained;
  update({.optimizer = Optimizer::kSgd, .lr = 0.03}, trained.view(), g, words_of(state_after(1)));
  weir::sgd(expected.w, g, 0.03F);
  EXPECT_EQ(trained, expected);
  TrainedWeights with_momentum(Optimizer::kMomentum, kCount, 1);
  TrainedWeights expected_momentum = with_momentum;
  update({.optimizer = Optimizer::kMomentum, .lr = 0.03, .momentum = 0.8}, with_momentum.view(), g,
         words_of(state_after(1)));
  weir::sgd_momentum(expected_momentum.w, g, expected_momentum.first, 0.03F, 0.8F);
  EXPECT_EQ(with_momentum, expected_momentum);
}

}  // namespace
