#include <array>

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"

namespace {

using weir::Activation;
using weir::DenseShape;
using weir::reference::Bounded;
using weir::reference::kUnitRoundoff;
using weir::testing::DeviceArray;
using weir::testing::expect_same_bits;
using weir::testing::expect_within;

constexpr std::array<DenseShape, 7> kProducts{
    {{1, 1, 1}, {3, 5, 7}, {4, 0, 5}, {33, 64, 68}, {64, 1, 129}, {67, 255, 1}, {129, 31, 64}}};
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
                                                {1003, 1, 104},
                                                {100003, 1, 1}}};

std::string describe(DenseShape shape, std::size_t offset) {
  return std::to_string(shape.m) + " x " + std::to_string(shape.k) + " x " +
         std::to_string(shape.n) + " at offset " + std::to_string(offset);
}

class DenseOnDevice : public weir::testing::GpuTest {
 protected:
  /// Checks relu_and_bias_gradient and dense_bias_gradient on a matrix m x n.
  void expect_bias_gradient(DenseShape shape, std::size_t offset);
};

TEST_F(DenseOnDevice, ForwardIsTheActivationOfTheProductPlusTheBias) {
  weir::cuda::CublasHandle blas;
  for (const DenseShape shape : kProducts) {
    for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
      SCOPED_TRACE(describe(shape, 0));
      const std::vector<float> x = random(shape.m * shape.k);
      const std::vector<float> w = random(shape.k * shape.n);
      const std::vector<float> b = random(shape.n);
      DeviceArray<float> y(shape.m * shape.n);
      weir::cuda::dense_forward(blas, stream(), shape, DeviceArray<float>(x).view(),
                                DeviceArray<float>(w).view(), DeviceArray<float>(b).view(),
                                y.span(), activation, workspace());
      expect_within(y.values(), [&](std::size_t i) {
        const Bounded product =
            weir::reference::dot({x, shape.k}, {w, shape.n}, i / shape.n, i % shape.n, shape.k);
        const double before = product.value + static_cast<double>(b[i % shape.n]);
        const double after = activation == Activation::kRelu ? std::max(before, 0.0) : before;
        return Bounded{after, product.error + 2 * kUnitRoundoff * std::abs(before)};
      });
      EXPECT_TRUE(y.guards_hold());
    }
  }
}

TEST_F(DenseOnDevice, WeightAndInputGradientsAreTheirProducts) {
  weir::cuda::CublasHandle blas;
  for (const DenseShape shape : kProducts) {
    SCOPED_TRACE(describe(shape, 0));
    const std::vector<float> x = random(shape.m * shape.k);
    const std::vector<float> w = random(shape.k * shape.n);
    const std::vector<float> dy = random(shape.m * shape.n);
    DeviceArray<float> dw(w.size());
    DeviceArray<float> dx(x.size());
    weir::cuda::dense_weight_gradient(blas, stream(), shape, DeviceArray<float>(x).view(),
                                      DeviceArray<float>(dy).view(), dw.span(), workspace());
    weir::cuda::dense_input_gradient(blas, stream(), shape, DeviceArray<float>(dy).view(),
                                     DeviceArray<float>(w).view(), dx.span(), workspace());
    expect_within(dw.values(), [&](std::size_t i) {
      return weir::reference::dot({x, shape.k, true}, {dy, shape.n}, i / shape.n, i % shape.n,
                                  shape.m);
    });
    expect_within(dx.values(), [&](std::size_t i) {
      return weir::reference::dot({dy, shape.n}, {w, shape.n, true}, i / shape.k, i % shape.k,
                                  shape.n);
    });
    EXPECT_TRUE(dw.guards_hold());
    EXPECT_TRUE(dx.guards_hold());
  }
}

