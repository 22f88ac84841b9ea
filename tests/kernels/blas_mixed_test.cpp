#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "tests/kernels/mixed_reference.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::gemm;
using weir::GemmOptions;
using weir::GemmShape;
using weir::HalfKind;
using weir::Precision;
using weir::Transpose;
using weir::reference::Bounded;
using weir::reference::floats_of;
using weir::reference::kEachHalfKind;
using weir::reference::Product;
using weir::reference::random_numbers;
using weir::reference::tf32_of;
using weir::reference::unwritten;
using weir::reference::words_of;

using Words = std::vector<std::uint16_t>;

/// The last three go beyond a tile of 512 in one dimension each.
constexpr std::array<GemmShape, 8> kMixedShapes{{{1, 1, 1},
                                                 {1, 7, 3},
                                                 {17, 13, 31},
                                                 {65, 127, 33},
                                                 {3, 4, 0},
                                                 {515, 3, 5},
                                                 {3, 1027, 5},
                                                 {3, 5, 1101}}};
constexpr std::array<GemmOptions, 5> kMixedOptions{{
    {},
    {.a = Transpose::kYes},
    {.b = Transpose::kYes},
    {.a = Transpose::kYes, .b = Transpose::kYes, .alpha = -0.75F},
    {.alpha = 2.5F, .beta = -0.5F},
}};

struct MixedInputs {
  explicit MixedInputs(GemmShape shape, GemmOptions options)
      : a(random_numbers(shape.m * shape.k, 1)),
        b(random_numbers(shape.k * shape.n, 2)),
        before(options.beta == 0 ? unwritten(shape.m * shape.n)
                                 : random_numbers(shape.m * shape.n, 3)) {}
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> before;
};

template <typename Test>
void for_each_mixed_product(const Test& test) {
  for (const GemmShape shape : kMixedShapes) {
    for (const GemmOptions options : kMixedOptions) {
      SCOPED_TRACE(std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " +
                   std::to_string(shape.k));
      test(shape, options, MixedInputs(shape, options));
    }
  }
}

void expect_near(const std::vector<float>& found, const Product& product) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Bounded expected = product.at(i);
    ASSERT_NEAR(found[i], expected.value, expected.error) << i;
  }
}

TEST(MixedGemm, OfWordsIsTheirProductAddedUpInFloat) {
  for_each_mixed_product([](GemmShape shape, GemmOptions options, const MixedInputs& in) {
    for (const HalfKind kind : kEachHalfKind) {
      const Words a = words_of(in.a, kind);
      const Words b = words_of(in.b, kind);
      std::vector<float> c = in.before;
      gemm(kind, shape, a, b, c, options);
      expect_near(c, {shape, options, floats_of(a, kind), floats_of(b, kind), in.before});
    }
  });
}

TEST(MixedGemm, WithAResultOfWordsRoundsEachSumAtItsEnd) {
  for_each_mixed_product([](GemmShape shape, GemmOptions options, const MixedInputs& in) {
    options.beta = 0;
    for (const HalfKind kind : kEachHalfKind) {
      const Words a = words_of(in.a, kind);
      const Words b = words_of(in.b, kind);
      std::vector<float> sums = unwritten(in.before.size());
      Words c(in.before.size(), 0x7FFFU);
      gemm(kind, shape, a, b, sums, options);
      gemm(kind, shape, a, b, c, options);
      EXPECT_EQ(c, words_of(sums, kind));
    }
  });
}

TEST(MixedGemm, InTf32RoundsTheFactorsAndAddsUpInFloat) {
  for_each_mixed_product([](GemmShape shape, GemmOptions options, const MixedInputs& in) {
    std::vector<float> c = in.before;
    gemm(Precision::kTf32, shape, in.a, in.b, c, options);
    expect_near(c, {shape, options, tf32_of(in.a), tf32_of(in.b), in.before});
  });
}

TEST(MixedGemm, InFloat32HasTheBitsOfGemm) {
  for_each_mixed_product([](GemmShape shape, GemmOptions options, const MixedInputs& in) {
    std::vector<float> c = in.before;
    std::vector<float> expected = in.before;
    gemm(Precision::kFloat32, shape, in.a, in.b, c, options);
    gemm(shape, in.a, in.b, expected, options);
    EXPECT_EQ(c, expected);
  });
}

