#include <gtest/gtest.h>

#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/optimizer/update.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::reference::random_numbers;
using weir::reference::rounded;

constexpr float kRate = 0.03F;
constexpr float kMomentum = 0.9F;

/// a * b, rounded once.
float product(float a, float b) { return rounded(static_cast<double>(a) * static_cast<double>(b)); }

/// a - b, rounded once.
float difference(float a, float b) {
  return rounded(static_cast<double>(a) - static_cast<double>(b));
}

class Sgd : public testing::TestWithParam<std::size_t> {
 protected:
  std::vector<float> w_ = random_numbers(GetParam(), 1);
  std::vector<float> g_ = random_numbers(GetParam(), 2);
};

TEST_P(Sgd, StepsAgainstTheGradientRoundingEachOperationOnce) {
  std::vector<float> w = w_;
  weir::sgd(w, g_, kRate);
  for (std::size_t i = 0; i < w.size(); ++i) {
    ASSERT_EQ(w[i], difference(w_[i], product(kRate, g_[i]))) << i;
  }
}

TEST_P(Sgd, MomentumStepsByTheDecayedSumOfGradients) {
  const std::vector<float> before = random_numbers(GetParam(), 3);
  std::vector<float> w = w_;
  std::vector<float> v = before;
  weir::sgd_momentum(w, g_, v, kRate, kMomentum);
  for (std::size_t i = 0; i < w.size(); ++i) {
    ASSERT_EQ(v[i], difference(g_[i], -product(kMomentum, before[i]))) << i;
    ASSERT_EQ(w[i], difference(w_[i], product(kRate, v[i]))) << i;
  }
}

TEST_P(Sgd, WithoutMomentumBothStepsAreTheSame) {
  std::vector<float> plain = w_;
  std::vector<float> with = w_;
  std::vector<float> v(GetParam(), 0.0F);
  weir::sgd(plain, g_, kRate);
  weir::sgd_momentum(with, g_, v, kRate, 0.0F);
  EXPECT_EQ(plain, with);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Sgd, testing::Values(0, 1, 3, 16, 1027));

// Three steps by hand: v = 1, 1.5, 1.75 and the rate changes before the last.
TEST(SgdMomentum, AppliesANewRateToTheWholeVelocityAsPyTorchDoes) {
  std::vector<float> w{0.0F};
  std::vector<float> v{0.0F};
  const std::vector<float> g{1.0F};
  weir::sgd_momentum(w, g, v, 1.0F, 0.5F);
  EXPECT_EQ(w[0], -1.0F);
  weir::sgd_momentum(w, g, v, 1.0F, 0.5F);
  EXPECT_EQ(w[0], -2.5F);
  weir::sgd_momentum(w, g, v, 2.0F, 0.5F);
  EXPECT_EQ(w[0], -6.0F);
}

TEST(SgdSizes, ThatDifferAreRefusedAndNothingChanges) {
  const std::vector<float> g(3, 1.0F);
  std::vector<float> w(4, 42.0F);
  std::vector<float> v(3, 42.0F);
  std::vector<float> four(4, 42.0F);
  EXPECT_THROW(weir::sgd(w, g, 1.0F), weir::UsageError);
  EXPECT_THROW(weir::sgd_momentum(w, g, four, 1.0F, 0.5F), weir::UsageError);
  EXPECT_THROW(weir::sgd_momentum(w, w, v, 1.0F, 0.5F), weir::UsageError);
  EXPECT_EQ(w, std::vector<float>(4, 42.0F));
  EXPECT_EQ(v, std::vector<float>(3, 42.0F));
  EXPECT_EQ(four, w);
}

}  // namespace