TEST_F(DenseOnDevice, BiasAndActivationAreOneRoundedSumAndAComparison) {
  for (const DenseShape shape : kMatrices) {
    for (const std::size_t offset : {0U, 1U}) {
      for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
        SCOPED_TRACE(describe(shape, offset));
        const std::vector<float> b = random(shape.n);
        const std::vector<float> before = random(shape.m * shape.n);
        DeviceArray<float> y(before, offset);
        const DeviceArray<float> device_b(b, offset);
        weir::cuda::bias_activation(stream(), shape, device_b.view(), y.span(), activation);
        const std::vector<float> found = y.values();
        std::vector<float> expected(before.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const double sum = static_cast<double>(before[i]) + static_cast<double>(b[i % shape.n]);
          const bool cut = activation == Activation::kRelu && sum < 0;
          expected[i] = cut ? 0.0F : weir::reference::rounded(sum);
        }
        expect_same_bits(found, expected);
        EXPECT_TRUE(y.guards_hold());
      }
    }
  }
}

TEST_F(DenseOnDevice, TheActivationKeepsNan) {
  const DenseShape shape{.m = 1, .k = 1, .n = 4};
  DeviceArray<float> y(std::vector<float>{weir::reference::kNan, -1, 1, -0.0F});
  const DeviceArray<float> b(std::vector<float>(4, 0.0F));
  weir::cuda::bias_activation(stream(), shape, b.view(), y.span(), Activation::kRelu);
  const std::vector<float> found = y.values();
  EXPECT_TRUE(std::isnan(found[0]));
  EXPECT_EQ(found[1], 0.0F);
  EXPECT_EQ(found[2], 1.0F);
}

TEST_F(DenseOnDevice, ReluBackwardHasTheCpusBits) {
  for (const weir::testing::Extent extent : weir::testing::extents()) {
    SCOPED_TRACE(weir::testing::describe(extent));
    std::vector<float> y = random(extent.size);
    for (std::size_t i = 0; i < y.size(); i += 3) y[i] = i % 2 == 0 ? 0.0F : -0.0F;
    std::vector<float> expected = random(extent.size);
    DeviceArray<float> dy(expected, extent.offset);
    weir::cuda::relu_backward(stream(), DeviceArray<float>(y, extent.offset).view(), dy.span());
    const std::vector<float> before = expected;
    weir::relu_backward(y, expected);
    const std::vector<float> found = dy.values();
    expect_same_bits(found, expected);
    expect_within(found, [&](std::size_t i) {
      return Bounded{y[i] > 0.0F ? static_cast<double>(before[i]) : 0.0, 0.0};
    });
    EXPECT_TRUE(dy.guards_hold());
  }
}

void DenseOnDevice::expect_bias_gradient(DenseShape shape, std::size_t offset) {
  SCOPED_TRACE(describe(shape, offset));
  const std::vector<float> y = random(shape.m * shape.n);
  std::vector<float> dy = random(shape.m * shape.n);
  const DeviceArray<float> device_y(y, offset);
  DeviceArray<float> device_dy(dy, offset);
  DeviceArray<float> plain_db(shape.n, offset);
  DeviceArray<float> masked_db(shape.n, offset);
  weir::cuda::dense_bias_gradient(stream(), shape, device_dy.view(), plain_db.span(), workspace());
  expect_same_bits(device_dy.values(), dy);
  std::vector<float> expected(shape.n);
  weir::dense_bias_gradient(shape, dy, expected);
  expect_same_bits(plain_db.values(), expected);
  const double roundings = 32.0 + static_cast<double>(shape.m) / 32.0;
  std::vector<Bounded> exact(shape.n);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const auto value = static_cast<double>(dy[i]);
    exact[i % shape.n].value += value;
    exact[i % shape.n].error += 1.01 * kUnitRoundoff * roundings * std::abs(value);
  }
  expect_within(plain_db.values(), [&](std::size_t c) { return exact[c]; });

  weir::cuda::relu_and_bias_gradient(stream(), shape, device_y.view(), device_dy.span(),
                                     masked_db.span(), workspace());
  weir::relu_and_bias_gradient(shape, y, dy, expected);
  expect_same_bits(device_dy.values(), dy);
  expect_same_bits(masked_db.values(), expected);
  EXPECT_TRUE(device_dy.guards_hold());
  EXPECT_TRUE(plain_db.guards_hold());
  EXPECT_TRUE(masked_db.guards_hold());
}

