// A layer whose input is sparse.

#include <algorithm>
#include <array>

#include "tests/kernels/device.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace {

using weir::Activation;
using weir::CsrColumns;
using weir::CsrRows;
using weir::DenseShape;
using weir::UsageError;
using weir::reference::Bounded;
using weir::reference::kNan;
using weir::reference::kUnitRoundoff;
using weir::reference::SparseColumns;
using weir::reference::SparseRows;
using weir::testing::Array;
using weir::testing::expect_same_bits;
using weir::testing::expect_within;
using weir::testing::fresh_seed;

/// X's sparsity, and the width of the output.
struct SparseShape {
  weir::reference::Sparsity x;
  std::size_t n = 0;
};
/// One element, one row, a column that every row has, no entries, no rows, no output; outputs with
/// and without whole fours, narrower than a warp and wider than a block; lists that end within a
/// group of loads; rows beyond those that the CPU fetches ahead.
constexpr std::array<SparseShape, 12> kSparseShapes{{{{1, 1, 1000}, 1},
                                                     {{1, 70, 300}, 5},
                                                     {{5, 1, 1000}, 3},
                                                     {{4, 300, 0}, 8},
                                                     {{0, 3, 0}, 4},
                                                     {{3, 4, 500}, 0},
                                                     {{1, 100, 500}, 4},
                                                     {{128, 50, 500}, 12},
                                                     {{64, 300, 200}, 7},
                                                     {{33, 64, 100}, 65},
                                                     {{7, 200, 400}, 1024},
                                                     {{3, 50, 900}, 1027}}};

class CsrLayer : public weir::testing::KernelTest {
 protected:
  /// A sparse layer's inputs and the gradient of its output.
  struct Inputs {
    DenseShape shape;
    SparseRows x;
    SparseColumns columns;
    std::vector<float> w;
    std::vector<float> b;
    std::vector<float> dy;
  };
  Inputs inputs(SparseShape sizes) {
    const DenseShape shape{.m = sizes.x.rows, .k = sizes.x.columns, .n = sizes.n};
    const SparseRows x = random_sparse(sizes.x, static_cast<std::uint32_t>(fresh_seed()));
    return {shape,           x,
            by_columns(x),   random(shape.k * shape.n),
            random(shape.n), random(shape.m * shape.n)};
  }
  template <typename Test>
  void for_each_layer(const Test& test) {
    for (const SparseShape shape : kSparseShapes) {
      SCOPED_TRACE(weir::testing::sizes({shape.x.rows, shape.x.columns, shape.n}));
      test(inputs(shape));
    }
  }

  std::vector<float> forward(const SparseRows& x, const std::vector<float>& w,
                             const std::vector<float>& b, Activation activation,
                             std::size_t offset = 0) {
    const Array<std::uint32_t> starts(x.starts);
    const Array<std::uint32_t> indices(x.indices);
    const Array<float> values(x.values);
    Array<float> y(x.rows() * b.size(), offset);
    csr_forward(CsrRows{x.columns, starts.view(), indices.view(), values.view()},
                Array<float>(w, offset).view(), Array<float>(b, offset).view(), y.span(),
                activation);
    return y.values();
  }
  std::vector<float> weight_gradient(const Inputs& in, std::size_t offset = 0) {
    const Array<std::uint32_t> touched(in.columns.touched);
    const Array<std::uint32_t> starts(in.columns.starts);
    const Array<std::uint32_t> rows(in.columns.rows);
    const Array<float> values(in.columns.values);
    Array<float> dw(in.columns.touched.size() * in.shape.n, offset);
    csr_weight_gradient(in.shape,
                        CsrColumns{touched.view(), starts.view(), rows.view(), values.view()},
                        Array<float>(in.dy, offset).view(), dw.span());
    return dw.values();
  }
};

TEST_F(CsrLayer, ForwardAddsTheEntriesInTheirOrderAndThenTheBias) {
  for_each_layer([&](const Inputs& in) {
    const std::vector<float> dense_x = made_dense(in.x);
    std::vector<float> expected(in.shape.m * in.shape.n);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::size_t row = i / in.shape.n;
      for (std::uint32_t e = in.x.starts[row]; e < in.x.starts[row + 1]; ++e) {
        expected[i] += in.x.values[e] * in.w[in.x.indices[e] * in.shape.n + i % in.shape.n];
      }
      expected[i] += in.b[i % in.shape.n];
    }
    std::vector<float> cut = expected;
    for (float& value : cut) value = value < 0 ? 0.0F : value;
    for (const std::size_t offset : {0U, 1U}) {
      expect_same_bits(forward(in.x, in.w, in.b, Activation::kNone, offset), expected);
      expect_same_bits(forward(in.x, in.w, in.b, Activation::kRelu, offset), cut);
    }
    const auto bounded = [&](std::size_t i) {
      const std::size_t column = i % in.shape.n;
      const Bounded product = weir::reference::dot({dense_x, in.shape.k}, {in.w, in.shape.n},
                                                   i / in.shape.n, column, in.shape.k);
      const double exact = product.value + static_cast<double>(in.b[column]);
      return Bounded{exact, product.error + 2 * kUnitRoundoff * std::abs(exact)};
    };
    expect_within(expected, bounded);
    Array<float> dense_y(expected.size());
    dense_forward(weir::Precision::kFloat32, in.shape, Array<float>(dense_x).view(),
                  Array<float>(in.w).view(), Array<float>(in.b).view(), dense_y.span(),
                  Activation::kRelu);
    expect_within(dense_y.values(), [&](std::size_t i) {
      const Bounded before = bounded(i);
      return Bounded{std::max(before.value, 0.0), before.error};
    });
  });
}

