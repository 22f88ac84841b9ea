#include "kernels/blas/blas.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "support/sanitized.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::gemm;
using weir::GemmOptions;
using weir::GemmShape;
using weir::Transpose;
using weir::reference::Bounded;
using weir::reference::kUnitRoundoff;
using weir::reference::Matrix;
using weir::reference::random_numbers;
using weir::reference::unwritten;

constexpr std::array<GemmShape, 7> kGemmShapes{
    {{1, 1, 1}, {1, 7, 3}, {5, 1, 9}, {17, 13, 31}, {64, 64, 64}, {65, 127, 33}, {129, 67, 511}}};

void expect_product(GemmShape shape, GemmOptions options) {
  const std::vector<float> a = random_numbers(shape.m * shape.k, 1);
  const std::vector<float> b = random_numbers(shape.k * shape.n, 2);
  const std::vector<float> before = random_numbers(shape.m * shape.n, 3);
  std::vector<float> c = options.beta == 0 ? unwritten(before.size()) : before;
  gemm(shape, a, b, c, options);
  const bool a_turned = options.a == Transpose::kYes;
  const bool b_turned = options.b == Transpose::kYes;
  const Matrix left{a, a_turned ? shape.m : shape.k, a_turned};
  const Matrix right{b, b_turned ? shape.k : shape.n, b_turned};
  const auto alpha = static_cast<double>(options.alpha);
  const auto beta = static_cast<double>(options.beta);
  for (std::size_t i = 0; i < c.size(); ++i) {
    const Bounded product = weir::reference::dot(left, right, i / shape.n, i % shape.n, shape.k);
    const double old = beta * static_cast<double>(before[i]);
    const double expected = alpha * product.value + old;
    const double bound = std::abs(alpha) * product.error +
                         4 * kUnitRoundoff * (std::abs(alpha * product.value) + std::abs(old));
    ASSERT_NEAR(c[i], expected, bound)
        << shape.m << "x" << shape.n << "x" << shape.k << " at " << i;
  }
}

TEST(Gemm, MultipliesForEveryTransposition) {
  for (const GemmShape shape : kGemmShapes) {
    for (const Transpose a : {Transpose::kNo, Transpose::kYes}) {
      for (const Transpose b : {Transpose::kNo, Transpose::kYes}) {
        expect_product(shape, {.a = a, .b = b});
      }
    }
  }
}

TEST(Gemm, ScalesTheProductByAlphaAndWhatWasThereByBeta) {
  for (const GemmShape shape : kGemmShapes) {
    expect_product(shape, {.alpha = -0.75F});
    expect_product(shape, {.beta = 1.0F});
    expect_product(shape, {.alpha = 2.5F, .beta = -0.5F});
  }
}

TEST(Gemm, GivesZerosForSumsOfNothing) {
  std::vector<float> c = unwritten(6);
  gemm({.m = 2, .n = 3, .k = 0}, {}, {}, c);
  EXPECT_EQ(c, std::vector<float>(6, 0.0F));
}

TEST(Gemm, TakesEmptyResults) {
  const std::vector<float> b(12, 1.0F);
  EXPECT_NO_THROW(gemm({.m = 0, .n = 3, .k = 4}, {}, b, {}));
  EXPECT_NO_THROW(gemm({.m = 3, .n = 0, .k = 4}, b, {}, {}));
}

TEST(Gemm, RefusesSizesThatDoNotFitAndLeavesTheResultAlone) {
  const std::vector<float> six(6, 1.0F);
  std::vector<float> c(4, 42.0F);
  const GemmShape shape{.m = 2, .n = 2, .k = 3};
  EXPECT_THROW(gemm(shape, std::span(six).first(5), six, c), weir::UsageError);
  EXPECT_THROW(gemm(shape, six, std::span(six).first(5), c), weir::UsageError);
  EXPECT_THROW(gemm(shape, six, six, std::span(c).first(3)), weir::UsageError);
  EXPECT_EQ(c, std::vector<float>(4, 42.0F));
}

TEST(Gemm, RefusesDimensionsThatOverflow) {
  const std::size_t half = std::size_t{1} << 32U;
  EXPECT_THROW(gemm({.m = half, .n = 0, .k = half}, {}, {}, {}), weir::UsageError);
  EXPECT_THROW(gemm({.m = half, .n = 0, .k = 0}, {}, {}, {}), weir::UsageError);
}

TEST(Gemm, NamesTheMatrixThatDoesNotFit) {
  std::vector<float> c(4);
  try {
    gemm({.m = 2, .n = 2, .k = 1}, std::vector<float>(2), std::vector<float>(3), c);
    FAIL() << "no error";
  } catch (const weir::UsageError& error) {
    EXPECT_STREQ(error.what(), "gemm: b has 3 elements, expected 1 x 2");
  }
}

class BlasThreads : public testing::Test {
 protected:
  void TearDown() override { weir::set_blas_threads(before_); }

 private:
  int before_ = weir::blas_threads();
};

#if WEIR_TEST_SANITIZED == 0  // a sanitizer needs address space of its own
TEST(BlasMemory, IsReservedOnceAndLaterCallsNeedNone) {
  weir::reserve_blas_memory();
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  ASSERT_NE(pages, 0U);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit full{pages * static_cast<std::size_t>(getpagesize()) + weir::mib(32).count,
                    before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &full), 0);
  EXPECT_NO_THROW(weir::reserve_blas_memory());
  EXPECT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}
#endif

TEST_F(BlasThreads, AreAsManyAsWereSet) {
  weir::set_blas_threads(2);
  EXPECT_EQ(weir::blas_threads(), 2);
  weir::set_blas_threads(1);
  EXPECT_EQ(weir::blas_threads(), 1);
}

TEST_F(BlasThreads, BelowOneAreRefused) {
  weir::set_blas_threads(1);
  EXPECT_THROW(weir::set_blas_threads(0), weir::UsageError);
  EXPECT_THROW(weir::set_blas_threads(-1), weir::UsageError);
  EXPECT_EQ(weir::blas_threads(), 1);
}

TEST_F(BlasThreads, OneGivesTheSameBitsEachTimeAndAtEachAlignment) {
  weir::set_blas_threads(1);
  const GemmShape shape{.m = 129, .n = 67, .k = 511};
  const std::vector<float> a = random_numbers(shape.m * shape.k, 1);
  const std::vector<float> b = random_numbers(shape.k * shape.n, 2);
  std::vector<float> first = unwritten(shape.m * shape.n);
  gemm(shape, a, b, first);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    std::vector<float> moved(offset, 0.0F);
    moved.insert(moved.end(), a.begin(), a.end());
    std::vector<float> again = unwritten(first.size());
    gemm(shape, std::span<const float>(moved).subspan(offset), b, again);
    EXPECT_EQ(again, first) << offset;
  }
}

}  // namespace
