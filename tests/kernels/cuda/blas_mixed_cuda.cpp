#include <array>
#include <limits>

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"
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
using weir::cuda::CublasHandle;
using weir::reference::as_word;
using weir::reference::Bounded;
using weir::reference::floats_of;
using weir::reference::kEachHalfKind;
using weir::reference::Product;
using weir::reference::words_of;
using weir::testing::DeviceArray;
using weir::testing::expect_same_bits;
using weir::testing::expect_within;

using Words = std::vector<std::uint16_t>;

/// A device's sums may err by so many times what the CPU's may: see blas_mixed_cuda.hpp.
constexpr double kOfTensorCores = 4;

constexpr std::array<GemmShape, 8> kMixedGemms{{{1, 1, 1},
                                                {1, 7, 3},
                                                {5, 1, 9},
                                                {17, 13, 31},
                                                {64, 64, 64},
                                                {128, 72, 40},
                                                {3, 4, 0},
                                                {65, 67, 130}}};
constexpr std::array<GemmOptions, 5> kMixedWays{{
    {},
    {.a = Transpose::kYes},
    {.b = Transpose::kYes},
    {.a = Transpose::kYes, .b = Transpose::kYes, .alpha = -0.75F},
    {.alpha = 2.5F, .beta = -0.5F},
}};

class MixedOnDevice : public weir::testing::GpuTest {
 protected:
  template <typename Test>
  void for_each_product(const Test& test) {
    for (const GemmShape shape : kMixedGemms) {
      for (const GemmOptions options : kMixedWays) {
        for (const std::size_t offset : {0U, 1U}) {
          SCOPED_TRACE(std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " +
                       std::to_string(shape.k) + " at offset " + std::to_string(offset));
          const std::vector<float> a = random(shape.m * shape.k);
          const std::vector<float> b = random(shape.k * shape.n);
          // With beta = 0 the old value must not matter: it is a NaN.
          const std::vector<float> before =
              options.beta == 0 ? std::vector<float>(shape.m * shape.n, weir::reference::kNan)
                                : random(shape.m * shape.n);
          test(Product{shape, options, a, b, before, kOfTensorCores}, offset);
        }
      }
    }
  }

  CublasHandle blas_;
};

TEST_F(MixedOnDevice, ProductsOfWordsAreAddedUpInFloat) {
  for_each_product([&](const Product& in, std::size_t offset) {
    for (const HalfKind kind : kEachHalfKind) {
      const Words a = words_of(in.a, kind);
      const Words b = words_of(in.b, kind);
      const DeviceArray<std::uint16_t> device_a(a, offset);
      const DeviceArray<std::uint16_t> device_b(b, offset);
      DeviceArray<float> c(in.before, offset);
      gemm(blas_, stream(), kind, in.shape, device_a.view(), device_b.view(), c.span(), in.options,
           workspace());
      const std::vector<float> wide_a = floats_of(a, kind);
      const std::vector<float> wide_b = floats_of(b, kind);
      const Product exact{in.shape, in.options, wide_a, wide_b, in.before, kOfTensorCores};
      expect_within(c.values(), [&](std::size_t i) { return exact.at(i); });
      EXPECT_TRUE(c.guards_hold());
    }
  });
}

TEST_F(MixedOnDevice, AResultOfWordsIsTheSumRoundedOnce) {
  for_each_product([&](const Product& in, std::size_t offset) {
    GemmOptions options = in.options;
    options.beta = 0;
    for (const HalfKind kind : kEachHalfKind) {
      const Words a = words_of(in.a, kind);
      const Words b = words_of(in.b, kind);
      const DeviceArray<std::uint16_t> device_a(a, offset);
      const DeviceArray<std::uint16_t> device_b(b, offset);
      DeviceArray<std::uint16_t> c(Words(in.before.size(), 0x7FFFU), offset);
      gemm(blas_, stream(), kind, in.shape, device_a.view(), device_b.view(), c.span(), options,
           workspace());
      const std::vector<float> wide_a = floats_of(a, kind);
      const std::vector<float> wide_b = floats_of(b, kind);
      const Product exact{in.shape, options, wide_a, wide_b, in.before, kOfTensorCores};
      expect_within(floats_of(c.values(), kind),
                    [&](std::size_t i) { return as_word(exact.at(i), kind); });
      EXPECT_TRUE(c.guards_hold());
    }
  });
}