TEST_F(CsrLayer, ReadsOnlyTheRowsOfWThatEntriesNameAndKeepsTheirNans) {
  SparseRows x{.columns = 3, .starts = {0, 1, 2, 2}, .indices = {0, 2}, .values = {2, 2}};
  std::vector<float> w(12, kNan);
  std::fill_n(w.begin(), 4, 1.5F);
  const std::vector<float> found = forward(x, w, std::vector<float>(4, 1.0F), Activation::kRelu);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found[i], 4.0F);
    EXPECT_TRUE(std::isnan(found[4 + i]));
    EXPECT_EQ(found[8 + i], 1.0F) << "a row without entries is the bias";
  }
}

TEST_F(CsrLayer, WeightGradientIsTheTouchedRowsOfTheDenseOneAddedInTheOrderOfTheRows) {
  for_each_layer([&](const Inputs& in) {
    const std::vector<float> dense_x = made_dense(in.x);
    std::vector<float> expected(in.columns.touched.size() * in.shape.n);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::size_t t = i / in.shape.n;
      for (std::uint32_t e = in.columns.starts[t]; e < in.columns.starts[t + 1]; ++e) {
        expected[i] +=
            in.columns.values[e] * in.dy[in.columns.rows[e] * in.shape.n + i % in.shape.n];
      }
    }
    for (const std::size_t offset : {0U, 1U})
      expect_same_bits(weight_gradient(in, offset), expected);
    expect_within(expected, [&](std::size_t i) {
      return weir::reference::dot({dense_x, in.shape.k, true}, {in.dy, in.shape.n},
                                  in.columns.touched[i / in.shape.n], i % in.shape.n, in.shape.m);
    });
  });
}

TEST_F(CsrLayer, WeightGradientIsTheSlopeOfTheFloat64ForwardPassAndZeroElsewhere) {
  Inputs in = inputs({{6, 9, 250}, 4});
  in.x = weir::reference::random_sparse({6, 9, 250}, 1);
  in.columns = by_columns(in.x);
  ASSERT_LT(in.columns.touched.size(), in.shape.k) << "some column should be untouched";
  const std::vector<float> dw = weight_gradient(in);
  std::vector<float> whole(in.w.size());
  for (std::size_t i = 0; i < dw.size(); ++i) {
    whole[in.columns.touched[i / in.shape.n] * in.shape.n + i % in.shape.n] = dw[i];
  }
  // The sum of dy * (X W + b) in double: the scalar whose gradient the backward pass computes.
  const auto probe = [&in] {
    double total = 0;
    for (std::size_t i = 0; i < in.dy.size(); ++i) {
      const std::size_t row = i / in.shape.n;
      auto y = static_cast<double>(in.b[i % in.shape.n]);
      for (std::uint32_t e = in.x.starts[row]; e < in.x.starts[row + 1]; ++e) {
        y += static_cast<double>(in.x.values[e]) *
             static_cast<double>(in.w[in.x.indices[e] * in.shape.n + i % in.shape.n]);
      }
      total += y * static_cast<double>(in.dy[i]);
    }
    return total;
  };
  weir::reference::expect_slopes(whole, in.w, probe, 3e-6);
}

TEST_F(CsrLayer, OfSizesThatDoNotFitIsRefusedAndNothingChanges) {
  const SparseRows host = weir::reference::random_sparse({2, 3, 1000}, 1);
  const SparseColumns turned = by_columns(host);
  const Array<std::uint32_t> row_starts(host.starts);
  const Array<std::uint32_t> indices(host.indices);
  const Array<std::uint32_t> touched(turned.touched);
  const Array<std::uint32_t> column_starts(turned.starts);
  const Array<std::uint32_t> column_rows(turned.rows);
  const Array<float> values(host.values);
  const CsrRows x{3, row_starts.view(), indices.view(), values.view()};
  const CsrColumns columns{touched.view(), column_starts.view(), column_rows.view(), values.view()};
  const Array<float> in(random(12));
  Array<float> out(12);
  const auto w = in.view();
  const auto forward_refused = [&](const CsrRows& rows, auto weights, std::size_t n,
                                   std::size_t m_n) {
    EXPECT_THROW(
        csr_forward(rows, weights, in.view().first(n), out.span().first(m_n), Activation::kNone),
        UsageError);
  };
  CsrRows few_values = x;
  few_values.values = x.values.first(5);
  forward_refused(few_values, w, 4, 8);
  forward_refused(x, w.first(11), 4, 8);
  forward_refused(x, w, 3, 8);
  forward_refused(x, w, 4, 12);
  const auto gradient_refused = [&](const CsrColumns& by_column, std::size_t m_n, std::size_t t_n) {
    EXPECT_THROW(csr_weight_gradient(DenseShape{2, 3, 4}, by_column, in.view().first(m_n),
                                     out.span().first(t_n)),
                 UsageError);
  };
  CsrColumns few_starts = columns;
  few_starts.starts = columns.starts.first(3);
  CsrColumns few_rows = columns;
  few_rows.rows = columns.rows.first(5);
  gradient_refused(few_starts, 8, 12);
  gradient_refused(few_rows, 8, 12);
  gradient_refused(columns, 7, 12);
  gradient_refused(columns, 8, 11);
  EXPECT_TRUE(out.is_unwritten());
}

}  // namespace