TEST_F(DenseOnDevice, BiasGradientsHaveTheCpusBitsAndErrWithinTheirBound) {
  for (const DenseShape shape : kMatrices) {
    expect_bias_gradient(shape, 0);
    expect_bias_gradient(shape, 1);
  }
}

TEST_F(DenseOnDevice, BiasGradientsOfMoreThanFitsAtOnceHaveTheSameBits) {
  expect_bias_gradient({.m = 1, .k = 1, .n = (1U << 20U) + 5}, 0);  // two pieces of columns
  expect_bias_gradient({.m = 8192 + 33, .k = 1, .n = 4100}, 0);     // two of each
}

TEST_F(DenseOnDevice, BadSizesAreRefusedAndNothingChanges) {
  weir::cuda::CublasHandle blas;
  const DenseShape shape{.m = 2, .k = 3, .n = 4};
  const DeviceArray<float> x(random(6));
  const DeviceArray<float> w(random(12));
  const DeviceArray<float> b(random(4));
  const DeviceArray<float> y(random(8));
  const std::vector<float> before = random(12);
  DeviceArray<float> out(before);
  const auto off = y.view().first(5);
  const auto eight = out.span().first(8);
  const auto four = out.span().first(4);
  const auto six = out.span().first(6);
  const auto small = workspace().first(100);
  using weir::UsageError;
  namespace gpu = weir::cuda;
  const auto forward = [&](auto x_in, auto w_in, auto b_in, auto y_out, auto scratch) {
    EXPECT_THROW(gpu::dense_forward(blas, stream(), shape, x_in, w_in, b_in, y_out,
                                    Activation::kRelu, scratch),
                 UsageError);
  };
  forward(off, w.view(), b.view(), eight, workspace());
  forward(x.view(), off, b.view(), eight, workspace());
  forward(x.view(), w.view(), off, eight, workspace());
  forward(x.view(), w.view(), b.view(), six, workspace());
  forward(x.view(), w.view(), b.view(), eight, small);
  const auto weight = [&](auto x_in, auto dy, auto dw, auto scratch) {
    EXPECT_THROW(gpu::dense_weight_gradient(blas, stream(), shape, x_in, dy, dw, scratch),
                 UsageError);
  };
  weight(off, y.view(), out.span(), workspace());
  weight(x.view(), off, out.span(), workspace());
  weight(x.view(), y.view(), eight, workspace());
  weight(x.view(), y.view(), out.span(), small);
  const auto input = [&](auto dy, auto w_in, auto dx, auto scratch) {
    EXPECT_THROW(gpu::dense_input_gradient(blas, stream(), shape, dy, w_in, dx, scratch),
                 UsageError);
  };
  input(off, w.view(), six, workspace());
  input(y.view(), off, six, workspace());
  input(y.view(), w.view(), eight, workspace());
  input(y.view(), w.view(), six, small);
  const auto bias = [&](auto dy, auto db, auto scratch) {
    EXPECT_THROW(gpu::dense_bias_gradient(stream(), shape, dy, db, scratch), UsageError);
  };
  bias(off, four, workspace());
  bias(y.view(), six, workspace());
  bias(y.view(), four, small);
  const auto fused = [&](auto y_in, auto dy, auto db, auto scratch) {
    EXPECT_THROW(gpu::relu_and_bias_gradient(stream(), shape, y_in, dy, db, scratch), UsageError);
  };
  fused(off, eight, four, workspace());
  fused(y.view(), six, four, workspace());
  fused(y.view(), eight, six, workspace());
  fused(y.view(), eight, four, small);
  const auto activation = [&](auto b_in, auto y_out) {
    EXPECT_THROW(gpu::bias_activation(stream(), shape, b_in, y_out, Activation::kNone), UsageError);
  };
  activation(off, eight);
  activation(b.view(), six);
  EXPECT_THROW(gpu::relu_backward(stream(), off, eight), UsageError);
  expect_same_bits(out.values(), before);
}

}  // namespace