TEST_F(MixedOnDevice, Tf32KeepsAtLeastTenBitsOfEachFactor) {
  for_each_product([&](const Product& in, std::size_t offset) {
    const DeviceArray<float> a(in.a, offset);
    const DeviceArray<float> b(in.b, offset);
    DeviceArray<float> c(in.before, offset);
    gemm(blas_, stream(), Precision::kTf32, in.shape, a.view(), b.view(), c.span(), in.options,
         workspace());
    expect_within(c.values(), [&](std::size_t i) {
      Bounded exact = in.at(i);
      exact.error += (2 * 0x1p-10 + 0x1p-20) * in.sizes_at(i);
      return exact;
    });
    EXPECT_TRUE(c.guards_hold());
  });
}

TEST_F(MixedOnDevice, Float32HasTheBitsOfGemm) {
  const GemmShape shape{.m = 129, .n = 67, .k = 511};
  const DeviceArray<float> a(random(shape.m * shape.k));
  const DeviceArray<float> b(random(shape.k * shape.n));
  DeviceArray<float> expected(shape.m * shape.n);
  DeviceArray<float> c(shape.m * shape.n);
  gemm(blas_, stream(), shape, a.view(), b.view(), expected.span(), {}, workspace());
  // A product in another precision before it must leave the handle as it was.
  gemm(blas_, stream(), Precision::kTf32, shape, a.view(), b.view(), c.span(), {}, workspace());
  gemm(blas_, stream(), Precision::kFloat32, shape, a.view(), b.view(), c.span(), {}, workspace());
  expect_same_bits(c.values(), expected.values());
}

TEST_F(MixedOnDevice, GivesTheSameBitsEachTime) {
  const GemmShape shape{.m = 128, .n = 512, .k = 1000};
  const DeviceArray<std::uint16_t> a(words_of(random(shape.m * shape.k), HalfKind::kBf16));
  const DeviceArray<std::uint16_t> b(words_of(random(shape.k * shape.n), HalfKind::kBf16));
  DeviceArray<float> first(shape.m * shape.n);
  DeviceArray<float> again(shape.m * shape.n);
  for (DeviceArray<float>* c : {&first, &again}) {
    gemm(blas_, stream(), HalfKind::kBf16, shape, a.view(), b.view(), c->span(), {}, workspace());
  }
  expect_same_bits(again.values(), first.values());
}

TEST_F(MixedOnDevice, Fp16GivesInfinitiesInWordsAndNotInFloats) {
  const DeviceArray<std::uint16_t> a(words_of({256, -256}, HalfKind::kFp16));
  const DeviceArray<std::uint16_t> b(words_of({256, 1}, HalfKind::kFp16));
  const GemmShape shape{.m = 2, .n = 2, .k = 1};
  DeviceArray<std::uint16_t> words(4);
  DeviceArray<float> floats(4);
  gemm(blas_, stream(), HalfKind::kFp16, shape, a.view(), b.view(), words.span(), {}, workspace());
  gemm(blas_, stream(), HalfKind::kFp16, shape, a.view(), b.view(), floats.span(), {}, workspace());
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(words.values(), words_of({infinity, 256, -infinity, -256}, HalfKind::kFp16));
  EXPECT_EQ(floats.values(), (std::vector<float>{65536, 256, -65536, -256}));
}

TEST_F(MixedOnDevice, KeepsInfinitiesNansAndTheSmallestNumbers) {
  for (const HalfKind kind : kEachHalfKind) {
    const bool bf16 = kind == HalfKind::kBf16;
    const Words special{static_cast<std::uint16_t>(bf16 ? 0x7F80U : 0x7C00U), 0x7FFFU, 0x0001U};
    const DeviceArray<std::uint16_t> a(special);
    const DeviceArray<std::uint16_t> one(words_of({1}, kind));
    DeviceArray<float> c(3);
    gemm(blas_, stream(), kind, {.m = 3, .n = 1, .k = 1}, a.view(), one.view(), c.span(), {},
         workspace());
    const std::vector<float> found = c.values();
    EXPECT_EQ(found[0], std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(found[1]));
    // A product that is subnormal in float may be taken for zero (unverified).
    if (!bf16) {
      EXPECT_EQ(found[2], 0x1p-24F);
    }
  }
}

