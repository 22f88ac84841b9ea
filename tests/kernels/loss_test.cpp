#include "kernels/loss.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "allocator/base/error.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::l2_loss;
using weir::l2_loss_gradient;
using weir::reference::kUnitRoundoff;
using weir::reference::random_numbers;
using weir::reference::rounded;
using weir::reference::unwritten;

constexpr std::array<std::size_t, 6> kLossSizes{1, 2, 33, 1025, 65536, 100003};

TEST(L2Loss, OfSmallNumbersIsWhatTheFormulaGives) {
  const std::vector<float> p{1.0F, 2.0F, 5.0F, 0.0F};
  const std::vector<float> t{0.0F, 2.0F, 2.0F, -2.0F};
  std::array<float, 1> loss{};
  std::vector<float> dp = unwritten(4);
  l2_loss(p, t, loss);
  l2_loss_gradient(p, t, dp);
  EXPECT_EQ(loss[0], 1.75F);  // (1 + 0 + 9 + 4) / (2 * 4)
  EXPECT_EQ(dp, (std::vector<float>{0.25F, 0.0F, 0.75F, 0.5F}));
}

// Per term: two roundings of the difference, one of the square, 37 for each of two passes of the
// sum, one of the division.
TEST(L2Loss, IsHalfTheMeanSquareOfTheDifferences) {
  for (const std::size_t m : kLossSizes) {
    const std::vector<float> p = random_numbers(m, 1);
    const std::vector<float> t = random_numbers(m, 2);
    double expected = 0;
    for (std::size_t i = 0; i < m; ++i) {
      expected += std::pow(static_cast<double>(p[i]) - static_cast<double>(t[i]), 2);
    }
    expected /= 2 * static_cast<double>(m);
    std::array<float, 1> loss{weir::reference::kNan};
    l2_loss(p, t, loss);
    EXPECT_NEAR(loss[0], expected, 78 * kUnitRoundoff * 1.01 * expected) << m;
  }
}

TEST(L2LossGradient, IsTheRoundedDifferenceOverTheCount) {
  for (const std::size_t m : kLossSizes) {
    const std::vector<float> p = random_numbers(m, 3);
    const std::vector<float> t = random_numbers(m, 4);
    std::vector<float> dp = unwritten(m);
    l2_loss_gradient(p, t, dp);
    for (std::size_t i = 0; i < m; ++i) {
      const float difference = rounded(static_cast<double>(p[i]) - static_cast<double>(t[i]));
      ASSERT_EQ(dp[i], rounded(static_cast<double>(difference) / static_cast<double>(m))) << i;
    }
  }
}

TEST(L2LossGradient, MayOverwriteThePrediction) {
  const std::vector<float> t = random_numbers(1025, 5);
  std::vector<float> p = random_numbers(1025, 6);
  std::vector<float> dp = unwritten(1025);
  l2_loss_gradient(p, t, dp);
  l2_loss_gradient(p, t, p);
  EXPECT_EQ(p, dp);
}

TEST(L2Loss, RefusesSizesThatDoNotFitAndLeavesTheOutputAlone) {
  const std::vector<float> three(3, 1.0F);
  const std::vector<float> four(4, 1.0F);
  std::vector<float> out(3, 42.0F);
  EXPECT_THROW(l2_loss(three, four, std::span(out).first(1)), weir::UsageError);
  EXPECT_THROW(l2_loss(three, three, std::span(out).first(2)), weir::UsageError);
  EXPECT_THROW(l2_loss({}, {}, std::span(out).first(1)), weir::UsageError);
  EXPECT_THROW(l2_loss_gradient(three, four, out), weir::UsageError);
  EXPECT_THROW(l2_loss_gradient(four, four, out), weir::UsageError);
  EXPECT_THROW(l2_loss_gradient({}, {}, {}), weir::UsageError);
  EXPECT_EQ(out, std::vector<float>(3, 42.0F));
}

}  // namespace
