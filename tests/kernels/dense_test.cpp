#include "kernels/dense.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "allocator/base/error.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::Activation;
using weir::DenseShape;
using weir::reference::Bounded;
using weir::reference::kNan;
using weir::reference::kUnitRoundoff;
using weir::reference::random_numbers;
using weir::reference::unwritten;

constexpr std::array<DenseShape, 6> kDenseShapes{
    {{1, 1, 1}, {3, 5, 7}, {33, 64, 65}, {64, 1, 129}, {67, 255, 1}, {129, 31, 64}}};

struct Layer {
  explicit Layer(DenseShape shape)
      : x(random_numbers(shape.m * shape.k, 1)),
        w(random_numbers(shape.k * shape.n, 2)),
        b(random_numbers(shape.n, 3)),
        dy(random_numbers(shape.m * shape.n, 4)) {}

  std::vector<float> x;
  std::vector<float> w;
  std::vector<float> b;
  std::vector<float> dy;
};

class DenseForward : public testing::TestWithParam<Activation> {};

TEST_P(DenseForward, IsTheActivationOfTheProductPlusTheBias) {
  for (const DenseShape shape : kDenseShapes) {
    const Layer layer(shape);
    std::vector<float> y = unwritten(shape.m * shape.n);
    weir::dense_forward(shape, layer.x, layer.w, layer.b, y, GetParam());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const Bounded product = weir::reference::dot({layer.x, shape.k}, {layer.w, shape.n},
                                                   i / shape.n, i % shape.n, shape.k);
      const double before = product.value + static_cast<double>(layer.b[i % shape.n]);
      const double expected = GetParam() == Activation::kRelu ? std::max(before, 0.0) : before;
      ASSERT_NEAR(y[i], expected, product.error + 2 * kUnitRoundoff * std::abs(before)) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Activations, DenseForward,
                         testing::Values(Activation::kNone, Activation::kRelu),
                         [](const auto& instance) {
                           return instance.param == Activation::kRelu ? "Relu" : "None";
                         });

TEST(DenseForwardRelu, KeepsANanSoThatADivergedRunShows) {
  const std::array<float, 1> x{1.0F};
  const std::array<float, 1> w{kNan};
  const std::array<float, 1> b{0.0F};
  std::array<float, 1> y{0.0F};
  weir::dense_forward({1, 1, 1}, x, w, b, y, Activation::kRelu);
  EXPECT_TRUE(std::isnan(y[0]));
}

TEST(DenseWeightGradient, IsTheTransposedInputTimesTheGradient) {
  for (const DenseShape shape : kDenseShapes) {
    const Layer layer(shape);
    std::vector<float> dw = unwritten(shape.k * shape.n);
    weir::dense_weight_gradient(shape, layer.x, layer.dy, dw);
    for (std::size_t i = 0; i < dw.size(); ++i) {
      const Bounded expected = weir::reference::dot({layer.x, shape.k, true}, {layer.dy, shape.n},
                                                    i / shape.n, i % shape.n, shape.m);
      ASSERT_NEAR(dw[i], expected.value, expected.error) << i;
    }
  }
}

TEST(DenseInputGradient, IsTheGradientTimesTheTransposedWeights) {
  for (const DenseShape shape : kDenseShapes) {
    const Layer layer(shape);
    std::vector<float> dx = unwritten(shape.m * shape.k);
    weir::dense_input_gradient(shape, layer.dy, layer.w, dx);
    for (std::size_t i = 0; i < dx.size(); ++i) {
      const Bounded expected = weir::reference::dot({layer.dy, shape.n}, {layer.w, shape.n, true},
                                                    i / shape.k, i % shape.k, shape.n);
      ASSERT_NEAR(dx[i], expected.value, expected.error) << i;
    }
  }
}

TEST(DenseBiasGradient, IsTheSumOfTheRowsWithinItsStatedError) {
  for (const DenseShape shape : {DenseShape{1, 1, 1}, DenseShape{31, 1, 63}, DenseShape{32, 1, 64},
                                 DenseShape{33, 1, 65}, DenseShape{1000, 1, 200}}) {
    const std::vector<float> dy = random_numbers(shape.m * shape.n, 5);
    std::vector<float> db = unwritten(shape.n);
    weir::dense_bias_gradient(shape, dy, db);
    const double roundings = 32.0 + static_cast<double>(shape.m) / 32.0;
    for (std::size_t c = 0; c < shape.n; ++c) {
      Bounded expected;
      for (std::size_t row = 0; row < shape.m; ++row) {
        const auto value = static_cast<double>(dy[row * shape.n + c]);
        expected.value += value;
        expected.error += std::abs(value) * 1.01 * kUnitRoundoff * roundings;
      }
      ASSERT_NEAR(db[c], expected.value, expected.error) << shape.m << " rows, column " << c;
    }
  }
}

static_assert(weir::kBiasGradientRows == 32, "the stated order and error are for 32");

TEST(DenseBiasGradient, AddsInTheOrderThatIsWritten) {
  const DenseShape shape{.m = 1003, .k = 1, .n = 131};
  const std::vector<float> dy = random_numbers(shape.m * shape.n, 6);
  std::vector<float> db = unwritten(shape.n);
  weir::dense_bias_gradient(shape, dy, db);
  for (std::size_t c = 0; c < shape.n; ++c) {
    float total = 0;
    float run = 0;
    for (std::size_t row = 0; row < shape.m; ++row) {
      run += dy[row * shape.n + c];
      if ((row + 1) % weir::kBiasGradientRows != 0 && row + 1 != shape.m) continue;
      total += run;
      run = 0;
    }
    ASSERT_EQ(db[c], total) << c;
  }
}

TEST(ReluBackward, PassesTheGradientOnlyWhereTheOutputIsAboveZero) {
  const std::vector<float> y{1.0F, 0.0F, -0.0F, 0x1p-149F, 2.0F};
  std::vector<float> dy{3.0F, 4.0F, 5.0F, -6.0F, -7.0F};
  weir::relu_backward(y, dy);
  EXPECT_EQ(dy, (std::vector<float>{3.0F, 0.0F, 0.0F, -6.0F, -7.0F}));
}

TEST(ReluAndBiasGradient, HasTheBitsOfTheReluAndThenTheBias) {
  for (const DenseShape shape : {DenseShape{1, 1, 1}, DenseShape{31, 1, 63}, DenseShape{33, 1, 65},
                                 DenseShape{1000, 1, 200}, DenseShape{0, 1, 3}}) {
    const std::vector<float> y = random_numbers(shape.m * shape.n, 7);
    const std::vector<float> before = random_numbers(shape.m * shape.n, 8);
    std::vector<float> expected = before;
    std::vector<float> expected_db = unwritten(shape.n);
    weir::relu_backward(y, expected);
    weir::dense_bias_gradient(shape, expected, expected_db);
    std::vector<float> dy = before;
    std::vector<float> db = unwritten(shape.n);
    weir::relu_and_bias_gradient(shape, y, dy, db);
    EXPECT_EQ(dy, expected) << shape.m;
    EXPECT_EQ(db, expected_db) << shape.m;
  }
}

/// sum over the batch of dy * y, in double: the scalar whose gradient the backward pass computes.
double probe(DenseShape shape, const Layer& layer) {
  std::vector<float> y(shape.m * shape.n);
  weir::dense_forward(shape, layer.x, layer.w, layer.b, y, Activation::kRelu);
  double total = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    total += static_cast<double>(y[i]) * static_cast<double>(layer.dy[i]);
  }
  return total;
}