/// The largest error of a product of N(0, 1) numbers in a precision, relative to sum |a b|.
double relative_error(Precision precision) {
  const GemmShape shape{.m = 20, .n = 30, .k = 64};
  const MixedInputs in(shape, {});
  std::vector<float> c = unwritten(shape.m * shape.n);
  if (const auto kind = weir::half_kind(precision)) {
    gemm(*kind, shape, words_of(in.a, *kind), words_of(in.b, *kind), c);
  } else {
    gemm(precision, shape, in.a, in.b, c);
  }
  const Product exact{shape, {}, in.a, in.b, in.before};
  double worst = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double error = std::abs(static_cast<double>(c[i]) - exact.at(i).value);
    worst = std::max(worst, error / exact.sizes_at(i));
  }
  return worst;
}

TEST(MixedGemm, LosesWhatTheFormatLosesAndNotMore) {
  // Two factors, each rounded once: 2 u + u^2. A mean of 64 errors of either sign is well above a
  // hundredth of that.
  const double in_float = relative_error(Precision::kFloat32);
  EXPECT_LE(in_float, 65 * 0x1p-24);
  for (const auto& [precision, roundoff] : {std::pair{Precision::kTf32, 0x1p-11},
                                            {Precision::kFp16, 0x1p-11},
                                            {Precision::kBf16, 0x1p-8}}) {
    const double found = relative_error(precision);
    EXPECT_LE(found, 2 * roundoff + roundoff * roundoff + 65 * 0x1p-24);
    EXPECT_GE(found, roundoff / 50);
    EXPECT_GE(found, 10 * in_float);
  }
}

TEST(MixedGemm, InFp16GivesInfinitiesWhereTheSumIsTooLargeForAWord) {
  const Words a{weir::fp16_of_float(256.0F), weir::fp16_of_float(-256.0F)};
  const Words b{weir::fp16_of_float(256.0F), weir::fp16_of_float(1.0F)};
  Words c(4);
  gemm(HalfKind::kFp16, {.m = 2, .n = 2, .k = 1}, a, b, c);
  EXPECT_EQ(c,
            (Words{0x7C00U, weir::fp16_of_float(256.0F), 0xFC00U, weir::fp16_of_float(-256.0F)}));
  std::vector<float> in_float(4);
  gemm(HalfKind::kFp16, {.m = 2, .n = 2, .k = 1}, a, b, in_float);
  EXPECT_EQ(in_float, (std::vector<float>{65536, 256, -65536, -256}));
}

TEST(MixedGemm, KeepsInfinitiesNansAndTheSmallestNumbers) {
  for (const HalfKind kind : kEachHalfKind) {
    const bool bf16 = kind == HalfKind::kBf16;
    const std::uint16_t infinity = bf16 ? 0x7F80U : 0x7C00U;
    const std::uint16_t nan = bf16 ? 0x7FC0U : 0x7E00U;
    const std::uint16_t one = bf16 ? 0x3F80U : 0x3C00U;
    const Words a{infinity, nan, 0x0001U};
    std::vector<float> c(3);
    gemm(kind, {.m = 3, .n = 1, .k = 1}, a, Words{one}, c);
    EXPECT_EQ(c[0], std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(c[1]));
    EXPECT_EQ(c[2], bf16 ? 0x1p-133F : 0x1p-24F);
    Words words(3);
    gemm(kind, {.m = 3, .n = 1, .k = 1}, a, Words{one}, words);
    EXPECT_EQ(words, a);
  }
}

TEST(MixedGemm, RefusesWhatDoesNotFitAndLeavesTheResultAlone) {
  const Words six(6, 0x3C00U);
  const std::vector<float> floats(6, 1.0F);
  std::vector<float> c(4, 42.0F);
  Words words(4, 42);
  const GemmShape shape{.m = 2, .n = 2, .k = 3};
  const auto kind = HalfKind::kFp16;
  EXPECT_THROW(gemm(kind, shape, std::span(six).first(5), six, c), weir::UsageError);
  EXPECT_THROW(gemm(kind, shape, six, std::span(six).first(5), c), weir::UsageError);
  EXPECT_THROW(gemm(kind, shape, six, six, std::span(c).first(3)), weir::UsageError);
  EXPECT_THROW(gemm(kind, shape, six, six, std::span(words).first(3)), weir::UsageError);
  EXPECT_THROW(gemm(kind, shape, six, six, words, {.beta = 1}), weir::UsageError);
  EXPECT_THROW(gemm(Precision::kTf32, shape, std::span(floats).first(5), floats, c),
               weir::UsageError);
  EXPECT_THROW(gemm(Precision::kBf16, shape, floats, floats, c), weir::UsageError);
  EXPECT_EQ(c, std::vector<float>(4, 42.0F));
  EXPECT_EQ(words, Words(4, 42));
}

}  // namespace
