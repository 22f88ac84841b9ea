// The dense layer in all precisions.

#include <algorithm>
#include <array>

#include "tests/kernels/device.hpp"
#include "tests/kernels/mixed_reference.hpp"

namespace {

using weir::Activation;
using weir::DenseShape;
using weir::GemmOptions;
using weir::GemmShape;
using weir::HalfKind;
using weir::Precision;
using weir::Transpose;
using weir::UsageError;
using weir::reference::Bounded;
using weir::reference::kEachHalfKind;
using weir::reference::kNan;
using weir::reference::kUnitRoundoff;
using weir::reference::words_of;
using weir::testing::Array;
using weir::testing::expect_same_bits;
using weir::testing::expect_within;
using weir::testing::Extent;
using weir::testing::for_each_extent;
using weir::testing::sizes;

constexpr std::array<DenseShape, 8> kProducts{{{1, 1, 1},
                                               {3, 5, 7},
                                               {4, 0, 5},
                                               {33, 64, 68},
                                               {64, 1, 129},
                                               {67, 255, 1},
                                               {129, 31, 64},
                                               {4, 600, 9}}};
/// m rows of n columns: nothing, one, rows around a run, rows with and without whole fours, runs
/// around the capacity of a block of few, some and many columns.
constexpr std::array<DenseShape, 16> kMatrices{{{0, 1, 3},
                                                {3, 1, 0},
                                                {1, 1, 1},
                                                {1, 1, 4},
                                                {31, 1, 5},
                                                {32, 1, 31},
                                                {33, 1, 64},
                                                {5, 1, 1023},
                                                {64, 1, 1024},
                                                {3, 1, 1025},
                                                {512, 1, 257},
                                                {513, 1, 257},
                                                {4097, 1, 33},
                                                {16385, 1, 9},
                                                {1003, 1, 131},
                                                {100003, 1, 1}}};

class Dense : public weir::testing::KernelTest {
 protected:
  /// A layer in a precision: its functions are the products, tested elsewhere, and the pass for the
  /// bias.
  template <typename How, typename T>
  void expect_products(How how, DenseShape shape, const Array<T>& x, const Array<T>& w,
                       const Array<T>& dy) {
    const Array<float> b(random(shape.n));
    Array<float> y(shape.m * shape.n);
    Array<float> dw(shape.k * shape.n);
    Array<float> dx(shape.m * shape.k);
    dense_forward(how, shape, x.view(), w.view(), b.view(), y.span(), Activation::kRelu);
    dense_weight_gradient(how, shape, x.view(), dy.view(), dw.span());
    dense_input_gradient(how, shape, dy.view(), w.view(), dx.span());
    Array<float> expected_dw(shape.k * shape.n);
    gemm(how, GemmShape{.m = shape.k, .n = shape.n, .k = shape.m}, x.view(), dy.view(),
         expected_dw.span(), GemmOptions{.a = Transpose::kYes});
    expect_same_bits(dw.values(), expected_dw.values());
    Array<float> expected_dx(shape.m * shape.k);
    gemm(how, GemmShape{.m = shape.m, .n = shape.k, .k = shape.n}, dy.view(), w.view(),
         expected_dx.span(), GemmOptions{.b = Transpose::kYes});
    expect_same_bits(dx.values(), expected_dx.values());
    if constexpr (std::is_same_v<How, Precision>) {
      if (how == Precision::kFloat32) return;  // on the CPU the product is added to the bias
    }
    Array<float> expected(shape.m * shape.n);
    gemm(how, GemmShape{.m = shape.m, .n = shape.n, .k = shape.k}, x.view(), w.view(),
         expected.span(), GemmOptions{});
    bias_activation(shape, b.view(), expected.span(), Activation::kRelu);
    expect_same_bits(y.values(), expected.values());
  }

