#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "tests/kernels/mixed_reference.hpp"

namespace {

using weir::Activation;
using weir::DenseShape;
using weir::HalfKind;
using weir::Precision;
using weir::Transpose;
using weir::reference::kEachHalfKind;
using weir::reference::random_numbers;
using weir::reference::unwritten;
using weir::reference::words_of;

constexpr std::array<DenseShape, 4> kMixedLayers{{{1, 1, 1}, {3, 5, 7}, {33, 64, 65}, {4, 600, 9}}};

/// What a layer's functions must give: the products of blas_mixed.hpp, tested there.
struct MixedLayer {
  explicit MixedLayer(DenseShape of)
      : shape(of),
        x(random_numbers(shape.m * shape.k, 1)),
        w(random_numbers(shape.k * shape.n, 2)),
        b(random_numbers(shape.n, 3)),
        dy(random_numbers(shape.m * shape.n, 4)),
        y(unwritten(dy.size())),
        dw(unwritten(w.size())),
        dx(unwritten(x.size())) {}

  template <typename How, typename T>
  void expect_products(How how, const T& x_factor, const T& w_factor, const T& dy_factor) const {
    std::vector<float> product = unwritten(y.size());
    weir::gemm(how, {.m = shape.m, .n = shape.n, .k = shape.k}, x_factor, w_factor, product);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float sum = product[i] + b[i % shape.n];
      ASSERT_EQ(y[i], sum < 0 ? 0.0F : sum) << i;
    }
    std::vector<float> expected_dw = unwritten(w.size());
    weir::gemm(how, {.m = shape.k, .n = shape.n, .k = shape.m}, x_factor, dy_factor, expected_dw,
               {.a = Transpose::kYes});
    EXPECT_EQ(dw, expected_dw);
    std::vector<float> expected_dx = unwritten(x.size());
    weir::gemm(how, {.m = shape.m, .n = shape.k, .k = shape.n}, dy_factor, w_factor, expected_dx,
               {.b = Transpose::kYes});
    EXPECT_EQ(dx, expected_dx);
  }

  DenseShape shape;
  std::vector<float> x;
  std::vector<float> w;
  std::vector<float> b;
  std::vector<float> dy;
  std::vector<float> y;
  std::vector<float> dw;
  std::vector<float> dx;
};

TEST(MixedDense, LayersOfFloatsAreTheirProductsInTheirPrecision) {
  for (const DenseShape shape : kMixedLayers) {
    for (const Precision precision : {Precision::kFloat32, Precision::kTf32}) {
      MixedLayer layer(shape);
      dense_forward(precision, shape, layer.x, layer.w, layer.b, layer.y, Activation::kRelu);
      dense_weight_gradient(precision, shape, layer.x, layer.dy, layer.dw);
      dense_input_gradient(precision, shape, layer.dy, layer.w, layer.dx);
      layer.expect_products(precision, layer.x, layer.w, layer.dy);
    }
  }
}

TEST(MixedDense, LayersOfWordsAreTheirProducts) {
  for (const DenseShape shape : kMixedLayers) {
    for (const HalfKind kind : kEachHalfKind) {
      MixedLayer layer(shape);
      const auto x = words_of(layer.x, kind);
      const auto w = words_of(layer.w, kind);
      const auto dy = words_of(layer.dy, kind);
      dense_forward(kind, shape, x, w, layer.b, layer.y, Activation::kRelu);
      dense_weight_gradient(kind, shape, x, dy, layer.dw);
      dense_input_gradient(kind, shape, dy, w, layer.dx);
      layer.expect_products(kind, x, w, dy);
    }
  }
}

TEST(MixedDense, RefusesSizesThatDoNotFitAndLeavesTheOutputAlone) {
  const DenseShape shape{.m = 2, .k = 3, .n = 2};
  const std::vector<std::uint16_t> six(6, 0x3C00U);
  const std::vector<std::uint16_t> four(4, 0x3C00U);
  const std::vector<float> b(3, 1.0F);
  std::vector<float> out(4, 42.0F);
  EXPECT_THROW(dense_forward(HalfKind::kFp16, shape, six, six, b, out, Activation::kNone),
               weir::UsageError);
  EXPECT_THROW(dense_weight_gradient(HalfKind::kFp16, shape, six, four, out), weir::UsageError);
  EXPECT_THROW(dense_input_gradient(HalfKind::kFp16, shape, four, six, out), weir::UsageError);
  EXPECT_EQ(out, std::vector<float>(4, 42.0F));
}

}  // namespace
