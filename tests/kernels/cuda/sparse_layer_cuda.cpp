#include <array>

#include "allocator/base/error.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "tests/kernels/cuda/device_sparse_cuda.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"

namespace {

using weir::Activation;
using weir::CsrColumns;
using weir::CsrRows;
using weir::DenseShape;
using weir::reference::SparseColumns;
using weir::reference::SparseRows;
using weir::testing::DeviceArray;
using weir::testing::DeviceColumns;
using weir::testing::DeviceRows;
using weir::testing::expect_same_bits;
using weir::testing::fresh_seed;

/// X's sparsity, and the width of the output.
struct SparseShape {
  weir::reference::Sparsity x;
  std::size_t n = 0;
};
/// One element, a column that every row has, no entries, no rows, no output; outputs with and
/// without whole fours, narrower than a warp and wider than a block; lists that end within a group
/// of loads.
constexpr std::array<SparseShape, 10> kSparseShapes{{{{1, 1, 1000}, 1},
                                                     {{5, 1, 1000}, 3},
                                                     {{4, 300, 0}, 8},
                                                     {{0, 3, 0}, 4},
                                                     {{3, 4, 500}, 0},
                                                     {{1, 100, 500}, 4},
                                                     {{65, 70, 300}, 12},
                                                     {{33, 64, 100}, 65},
                                                     {{7, 200, 400}, 1024},
                                                     {{3, 50, 900}, 1027}}};

class CsrLayerOnDevice : public weir::testing::GpuTest {};

TEST_F(CsrLayerOnDevice, ForwardHasTheCpusBits) {
  for (const SparseShape sizes : kSparseShapes) {
    SCOPED_TRACE(std::to_string(sizes.x.rows) + " x " + std::to_string(sizes.x.columns) + " x " +
                 std::to_string(sizes.n));
    const SparseRows x = random_sparse(sizes.x, static_cast<std::uint32_t>(fresh_seed()));
    const std::vector<float> w = random(sizes.x.columns * sizes.n);
    const std::vector<float> b = random(sizes.n);
    const DeviceRows device_x(x);
    std::vector<float> expected(sizes.x.rows * sizes.n);
    for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
      weir::csr_forward(x.view(), w, b, expected, activation);
      for (const std::size_t offset : {0U, 1U}) {
        DeviceArray<float> y(expected.size(), offset);
        weir::cuda::csr_forward(stream(), device_x.view(), DeviceArray<float>(w, offset).view(),
                                DeviceArray<float>(b, offset).view(), y.span(), activation);
        expect_same_bits(y.values(), expected);
        EXPECT_TRUE(y.guards_hold());
      }
    }
  }
}

TEST_F(CsrLayerOnDevice, WeightGradientHasTheCpusBits) {
  for (const SparseShape sizes : kSparseShapes) {
    SCOPED_TRACE(std::to_string(sizes.x.rows) + " x " + std::to_string(sizes.x.columns) + " x " +
                 std::to_string(sizes.n));
    const SparseColumns x =
        by_columns(random_sparse(sizes.x, static_cast<std::uint32_t>(fresh_seed())));
    const DenseShape shape{.m = sizes.x.rows, .k = sizes.x.columns, .n = sizes.n};
    const std::vector<float> dy = random(shape.m * shape.n);
    std::vector<float> expected(x.touched.size() * shape.n);
    weir::csr_weight_gradient(shape, x.view(), dy, expected);
    const DeviceColumns device_x(x);
    for (const std::size_t offset : {0U, 1U}) {
      DeviceArray<float> dw(expected.size(), offset);
      weir::cuda::csr_weight_gradient(stream(), shape, device_x.view(),
                                      DeviceArray<float>(dy, offset).view(), dw.span());
      expect_same_bits(dw.values(), expected);
      EXPECT_TRUE(dw.guards_hold());
    }
  }
}

TEST_F(CsrLayerOnDevice, ReadsOnlyTheRowsOfWThatEntriesNameAndKeepsTheirNans) {
  const SparseRows x{.columns = 3, .starts = {0, 1, 2}, .indices = {0, 2}, .values = {2, 2}};
  DeviceArray<float> w(12);  // NaNs
  std::vector<float> values = w.values();
  std::fill_n(values.begin(), 4, 1.5F);
  w.assign(values);
  DeviceArray<float> y(8);
  weir::cuda::csr_forward(stream(), DeviceRows(x).view(), w.view(),
                          DeviceArray<float>(std::vector<float>(4, 1.0F)).view(), y.span(),
                          Activation::kRelu);
  const std::vector<float> found = y.values();
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found[i], 4.0F);
    EXPECT_TRUE(std::isnan(found[4 + i]));
  }
}

TEST_F(CsrLayerOnDevice, BadSizesAreRefusedAndNothingChanges) {
  const SparseRows host = weir::reference::random_sparse({2, 3, 1000}, 1);
  const DeviceRows rows(host);
  const DeviceColumns columns(by_columns(host));
  const DeviceArray<float> w(random(12));
  const DeviceArray<float> b(random(4));
  DeviceArray<float> out(12);
  const auto forward_refused = [&](const CsrRows& x, auto weights, auto bias, auto y) {
    EXPECT_THROW(weir::cuda::csr_forward(stream(), x, weights, bias, y, Activation::kNone),
                 weir::UsageError);
  };
  const CsrRows x = rows.view();
  CsrRows few_values = x;
  few_values.values = x.values.first(5);
  const auto y = out.span().first(8);
  forward_refused(few_values, w.view(), b.view(), y);
  forward_refused(x, w.view().first(11), b.view(), y);
  forward_refused(x, w.view(), b.view().first(3), y);
  forward_refused(x, w.view(), b.view(), out.span());
  const auto gradient_refused = [&](const CsrColumns& by_column, auto dy, auto dw) {
    EXPECT_THROW(weir::cuda::csr_weight_gradient(stream(), {2, 3, 4}, by_column, dy, dw),
                 weir::UsageError);
  };
  CsrColumns few_starts = columns.view();
  few_starts.starts = few_starts.starts.first(3);
  CsrColumns few_rows = columns.view();
  few_rows.rows = few_rows.rows.first(5);
  const auto dy = w.view().first(8);
  gradient_refused(few_starts, dy, out.span());
  gradient_refused(few_rows, dy, out.span());
  gradient_refused(columns.view(), dy.first(7), out.span());
  gradient_refused(columns.view(), dy, out.span().first(11));
  for (const float value : out.values()) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
