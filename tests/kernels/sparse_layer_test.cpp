#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace {

using weir::Activation;
using weir::csr_forward;
using weir::csr_weight_gradient;
using weir::CsrColumns;
using weir::CsrRows;
using weir::DenseShape;
using weir::UsageError;
using weir::reference::Bounded;
using weir::reference::kNan;
using weir::reference::kUnitRoundoff;
using weir::reference::random_numbers;
using weir::reference::random_sparse;
using weir::reference::SparseColumns;
using weir::reference::SparseRows;
using weir::reference::unwritten;

/// X's sparsity, and the width of the output.
struct SparseShape {
  weir::reference::Sparsity x;
  std::size_t n = 0;
};
/// One element, one row, a column that every row has, many and few entries, none at all, no rows,
/// and no output.
constexpr std::array<SparseShape, 8> kSparseShapes{{{{1, 1, 1000}, 1},
                                                    {{1, 70, 300}, 5},
                                                    {{5, 1, 1000}, 3},
                                                    {{33, 64, 100}, 65},
                                                    {{128, 50, 500}, 12},
                                                    {{4, 300, 0}, 8},
                                                    {{0, 3, 0}, 4},
                                                    {{3, 4, 500}, 0}}};

/// A sparse layer's inputs and the gradient of its output.
struct CsrInputs {
  explicit CsrInputs(SparseShape sizes)
      : shape{.m = sizes.x.rows, .k = sizes.x.columns, .n = sizes.n},
        x(random_sparse(sizes.x, 1)),
        columns(by_columns(x)),
        w(random_numbers(shape.k * shape.n, 2)),
        b(random_numbers(shape.n, 3)),
        dy(random_numbers(shape.m * shape.n, 4)) {}

  DenseShape shape;
  SparseRows x;
  SparseColumns columns;
  std::vector<float> w;
  std::vector<float> b;
  std::vector<float> dy;
};

std::vector<float> forward(const CsrInputs& in, Activation activation) {
  std::vector<float> y = unwritten(in.shape.m * in.shape.n);
  csr_forward(in.x.view(), in.w, in.b, y, activation);
  return y;
}
std::vector<float> weight_gradient(const CsrInputs& in) {
  std::vector<float> dw = unwritten(in.columns.touched.size() * in.shape.n);
  csr_weight_gradient(in.shape, in.columns.view(), in.dy, dw);
  return dw;
}

TEST(CsrForward, IsTheActivationOfTheProductPlusTheBias) {
  for (const SparseShape sizes : kSparseShapes) {
    const CsrInputs in(sizes);
    const std::vector<float> dense_x = made_dense(in.x);
    const std::vector<float> plain = forward(in, Activation::kNone);
    const std::vector<float> cut = forward(in, Activation::kRelu);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const std::size_t column = i % in.shape.n;
      const Bounded product = weir::reference::dot({dense_x, in.shape.k}, {in.w, in.shape.n},
                                                   i / in.shape.n, column, in.shape.k);
      const double exact = product.value + static_cast<double>(in.b[column]);
      ASSERT_NEAR(plain[i], exact, product.error + 2 * kUnitRoundoff * std::abs(exact)) << i;
      ASSERT_EQ(cut[i], std::max(plain[i], 0.0F)) << i;
    }
  }
}

TEST(CsrForward, AgreesWithTheDenseLayer) {
  for (const SparseShape sizes : kSparseShapes) {
    const CsrInputs in(sizes);
    const std::vector<float> y = forward(in, Activation::kRelu);
    std::vector<float> dense_y = unwritten(y.size());
    weir::dense_forward(in.shape, made_dense(in.x), in.w, in.b, dense_y, Activation::kRelu);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], dense_y[i], 1e-5) << i;
  }
}

TEST(CsrForward, AddsTheEntriesInTheirOrderAndThenTheBias) {
  const CsrInputs in({{64, 300, 200}, 7});
  const std::vector<float> y = forward(in, Activation::kNone);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t row = i / in.shape.n;
    float total = 0;
    for (std::uint32_t e = in.x.starts[row]; e < in.x.starts[row + 1]; ++e) {
      total += in.x.values[e] * in.w[in.x.indices[e] * in.shape.n + i % in.shape.n];
    }
    ASSERT_EQ(y[i], total + in.b[i % in.shape.n]) << i;
  }
}

TEST(CsrForward, OfARowWithoutEntriesIsTheBias) {
  SparseRows x{.columns = 3};
  x.end_row();
  const std::vector<float> w(6, kNan);
  const std::vector<float> b{-2.0F, 3.0F};
  std::vector<float> y = unwritten(2);
  csr_forward(x.view(), w, b, y, Activation::kNone);
  EXPECT_EQ(y, b);
}

TEST(CsrForward, ReadsOnlyTheRowsOfWThatEntriesNameAndKeepsTheirNans) {
  SparseRows x{.columns = 3};
  for (const std::uint32_t column : {0U, 2U}) {
    x.indices.push_back(column);
    x.values.push_back(2.0F);
    x.end_row();
  }
  const std::vector<float> w{1.5F, kNan, kNan};
  std::vector<float> y = unwritten(2);
  csr_forward(x.view(), w, std::vector<float>{1.0F}, y, Activation::kRelu);
  EXPECT_EQ(y[0], 4.0F);
  EXPECT_TRUE(std::isnan(y[1]));
}

