// A layer whose input is sparse.

#include <algorithm>
#include <array>

#include "tests/kernels/device.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace {

using weir::Activation;
using weir::CsrRows;
using weir::DenseShape;
using weir::UsageError;
using weir::reference::Bounded;
using weir::reference::kNan;
using weir::reference::kUnitRoundoff;
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
  /// A sparse layer's inputs.
  struct Inputs {
    DenseShape shape;
    SparseRows x;
    std::vector<float> w;
    std::vector<float> b;
  };
  Inputs inputs(SparseShape sizes) {
    const DenseShape shape{.m = sizes.x.rows, .k = sizes.x.columns, .n = sizes.n};
    const SparseRows x = random_sparse(sizes.x, static_cast<std::uint32_t>(fresh_seed()));
    return {shape, x, random(shape.k * shape.n), random(shape.n)};
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

TEST_F(CsrLayer, OfSizesThatDoNotFitIsRefusedAndNothingChanges) {
  const SparseRows host = weir::reference::random_sparse({2, 3, 1000}, 1);
  const Array<std::uint32_t> row_starts(host.starts);
  const Array<std::uint32_t> indices(host.indices);
  const Array<float> values(host.values);
  const CsrRows x{3, row_starts.view(), indices.view(), values.view()};
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
  EXPECT_TRUE(out.is_unwritten());
}

}  // namespace