TEST_F(MixedOnDevice, WhatDoesNotFitIsRefusedAndNothingChanges) {
  const DeviceArray<std::uint16_t> six(Words(6, 0x3C00U));
  const DeviceArray<float> floats(random(6));
  DeviceArray<float> c(std::vector<float>(4, 42.0F));
  DeviceArray<std::uint16_t> words(Words(4, 42));
  const GemmShape shape{.m = 2, .n = 2, .k = 3};
  const auto refused = [&](auto how, auto a, auto b, auto out, GemmOptions options, auto scratch) {
    EXPECT_THROW(gemm(blas_, stream(), how, shape, a, b, out, options, scratch), UsageError);
  };
  const auto fp16 = HalfKind::kFp16;
  refused(fp16, six.view().first(5), six.view(), c.span(), {}, workspace());
  refused(fp16, six.view(), six.view().first(5), c.span(), {}, workspace());
  refused(fp16, six.view(), six.view(), c.span().first(3), {}, workspace());
  refused(fp16, six.view(), six.view(), c.span(), {}, workspace().first(1000));
  refused(fp16, six.view(), six.view(), words.span(), {.beta = 1}, workspace());
  refused(Precision::kTf32, floats.view().first(5), floats.view(), c.span(), {}, workspace());
  refused(Precision::kBf16, floats.view(), floats.view(), c.span(), {}, workspace());
  EXPECT_EQ(c.values(), std::vector<float>(4, 42.0F));
  EXPECT_EQ(words.values(), Words(4, 42));
}

/// A layer's functions are the products and the pass for the bias, tested elsewhere.
class MixedDenseOnDevice : public MixedOnDevice {
 protected:
  template <typename How, typename T>
  void expect_layer(How how, DenseShape shape, std::span<const T> x, std::span<const T> w,
                    std::span<const T> dy) {
    const std::vector<float> bias = random(shape.n);
    const DeviceArray<float> b(bias);
    DeviceArray<float> y(shape.m * shape.n);
    DeviceArray<float> dw(shape.k * shape.n);
    DeviceArray<float> dx(shape.m * shape.k);
    weir::cuda::dense_forward(blas_, stream(), how, shape, x, w, b.view(), y.span(),
                              Activation::kRelu, workspace());
    weir::cuda::dense_weight_gradient(blas_, stream(), how, shape, x, dy, dw.span(), workspace());
    weir::cuda::dense_input_gradient(blas_, stream(), how, shape, dy, w, dx.span(), workspace());

    DeviceArray<float> expected(shape.m * shape.n);
    gemm(blas_, stream(), how, {.m = shape.m, .n = shape.n, .k = shape.k}, x, w, expected.span(),
         {}, workspace());
    weir::cuda::bias_activation(stream(), shape, b.view(), expected.span(), Activation::kRelu);
    expect_same_bits(y.values(), expected.values());
    DeviceArray<float> expected_dw(shape.k * shape.n);
    gemm(blas_, stream(), how, {.m = shape.k, .n = shape.n, .k = shape.m}, x, dy,
         expected_dw.span(), {.a = Transpose::kYes}, workspace());
    expect_same_bits(dw.values(), expected_dw.values());
    DeviceArray<float> expected_dx(shape.m * shape.k);
    gemm(blas_, stream(), how, {.m = shape.m, .n = shape.k, .k = shape.n}, dy, w,
         expected_dx.span(), {.b = Transpose::kYes}, workspace());
    expect_same_bits(dx.values(), expected_dx.values());
  }
};

TEST_F(MixedDenseOnDevice, LayersAreTheirProducts) {
  for (const DenseShape shape :
       {DenseShape{1, 1, 1}, DenseShape{3, 5, 7}, DenseShape{33, 64, 68}}) {
    const std::vector<float> x = random(shape.m * shape.k);
    const std::vector<float> w = random(shape.k * shape.n);
    const std::vector<float> dy = random(shape.m * shape.n);
    const DeviceArray<float> device_x(x);
    const DeviceArray<float> device_w(w);
    const DeviceArray<float> device_dy(dy);
    for (const Precision precision : {Precision::kFloat32, Precision::kTf32}) {
      expect_layer(precision, shape, device_x.view(), device_w.view(), device_dy.view());
    }
    for (const HalfKind kind : kEachHalfKind) {
      const DeviceArray<std::uint16_t> half_x(words_of(x, kind));
      const DeviceArray<std::uint16_t> half_w(words_of(w, kind));
      const DeviceArray<std::uint16_t> half_dy(words_of(dy, kind));
      expect_layer(kind, shape, half_x.view(), half_w.view(), half_dy.view());
    }
  }
}

}  // namespace
