#include <array>

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"

namespace {

using weir::GemmOptions;
using weir::GemmShape;
using weir::Transpose;
using weir::UsageError;
using weir::cuda::CublasHandle;
using weir::reference::Bounded;
using weir::reference::kUnitRoundoff;
using weir::reference::Matrix;
using weir::testing::DeviceArray;
using weir::testing::expect_same_bits;
using weir::testing::expect_within;

constexpr std::array<GemmShape, 7> kGemmShapes{
    {{1, 1, 1}, {1, 7, 3}, {5, 1, 9}, {17, 13, 31}, {64, 64, 64}, {65, 127, 33}, {129, 67, 511}}};

class GemmOnDevice : public weir::testing::GpuTest {
 protected:
  void expect_product(GemmShape shape, GemmOptions options, std::size_t offset = 0) {
    SCOPED_TRACE(std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " +
                 std::to_string(shape.k));
    const std::vector<float> a = random(shape.m * shape.k);
    const std::vector<float> b = random(shape.k * shape.n);
    const std::vector<float> before = random(shape.m * shape.n);
    const DeviceArray<float> device_a(a, offset);
    const DeviceArray<float> device_b(b, offset);
    // With beta = 0 the old value must not matter: it is a NaN.
    DeviceArray<float> c(
        options.beta == 0 ? std::vector<float>(before.size(), weir::reference::kNan) : before,
        offset);
    gemm(blas_, stream(), shape, device_a.view(), device_b.view(), c.span(), options, workspace());
    const bool a_turned = options.a == Transpose::kYes;
    const bool b_turned = options.b == Transpose::kYes;
    const Matrix left{a, a_turned ? shape.m : shape.k, a_turned};
    const Matrix right{b, b_turned ? shape.k : shape.n, b_turned};
    const auto alpha = static_cast<double>(options.alpha);
    expect_within(c.values(), [&](std::size_t i) {
      const Bounded product = weir::reference::dot(left, right, i / shape.n, i % shape.n, shape.k);
      const double old = static_cast<double>(options.beta) * static_cast<double>(before[i]);
      return Bounded{alpha * product.value + old,
                     std::abs(alpha) * product.error +
                         4 * kUnitRoundoff * (std::abs(alpha * product.value) + std::abs(old))};
    });
    EXPECT_TRUE(c.guards_hold());
  }

  CublasHandle blas_;
};

TEST_F(GemmOnDevice, MultipliesForEveryTransposition) {
  for (const GemmShape shape : kGemmShapes) {
    for (const Transpose a : {Transpose::kNo, Transpose::kYes}) {
      for (const Transpose b : {Transpose::kNo, Transpose::kYes}) {
        expect_product(shape, {.a = a, .b = b});
        expect_product(shape, {.a = a, .b = b}, 1);
      }
    }
  }
}

TEST_F(GemmOnDevice, ScalesTheProductByAlphaAndWhatWasThereByBeta) {
  for (const GemmShape shape : kGemmShapes) {
    expect_product(shape, {.alpha = -0.75F});
    expect_product(shape, {.beta = 1.0F});
    expect_product(shape, {.alpha = 2.5F, .beta = -0.5F});
  }
}

TEST_F(GemmOnDevice, OfSumsOfNothingIsWhatWasThereTimesBeta) {
  for (const float beta : {0.0F, 1.0F, -0.5F}) {
    expect_product({.m = 2, .n = 3, .k = 0}, {.beta = beta});
  }
}

TEST_F(GemmOnDevice, TakesEmptyResults) {
  const DeviceArray<float> b(random(12));
  DeviceArray<float> c(0);
  gemm(blas_, stream(), {.m = 0, .n = 3, .k = 4}, {}, b.view(), c.span(), {}, workspace());
  gemm(blas_, stream(), {.m = 3, .n = 0, .k = 4}, b.view(), {}, c.span(), {}, workspace());
  EXPECT_TRUE(c.guards_hold());
}

TEST_F(GemmOnDevice, GivesTheSameBitsEachTimeAndByAnotherHandle) {
  const GemmShape shape{.m = 129, .n = 67, .k = 511};
  const DeviceArray<float> a(random(shape.m * shape.k));
  const DeviceArray<float> b(random(shape.k * shape.n));
  DeviceArray<float> first(shape.m * shape.n);
  gemm(blas_, stream(), shape, a.view(), b.view(), first.span(), {}, workspace());
  CublasHandle other;
  for (int i = 0; i < 4; ++i) {
    DeviceArray<float> again(shape.m * shape.n);
    gemm(i % 2 == 0 ? blas_ : other, stream(), shape, a.view(), b.view(), again.span(), {},
         workspace());
    expect_same_bits(again.values(), first.values());
  }
}

TEST_F(GemmOnDevice, SizesThatDoNotFitAreRefusedAndNothingChanges) {
  const DeviceArray<float> six(random(6));
  DeviceArray<float> c(4);
  const GemmShape shape{.m = 2, .n = 2, .k = 3};
  const auto refused = [&](GemmShape of, auto a, auto b, auto out, auto scratch) {
    EXPECT_THROW(gemm(blas_, stream(), of, a, b, out, {}, scratch), UsageError);
  };
  const auto all = six.view();
  refused(shape, all.first(5), all, c.span(), workspace());
  refused(shape, all, all.first(5), c.span(), workspace());
  refused(shape, all, all, c.span().first(3), workspace());
  refused(shape, all, all, c.span(), workspace().first(1000));
  const std::size_t large = std::size_t{1} << 31U;
  refused({.m = large, .n = 0, .k = 0}, all.first(0), all.first(0), c.span().first(0), workspace());
  refused({.m = 0, .n = large, .k = 0}, all.first(0), all.first(0), c.span().first(0), workspace());
  refused({.m = 0, .n = 0, .k = large}, all.first(0), all.first(0), c.span().first(0), workspace());
  for (const float value : c.values()) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
