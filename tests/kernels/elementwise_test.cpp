#include "kernels/elementwise/elementwise.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "allocator/base/error.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::reference::random_numbers;
using weir::reference::rounded;
using weir::reference::unwritten;

constexpr float kAlpha = -1.3F;

class Elementwise : public testing::TestWithParam<std::size_t> {
 protected:
  std::vector<float> x_ = random_numbers(GetParam(), 1);
  std::vector<float> y_ = random_numbers(GetParam(), 2);
};

TEST_P(Elementwise, FillWritesEveryElement) {
  std::vector<float> out = unwritten(GetParam());
  weir::fill(out, 2.5F);
  EXPECT_EQ(out, std::vector<float>(GetParam(), 2.5F));
}

TEST_P(Elementwise, AddRoundsEachSumOnce) {
  std::vector<float> total = y_;
  weir::add(x_, total);
  for (std::size_t i = 0; i < total.size(); ++i) {
    ASSERT_EQ(total[i], rounded(static_cast<double>(y_[i]) + static_cast<double>(x_[i]))) << i;
  }
}

TEST_P(Elementwise, AxpyRoundsTheProductAndThenTheSum) {
  std::vector<float> y = y_;
  weir::axpy(kAlpha, x_, y);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float product = rounded(static_cast<double>(kAlpha) * static_cast<double>(x_[i]));
    ASSERT_EQ(y[i], rounded(static_cast<double>(y_[i]) + static_cast<double>(product))) << i;
  }
}

TEST_P(Elementwise, ScaleRoundsEachProductOnce) {
  std::vector<float> x = x_;
  weir::scale(kAlpha, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(x[i], rounded(static_cast<double>(kAlpha) * static_cast<double>(x_[i]))) << i;
  }
}

TEST_P(Elementwise, AnInputMayBeTheOutputItself) {
  std::vector<float> doubled = x_;
  weir::add(doubled, doubled);
  std::vector<float> tripled = x_;
  weir::axpy(2.0F, tripled, tripled);
  for (std::size_t i = 0; i < x_.size(); ++i) {
    ASSERT_EQ(doubled[i], 2.0F * x_[i]) << i;
    ASSERT_EQ(tripled[i], rounded(3.0 * static_cast<double>(x_[i]))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Elementwise, testing::Values(0, 1, 3, 4, 17, 1024, 1031));

TEST(ElementwiseSizes, ThatDifferAreRefusedAndNothingChanges) {
  const std::vector<float> x(3, 1.0F);
  std::vector<float> y(4, 42.0F);
  EXPECT_THROW(weir::add(x, y), weir::UsageError);
  EXPECT_THROW(weir::axpy(1.0F, x, y), weir::UsageError);
  EXPECT_EQ(y, std::vector<float>(4, 42.0F));
}

}  // namespace