  void expect_bias_gradient(DenseShape shape, std::size_t offset);
};

TEST_F(Dense, ForwardIsTheActivationOfTheProductPlusTheBias) {
  for (const DenseShape shape : kProducts) {
    SCOPED_TRACE(sizes({shape.m, shape.k, shape.n}));
    const std::vector<float> x = random(shape.m * shape.k);
    const std::vector<float> w = random(shape.k * shape.n);
    const std::vector<float> b = random(shape.n);
    for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
      Array<float> y(shape.m * shape.n);
      dense_forward(Precision::kFloat32, shape, Array<float>(x).view(), Array<float>(w).view(),
                    Array<float>(b).view(), y.span(), activation);
      expect_within(y.values(), [&](std::size_t i) {
        const Bounded product =
            weir::reference::dot({x, shape.k}, {w, shape.n}, i / shape.n, i % shape.n, shape.k);
        const double before = product.value + static_cast<double>(b[i % shape.n]);
        const double after = activation == Activation::kRelu ? std::max(before, 0.0) : before;
        return Bounded{after, product.error + 2 * kUnitRoundoff * std::abs(before)};
      });
    }
  }
}

TEST_F(Dense, WeightAndInputGradientsAreTheirProducts) {
  for (const DenseShape shape : kProducts) {
    SCOPED_TRACE(sizes({shape.m, shape.k, shape.n}));
    const std::vector<float> x = random(shape.m * shape.k);
    const std::vector<float> w = random(shape.k * shape.n);
    const std::vector<float> dy = random(shape.m * shape.n);
    Array<float> dw(w.size());
    Array<float> dx(x.size());
    dense_weight_gradient(Precision::kFloat32, shape, Array<float>(x).view(),
                          Array<float>(dy).view(), dw.span());
    dense_input_gradient(Precision::kFloat32, shape, Array<float>(dy).view(),
                         Array<float>(w).view(), dx.span());
    expect_within(dw.values(), [&](std::size_t i) {
      return weir::reference::dot({x, shape.k, true}, {dy, shape.n}, i / shape.n, i % shape.n,
                                  shape.m);
    });
    expect_within(dx.values(), [&](std::size_t i) {
      return weir::reference::dot({dy, shape.n}, {w, shape.n, true}, i / shape.k, i % shape.k,
                                  shape.n);
    });
  }
}

TEST_F(Dense, LayersInAPrecisionAreTheirProducts) {
  for (const DenseShape shape : kProducts) {
    SCOPED_TRACE(sizes({shape.m, shape.k, shape.n}));
    const std::vector<float> x = random(shape.m * shape.k);
    const std::vector<float> w = random(shape.k * shape.n);
    const std::vector<float> dy = random(shape.m * shape.n);
    for (const Precision precision : {Precision::kFloat32, Precision::kTf32}) {
      expect_products(precision, shape, Array<float>(x), Array<float>(w), Array<float>(dy));
    }
    for (const HalfKind kind : kEachHalfKind) {
      using Halves = Array<std::uint16_t>;
      expect_products(kind, shape, Halves(words_of(x, kind)), Halves(words_of(w, kind)),
                      Halves(words_of(dy, kind)));
    }
  }
}

TEST_F(Dense, BiasAndActivationAreOneRoundedSumAndAComparison) {
  for (const DenseShape shape : kMatrices) {
    for (const std::size_t offset : {0U, 1U}) {
      for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
        SCOPED_TRACE(sizes({shape.m, shape.n, offset}));
        const std::vector<float> b = random(shape.n);
        std::vector<float> expected = random(shape.m * shape.n);
        Array<float> y(expected, offset);
        bias_activation(shape, Array<float>(b, offset).view(), y.span(), activation);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const double sum = static_cast<double>(expected[i]) + static_cast<double>(b[i % shape.n]);
          const bool cut = activation == Activation::kRelu && sum < 0;
          expected[i] = cut ? 0.0F : weir::reference::rounded(sum);
        }
        expect_same_bits(y.values(), expected);
      }
    }
  }
}