TEST(CsrWeightGradient, IsTheTouchedRowsOfTheDenseGradient) {
  for (const SparseShape sizes : kSparseShapes) {
    const CsrInputs in(sizes);
    const std::vector<float> dense_x = made_dense(in.x);
    const std::vector<float> dw = weight_gradient(in);
    for (std::size_t i = 0; i < dw.size(); ++i) {
      const std::size_t row = in.columns.touched[i / in.shape.n];
      const Bounded expected = weir::reference::dot(
          {dense_x, in.shape.k, true}, {in.dy, in.shape.n}, row, i % in.shape.n, in.shape.m);
      ASSERT_NEAR(dw[i], expected.value, expected.error) << i;
    }
  }
}

TEST(CsrWeightGradient, AddsTheEntriesOfAColumnInTheOrderOfItsRows) {
  const CsrInputs in({{300, 20, 300}, 3});
  const std::vector<float> dw = weight_gradient(in);
  for (std::size_t i = 0; i < dw.size(); ++i) {
    const std::size_t t = i / in.shape.n;
    float total = 0;
    for (std::uint32_t e = in.columns.starts[t]; e < in.columns.starts[t + 1]; ++e) {
      total += in.columns.values[e] * in.dy[in.columns.rows[e] * in.shape.n + i % in.shape.n];
    }
    ASSERT_EQ(dw[i], total) << i;
  }
}

/// The sum of dy * (X W + b) in double: the scalar whose gradient the backward pass computes.
double linear_probe(const CsrInputs& in, const std::vector<double>& w) {
  double total = 0;
  for (std::size_t i = 0; i < in.dy.size(); ++i) {
    const std::size_t row = i / in.shape.n;
    auto y = static_cast<double>(in.b[i % in.shape.n]);
    for (std::uint32_t e = in.x.starts[row]; e < in.x.starts[row + 1]; ++e) {
      y += static_cast<double>(in.x.values[e]) * w[in.x.indices[e] * in.shape.n + i % in.shape.n];
    }
    total += y * static_cast<double>(in.dy[i]);
  }
  return total;
}

TEST(CsrWeightGradient, IsTheSlopeOfTheFloat64ForwardPassAndZeroElsewhere) {
  const CsrInputs in({{6, 9, 250}, 4});
  ASSERT_LT(in.columns.touched.size(), in.shape.k) << "some column should be untouched";
  const std::vector<float> dw = weight_gradient(in);
  std::vector<double> whole(in.w.size());
  for (std::size_t i = 0; i < dw.size(); ++i) {
    whole[in.columns.touched[i / in.shape.n] * in.shape.n + i % in.shape.n] =
        static_cast<double>(dw[i]);
  }
  const std::vector<double> w(in.w.begin(), in.w.end());
  constexpr double kStep = 0x1p-10;
  for (std::size_t i = 0; i < w.size(); ++i) {
    std::vector<double> up = w;
    std::vector<double> down = w;
    up[i] += kStep;
    down[i] -= kStep;
    const double slope = (linear_probe(in, up) - linear_probe(in, down)) / (2 * kStep);
    EXPECT_NEAR(whole[i], slope, 3e-6) << i;
  }
}

TEST(CsrLayer, RefusesSizesThatDoNotFitAndLeavesTheOutputAlone) {
  const CsrInputs in({{2, 3, 1000}, 4});
  std::vector<float> out(12, 42.0F);
  const auto forward_refused = [&](const CsrRows& x, std::span<const float> w,
                                   std::span<const float> b, std::span<float> y) {
    EXPECT_THROW(csr_forward(x, w, b, y, Activation::kNone), UsageError);
  };
  const CsrRows x = in.x.view();
  CsrRows few_values = x;
  few_values.values = x.values.first(5);
  const auto y = std::span(out).first(8);
  forward_refused(few_values, in.w, in.b, y);
  forward_refused(x, std::span(in.w).first(11), in.b, y);
  forward_refused(x, in.w, std::span(in.b).first(3), y);
  forward_refused(x, in.w, in.b, out);
  const auto gradient_refused = [&](const CsrColumns& columns, std::span<const float> dy,
                                    std::span<float> dw) {
    EXPECT_THROW(csr_weight_gradient(in.shape, columns, dy, dw), UsageError);
  };
  const CsrColumns columns = in.columns.view();
  CsrColumns few_starts = columns;
  few_starts.starts = columns.starts.first(3);
  CsrColumns few_rows = columns;
  few_rows.rows = columns.rows.first(5);
  gradient_refused(few_starts, in.dy, out);
  gradient_refused(few_rows, in.dy, out);
  gradient_refused(columns, std::span(in.dy).first(7), out);
  gradient_refused(columns, in.dy, std::span(out).first(11));
  EXPECT_EQ(out, std::vector<float>(12, 42.0F));
}

}  // namespace
