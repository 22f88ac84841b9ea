// Matrix products in all precisions.

#include <algorithm>
#include <array>
#include <limits>

#include "tests/kernels/device.hpp"
#include "tests/kernels/mixed_reference.hpp"

namespace {

using weir::GemmOptions;
using weir::GemmShape;
using weir::HalfKind;
using weir::Precision;
using weir::Transpose;
using weir::UsageError;
using weir::reference::as_word;
using weir::reference::Bounded;
using weir::reference::floats_of;
using weir::reference::kEachHalfKind;
using weir::reference::kNan;
using weir::reference::Product;
using weir::reference::tf32_of;
using weir::reference::words_of;
using weir::testing::Array;
using weir::testing::expect_same_bits;
using weir::testing::expect_within;
using weir::testing::kOnCuda;

using Words = std::vector<std::uint16_t>;

/// A device's sums of shorter formats may err by so many times what the CPU's may: see blas.hpp.
constexpr double kOfTensorCores = kOnCuda ? 4 : 1;
/// Also no inner dimension, and more than one of the CPU's tiles of 512 in each dimension.
constexpr std::array<GemmShape, 12> kGemmShapes{{{1, 1, 1},
                                                 {1, 7, 3},
                                                 {5, 1, 9},
                                                 {17, 13, 31},
                                                 {64, 64, 64},
                                                 {65, 127, 33},
                                                 {128, 72, 40},
                                                 {2, 3, 0},
                                                 {129, 67, 511},
                                                 {515, 3, 5},
                                                 {3, 1027, 5},
                                                 {3, 5, 1101}}};
constexpr std::array<GemmOptions, 7> kGemmOptions{{
    {},
    {.a = Transpose::kYes},
    {.b = Transpose::kYes},
    {.a = Transpose::kYes, .b = Transpose::kYes},
    {.a = Transpose::kYes, .b = Transpose::kYes, .alpha = -0.75F},
    {.beta = 1.0F},
    {.alpha = 2.5F, .beta = -0.5F},
}};

class Gemm : public weir::testing::KernelTest {
 protected:
  /// Calls `test(product, offset)` for every option and alignment of every shape that takes at most
  /// `most` products of numbers.
  template <typename Test>
  void for_each_product(const Test& test, std::size_t most = 600'000) {
    for (const GemmShape shape : kGemmShapes) {
      if (shape.m * shape.n * shape.k > most) continue;
      for (const GemmOptions options : kGemmOptions) {
        for (const std::size_t offset : {0U, 1U}) {
          SCOPED_TRACE(weir::testing::sizes({shape.m, shape.n, shape.k, offset}));
          const std::vector<float> a = random(shape.m * shape.k);
          const std::vector<float> b = random(shape.k * shape.n);
          // With beta = 0 the old value must not matter: it is a NaN.
          const std::vector<float> before = options.beta == 0
                                                ? std::vector<float>(shape.m * shape.n, kNan)
                                                : random(shape.m * shape.n);
          test(Product{shape, options, a, b, before}, offset);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
};

TEST_F(Gemm, MultipliesForEveryTranspositionAlphaAndBeta) {
  for_each_product(
      [&](const Product& in, std::size_t offset) {
        Array<float> c(in.before, offset);
        gemm(Precision::kFloat32, in.shape, Array<float>(in.a, offset).view(),
             Array<float>(in.b, offset).view(), c.span(), in.options);
        expect_within(c.values(), [&](std::size_t i) { return in.at(i); });
      },
      SIZE_MAX);
}

TEST_F(Gemm, OfWordsIsAddedUpInFloatAndRoundedOnceForAResultOfWords) {
  for_each_product([&](const Product& in, std::size_t offset) {
    for (const HalfKind kind : kEachHalfKind) {
      const Array<std::uint16_t> a(words_of(in.a, kind), offset);
      const Array<std::uint16_t> b(words_of(in.b, kind), offset);
      const std::vector<float> wide_a = floats_of(a.values(), kind);
      const std::vector<float> wide_b = floats_of(b.values(), kind);
      Array<float> c(in.before, offset);
      gemm(kind, in.shape, a.view(), b.view(), c.span(), in.options);
      const Product exact{in.shape, in.options, wide_a, wide_b, in.before, kOfTensorCores};
      expect_within(c.values(), [&](std::size_t i) { return exact.at(i); });
      if (in.options.beta != 0) continue;
      Array<std::uint16_t> words(Words(in.before.size(), 0x7FFFU), offset);
      gemm(kind, in.shape, a.view(), b.view(), words.span(), in.options);
      expect_within(floats_of(words.values(), kind),
                    [&](std::size_t i) { return as_word(exact.at(i), kind); });
      if (kOnCuda) continue;
      Array<float> sums(in.before.size());
      gemm(kind, in.shape, a.view(), b.view(), sums.span(), in.options);
      EXPECT_EQ(words.values(), words_of(sums.values(), kind));
    }
  });
}

TEST_F(Gemm, InTf32RoundsTheFactorsAndAddsUpInFloat) {
  for_each_product([&](const Product& in, std::size_t offset) {
    Array<float> c(in.before, offset);
    gemm(Precision::kTf32, in.shape, Array<float>(in.a, offset).view(),
         Array<float>(in.b, offset).view(), c.span(), in.options);
    const std::vector<float> a = kOnCuda ? in.a : tf32_of(in.a);
    const std::vector<float> b = kOnCuda ? in.b : tf32_of(in.b);
    const Product exact{in.shape, in.options, a, b, in.before, kOfTensorCores};
    expect_within(c.values(), [&](std::size_t i) {
      Bounded sum = exact.at(i);
      // A device keeps at least ten bits of each factor.
      if (kOnCuda) sum.error += (2 * 0x1p-10 + 0x1p-20) * exact.sizes_at(i);
      return sum;
    });
  });
}

TEST_F(Gemm, InFloat32HasTheBitsOfGemmAlsoAfterAnotherPrecision) {
  for_each_product([&](const Product& in, std::size_t offset) {
    const Array<float> a(in.a, offset);
    const Array<float> b(in.b, offset);
    Array<float> expected(in.before, offset);
    Array<float> c(in.before, offset);
    gemm(Precision::kFloat32, in.shape, a.view(), b.view(), expected.span(), in.options);
    gemm(Precision::kTf32, in.shape, a.view(), b.view(), c.span(), in.options);
    c.assign(in.before);
    gemm(Precision::kFloat32, in.shape, a.view(), b.view(), c.span(), in.options);
    expect_same_bits(c.values(), expected.values());
  });
}

TEST_F(Gemm, HasTheSameBitsEachTime) {
  for (const GemmShape shape : {GemmShape{129, 67, 511}, GemmShape{128, 512, 1000}}) {
    const Array<float> a(random(shape.m * shape.k));
    const Array<float> b(random(shape.k * shape.n));
    const Array<std::uint16_t> half_a(words_of(a.values(), HalfKind::kBf16));
    const Array<std::uint16_t> half_b(words_of(b.values(), HalfKind::kBf16));
    Array<float> first(shape.m * shape.n);
    Array<float> half_first(shape.m * shape.n);
    gemm(Precision::kFloat32, shape, a.view(), b.view(), first.span(), GemmOptions{});
    gemm(HalfKind::kBf16, shape, half_a.view(), half_b.view(), half_first.span(), GemmOptions{});
    for (int i = 0; i < 2; ++i) {
      Array<float> again(shape.m * shape.n);
      gemm(Precision::kFloat32, shape, a.view(), b.view(), again.span(), GemmOptions{});
      expect_same_bits(again.values(), first.values());
      gemm(HalfKind::kBf16, shape, half_a.view(), half_b.view(), again.span(), GemmOptions{});
      expect_same_bits(again.values(), half_first.values());
    }
  }
}

TEST_F(Gemm, LosesWhatTheFormatLosesAndNotMore) {
  const GemmShape shape{.m = 20, .n = 30, .k = 64};
  const std::vector<float> a = weir::reference::random_numbers(shape.m * shape.k, 1);
  const std::vector<float> b = weir::reference::random_numbers(shape.k * shape.n, 2);
  const Product exact{shape, {}, a, b, a};
  /// The largest error of a product of N(0, 1) numbers in a precision, relative to sum |a b|.
  const auto relative_error = [&](Precision precision) {
    Array<float> c(shape.m * shape.n);
    if (const auto kind = weir::half_kind(precision)) {
      gemm(*kind, shape, Array<std::uint16_t>(words_of(a, *kind)).view(),
           Array<std::uint16_t>(words_of(b, *kind)).view(), c.span(), GemmOptions{});
    } else {
      gemm(precision, shape, Array<float>(a).view(), Array<float>(b).view(), c.span(),
           GemmOptions{});
    }
    const std::vector<float> found = c.values();
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double error = std::abs(static_cast<double>(found[i]) - exact.at(i).value);
      worst = std::max(worst, error / exact.sizes_at(i));
    }
    return worst;
  };
  // Two factors, each rounded once: 2 u + u^2. A mean of 64 errors of either sign is well above a
  // hundredth of that. A device may cut tf32 off instead: twice the error.
  const double in_float = relative_error(Precision::kFloat32);
  EXPECT_LE(in_float, 65 * 0x1p-24);
  for (const auto& [precision, roundoff] :
       {std::pair{Precision::kTf32, kOnCuda ? 0x1p-10 : 0x1p-11},
        {Precision::kFp16, 0x1p-11},
        {Precision::kBf16, 0x1p-8}}) {
    const double found = relative_error(precision);
    EXPECT_LE(found, 2 * roundoff + roundoff * roundoff + kOfTensorCores * 65 * 0x1p-24);
    EXPECT_GE(found, roundoff / (kOnCuda ? 100 : 50));
    EXPECT_GE(found, 10 * in_float);
  }
}

TEST_F(Gemm, InFp16GivesInfinitiesInWordsAndNotInFloats) {
  const Array<std::uint16_t> a(words_of({256, -256}, HalfKind::kFp16));
  const Array<std::uint16_t> b(words_of({256, 1}, HalfKind::kFp16));
  const GemmShape shape{.m = 2, .n = 2, .k = 1};
  Array<std::uint16_t> words(4);
  Array<float> floats(4);
  gemm(HalfKind::kFp16, shape, a.view(), b.view(), words.span(), GemmOptions{});
  gemm(HalfKind::kFp16, shape, a.view(), b.view(), floats.span(), GemmOptions{});
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(words.values(), words_of({infinity, 256, -infinity, -256}, HalfKind::kFp16));
  EXPECT_EQ(floats.values(), (std::vector<float>{65536, 256, -65536, -256}));
}

TEST_F(Gemm, KeepsInfinitiesNansAndTheSmallestNumbers) {
  for (const HalfKind kind : kEachHalfKind) {
    const bool bf16 = kind == HalfKind::kBf16;
    const Words special{static_cast<std::uint16_t>(bf16 ? 0x7F80U : 0x7C00U),
                        static_cast<std::uint16_t>(bf16 ? 0x7FC0U : 0x7E00U), 0x0001U};
    const Array<std::uint16_t> a(special);
    const Array<std::uint16_t> one(words_of({1}, kind));
    Array<float> c(3);
    gemm(kind, GemmShape{.m = 3, .n = 1, .k = 1}, a.view(), one.view(), c.span(), GemmOptions{});
    const std::vector<float> found = c.values();
    EXPECT_EQ(found[0], std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(found[1]));
    // On a device a product that is subnormal in float may be taken for zero (unverified).
    if (!kOnCuda || !bf16) {
      EXPECT_EQ(found[2], bf16 ? 0x1p-133F : 0x1p-24F);
    }
    if (kOnCuda) continue;
    Array<std::uint16_t> words(3);
    gemm(kind, GemmShape{.m = 3, .n = 1, .k = 1}, a.view(), one.view(), words.span(),
         GemmOptions{});
    EXPECT_EQ(words.values(), special);
  }
}

TEST_F(Gemm, TakesEmptyResults) {
  const Array<float> b(random(12));
  Array<float> c(0);
  gemm(Precision::kFloat32, GemmShape{.m = 0, .n = 3, .k = 4}, c.view(), b.view(), c.span(),
       GemmOptions{});
  gemm(Precision::kFloat32, GemmShape{.m = 3, .n = 0, .k = 4}, b.view(), c.view(), c.span(),
       GemmOptions{});
}

TEST_F(Gemm, RefusesWhatDoesNotFitAndLeavesTheResultAlone) {
  const Array<float> floats(random(6));
  const Array<std::uint16_t> halves(Words(6, 0x3C00U));
  Array<float> c(4);
  Array<std::uint16_t> words(Words(4, 42));
  const auto refused = [&](auto how, auto a, auto b, auto out, GemmOptions options = {}) {
    EXPECT_THROW(gemm(how, GemmShape{.m = 2, .n = 2, .k = 3}, a, b, out, options), UsageError);
  };
  const auto all = floats.view();
  const auto half = halves.view();
  for (const Precision precision : {Precision::kFloat32, Precision::kTf32}) {
    refused(precision, all.first(5), all, c.span());
    refused(precision, all, all.first(5), c.span());
    refused(precision, all, all, c.span().first(3));
  }
  refused(HalfKind::kFp16, half.first(5), half, c.span());
  refused(HalfKind::kFp16, half, half.first(5), c.span());
  refused(HalfKind::kFp16, half, half, c.span().first(3));
  refused(HalfKind::kFp16, half, half, words.span().first(3));
  refused(HalfKind::kFp16, half, half, words.span(), {.beta = 1});
  refused(Precision::kBf16, all, all, c.span());
  const std::size_t large = std::size_t{1} << 32U;
  const auto none = all.first(0);
  for (const GemmShape shape : {GemmShape{.m = large, .n = 0, .k = large}, GemmShape{.m = large},
                                GemmShape{.n = large}, GemmShape{.k = large}}) {
    EXPECT_THROW(gemm(Precision::kFloat32, shape, none, none, c.span().first(0), GemmOptions{}),
                 UsageError);
  }
  EXPECT_TRUE(c.is_unwritten());
  EXPECT_EQ(words.values(), Words(4, 42));
}

}  // namespace