TEST(DenseBackward, IsTheSlopeOfTheForwardPass) {
  const DenseShape shape{.m = 6, .k = 5, .n = 4};
  const Layer layer(shape);
  std::vector<float> y(shape.m * shape.n);
  weir::dense_forward(shape, layer.x, layer.w, layer.b, y, Activation::kRelu);
  std::vector<float> dy = layer.dy;
  weir::relu_backward(y, dy);
  std::vector<float> dw(layer.w.size());
  std::vector<float> db(layer.b.size());
  std::vector<float> dx(layer.x.size());
  weir::dense_weight_gradient(shape, layer.x, dy, dw);
  weir::dense_bias_gradient(shape, dy, db);
  weir::dense_input_gradient(shape, dy, layer.w, dx);

  constexpr float kStep = 0x1p-10F;
  const auto slope = [&](std::vector<float> Layer::*field, std::size_t i) {
    Layer up = layer;
    Layer down = layer;
    (up.*field)[i] += kStep;
    (down.*field)[i] -= kStep;
    return (probe(shape, up) - probe(shape, down)) / (2.0 * static_cast<double>(kStep));
  };
  for (std::size_t i = 0; i < dw.size(); ++i) EXPECT_NEAR(dw[i], slope(&Layer::w, i), 5e-3);
  for (std::size_t i = 0; i < db.size(); ++i) EXPECT_NEAR(db[i], slope(&Layer::b, i), 5e-3);
  for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], slope(&Layer::x, i), 5e-3);
}

TEST(Dense, RefusesSizesThatDoNotFitAndLeavesTheOutputAlone) {
  const DenseShape shape{.m = 2, .k = 3, .n = 4};
  const Layer layer(shape);
  const std::vector<float> off(5, 1.0F);
  std::vector<float> out(8, 42.0F);
  std::vector<float> wrong(5, 42.0F);
  const auto forward = [&](auto& x, auto& w, auto& b, auto& y) {
    weir::dense_forward(shape, x, w, b, y, Activation::kNone);
  };
  EXPECT_THROW(forward(off, layer.w, layer.b, out), weir::UsageError);
  EXPECT_THROW(forward(layer.x, off, layer.b, out), weir::UsageError);
  EXPECT_THROW(forward(layer.x, layer.w, off, out), weir::UsageError);
  EXPECT_THROW(forward(layer.x, layer.w, layer.b, wrong), weir::UsageError);
  EXPECT_THROW(weir::dense_weight_gradient(shape, off, layer.dy, out), weir::UsageError);
  EXPECT_THROW(weir::dense_weight_gradient(shape, layer.x, off, out), weir::UsageError);
  EXPECT_THROW(weir::dense_weight_gradient(shape, layer.x, layer.dy, wrong), weir::UsageError);
  EXPECT_THROW(weir::dense_bias_gradient(shape, off, out), weir::UsageError);
  EXPECT_THROW(weir::dense_bias_gradient(shape, layer.dy, wrong), weir::UsageError);
  EXPECT_THROW(weir::dense_input_gradient(shape, off, layer.w, out), weir::UsageError);
  EXPECT_THROW(weir::dense_input_gradient(shape, layer.dy, off, out), weir::UsageError);
  EXPECT_THROW(weir::dense_input_gradient(shape, layer.dy, layer.w, wrong), weir::UsageError);
  EXPECT_THROW(weir::relu_backward(off, out), weir::UsageError);
  EXPECT_THROW(weir::relu_and_bias_gradient(shape, off, out, wrong), weir::UsageError);
  EXPECT_THROW(weir::relu_and_bias_gradient(shape, layer.dy, wrong, out), weir::UsageError);
  EXPECT_THROW(weir::relu_and_bias_gradient(shape, layer.dy, out, wrong), weir::UsageError);
  EXPECT_EQ(out, std::vector<float>(8, 42.0F));
  EXPECT_EQ(wrong, std::vector<float>(5, 42.0F));
}

}  // namespace