TEST_F(Dense, TheActivationKeepsANanSoThatADivergedRunShows) {
  const DenseShape shape{.m = 1, .k = 1, .n = 4};
  const std::vector<float> w{kNan, -1, 1, -0.0F};
  const Array<float> one(std::vector<float>{1});
  const Array<float> b(std::vector<float>(4, 0.0F));
  Array<float> y(w);
  Array<float> product(4);
  bias_activation(shape, b.view(), y.span(), Activation::kRelu);
  dense_forward(Precision::kFloat32, shape, one.view(), Array<float>(w).view(), b.view(),
                product.span(), Activation::kRelu);
  expect_same_bits(y.values(), {kNan, 0, 1, 0});
  expect_same_bits(product.values(), {kNan, 0, 1, 0});
}

TEST_F(Dense, ReluBackwardPassesTheGradientOnlyWhereTheOutputIsAboveZero) {
  for_each_extent([&](Extent extent) {
    std::vector<float> y = random(extent.size);
    for (std::size_t i = 0; i < y.size(); i += 3) y[i] = i % 2 == 0 ? 0.0F : -0.0F;
    if (y.size() > 4) y[4] = 0x1p-149F;
    std::vector<float> expected = random(extent.size);
    Array<float> dy(expected, extent.offset);
    relu_backward(Array<float>(y, extent.offset).view(), dy.span());
    for (std::size_t i = 0; i < y.size(); ++i) expected[i] = y[i] > 0.0F ? expected[i] : 0.0F;
    expect_same_bits(dy.values(), expected);
  });
}

static_assert(weir::kBiasGradientRows == 32, "the stated order and error are for 32");

/// The order that is written: runs of 32 rows, each from 0, and their totals.
std::vector<float> bias_gradient_as_written(DenseShape shape, const std::vector<float>& dy) {
  std::vector<float> total(shape.n);
  std::vector<float> run(shape.n);
  for (std::size_t row = 0; row < shape.m; ++row) {
    const bool ends = (row + 1) % weir::kBiasGradientRows == 0 || row + 1 == shape.m;
    for (std::size_t c = 0; c < shape.n; ++c) {
      run[c] += dy[row * shape.n + c];
      if (!ends) continue;
      total[c] += run[c];
      run[c] = 0;
    }
  }
  return total;
}

void Dense::expect_bias_gradient(DenseShape shape, std::size_t offset) {
  SCOPED_TRACE(sizes({shape.m, shape.n, offset}));
  const std::vector<float> y = random(shape.m * shape.n);
  std::vector<float> dy = random(shape.m * shape.n);
  Array<float> gradient(dy, offset);
  Array<float> db(shape.n, offset);
  dense_bias_gradient(shape, gradient.view(), db.span());
  expect_same_bits(gradient.values(), dy);
  expect_same_bits(db.values(), bias_gradient_as_written(shape, dy));
  const double roundings = 32.0 + static_cast<double>(shape.m) / 32.0;
  std::vector<Bounded> exact(shape.n);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const auto value = static_cast<double>(dy[i]);
    exact[i % shape.n].value += value;
    exact[i % shape.n].error += 1.01 * kUnitRoundoff * roundings * std::abs(value);
  }
  expect_within(db.values(), [&](std::size_t c) { return exact[c]; });

  relu_and_bias_gradient(shape, Array<float>(y, offset).view(), gradient.span(), db.span());
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = y[i] > 0.0F ? dy[i] : 0.0F;
  expect_same_bits(gradient.values(), dy);
  expect_same_bits(db.values(), bias_gradient_as_written(shape, dy));
}

TEST_F(Dense, BiasGradientsAreAddedInTheOrderThatIsWrittenAndErrWithinTheirBound) {
  for (const DenseShape shape : kMatrices) {
    expect_bias_gradient(shape, 0);
    expect_bias_gradient(shape, 1);
  }
}

TEST_F(Dense, BackwardIsTheSlopeOfTheForwardPass) {
  const DenseShape shape{.m = 6, .k = 5, .n = 4};
  std::array<std::vector<float>, 3> in{weir::reference::random_numbers(30, 1),
                                       weir::reference::random_numbers(20, 2),
                                       weir::reference::random_numbers(4, 3)};  // x, w, b
  const std::vector<float> slopes = weir::reference::random_numbers(24, 4);
  Array<float> y(24);
  const auto forward = [&] {
    dense_forward(Precision::kFloat32, shape, Array<float>(in[0]).view(),
                  Array<float>(in[1]).view(), Array<float>(in[2]).view(), y.span(),
                  Activation::kRelu);
    return y.values();
  };
  /// The sum over the batch of dy * y, in double: the scalar whose gradient the backward pass
  /// computes.
  const auto probe = [&] {
    const std::vector<float> found = forward();
    double total = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      total += static_cast<double>(found[i]) * static_cast<double>(slopes[i]);
    }
    return total;
  };
  forward();
  Array<float> dy(slopes);
  std::array<Array<float>, 3> found{Array<float>(30), Array<float>(20), Array<float>(4)};
  relu_backward(y.view(), dy.span());
  dense_input_gradient(Precision::kFloat32, shape, dy.view(), Array<float>(in[1]).view(),
                       found[0].span());
  dense_weight_gradient(Precision::kFloat32, shape, Array<float>(in[0]).view(), dy.view(),
                        found[1].span());
  dense_bias_gradient(shape, dy.view(), found[2].span());
  for (std::size_t f = 0; f < 3; ++f) {
    weir::reference::expect_slopes(found[f].values(), in[f], probe, 5e-3);
  }
}

TEST_F(Dense, OfSizesThatDoNotFitIsRefusedAndNothingChanges) {
  const DenseShape shape{.m = 2, .k = 3, .n = 4};
  const Array<float> in(random(12));
  const Array<std::uint16_t> halves(12);
  Array<float> out(12);
  const auto x = in.view().first(6);
  const auto w = in.view();
  const auto b = in.view().first(4);
  const auto y = in.view().first(8);
  const auto off = in.view().first(5);
  const auto eight = out.span().first(8);
  const auto four = out.span().first(4);
  const auto six = out.span().first(6);
  const auto forward = [&](auto x_in, auto w_in, auto b_in, auto y_out) {
    EXPECT_THROW(
        dense_forward(Precision::kFloat32, shape, x_in, w_in, b_in, y_out, Activation::kRelu),
        UsageError);
  };
  forward(off, w, b, eight);
  forward(x, off, b, eight);
  forward(x, w, off, eight);
  forward(x, w, b, six);
  EXPECT_THROW(dense_weight_gradient(Precision::kFloat32, shape, off, y, out.span()), UsageError);
  EXPECT_THROW(dense_weight_gradient(Precision::kFloat32, shape, x, off, out.span()), UsageError);
  EXPECT_THROW(dense_weight_gradient(Precision::kFloat32, shape, x, y, eight), UsageError);
  EXPECT_THROW(dense_input_gradient(Precision::kFloat32, shape, off, w, six), UsageError);
  EXPECT_THROW(dense_input_gradient(Precision::kFloat32, shape, y, off, six), UsageError);
  EXPECT_THROW(dense_input_gradient(Precision::kFloat32, shape, y, w, eight), UsageError);
  EXPECT_THROW(dense_bias_gradient(shape, off, four), UsageError);
  EXPECT_THROW(dense_bias_gradient(shape, y, six), UsageError);
  EXPECT_THROW(relu_and_bias_gradient(shape, off, eight, four), UsageError);
  EXPECT_THROW(relu_and_bias_gradient(shape, y, six, four), UsageError);
  EXPECT_THROW(relu_and_bias_gradient(shape, y, eight, six), UsageError);
  EXPECT_THROW(bias_activation(shape, off, eight, Activation::kNone), UsageError);
  EXPECT_THROW(bias_activation(shape, b, six, Activation::kNone), UsageError);
  EXPECT_THROW(relu_backward(off, eight), UsageError);
  const auto half = halves.view();
  EXPECT_THROW(
      dense_forward(HalfKind::kFp16, shape, half.first(6), half, off, eight, Activation::kNone),
      UsageError);
  EXPECT_THROW(dense_weight_gradient(HalfKind::kFp16, shape, half.first(6), half.first(8), four),
               UsageError);
  EXPECT_THROW(dense_input_gradient(HalfKind::kFp16, shape, half.first(8), half, four), UsageError);
  EXPECT_TRUE(out.is_unwritten());
}

}  // namespace
