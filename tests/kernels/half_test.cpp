#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/precision/precision.hpp"

namespace {

using weir::bf16_of_float;
using weir::float_of_bf16;
using weir::float_of_fp16;
using weir::fp16_of_float;
using weir::tf32_of_float;

constexpr std::uint32_t kWords = 0x10000U;
constexpr float kInfinite = std::numeric_limits<float>::infinity();

/// A format by its definition: bits of the mantissa, the largest exponent field and the bias.
struct Format {
  int mantissa = 0;
  int largest = 0;
  int bias = 0;
};
constexpr Format kBf16Format{7, 255, 127};
constexpr Format kFp16Format{10, 31, 15};

/// The value of a word that is not a NaN.
double value_of(Format format, std::uint32_t word) {
  const auto fraction =
      static_cast<int>(word & ((1U << static_cast<unsigned>(format.mantissa)) - 1U));
  const auto exponent =
      static_cast<int>((word & 0x7FFFU) >> static_cast<unsigned>(format.mantissa));
  const double sign = (word & 0x8000U) != 0 ? -1.0 : 1.0;
  if (exponent == format.largest) return sign * static_cast<double>(kInfinite);
  const int hidden = exponent == 0 ? 0 : 1 << format.mantissa;
  const int power = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa;
  return sign * std::ldexp(hidden + fraction, power);
}

bool is_nan(Format format, std::uint32_t word) {
  const auto infinity = static_cast<std::uint32_t>(format.largest)
                        << static_cast<unsigned>(format.mantissa);
  return (word & 0x7FFFU) > infinity;
}

/// Every word has its format's value as a float, and comes back from it.
template <typename Widen, typename Round>
void expect_words_there_and_back(Format format, const Widen& widen, const Round& round) {
  const std::uint32_t quiet = 1U << static_cast<unsigned>(format.mantissa - 1);
  for (std::uint32_t word = 0; word < kWords; ++word) {
    const float value = widen(static_cast<std::uint16_t>(word));
    if (is_nan(format, word)) {
      ASSERT_TRUE(std::isnan(value)) << std::hex << word;
      ASSERT_EQ(round(value), word | quiet) << std::hex << word;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), value_of(format, word)) << std::hex << word;
    ASSERT_EQ(std::signbit(value), word >= 0x8000U) << std::hex << word;
    ASSERT_EQ(round(value), word) << std::hex << word;
  }
}

TEST(Bf16, WordsHaveTheirValueAndComeBack) {
  expect_words_there_and_back(kBf16Format, float_of_bf16, bf16_of_float);
}

TEST(Fp16, WordsHaveTheirValueAndComeBack) {
  expect_words_there_and_back(kFp16Format, float_of_fp16, fp16_of_float);
}

/// Between each pair of neighbouring finite words, the float in the middle goes to the even one and
/// its neighbours to the nearer one; so for both signs.
template <typename Widen, typename Round>
void expect_nearest(Format format, const Widen& widen, const Round& round) {
  const auto infinity = static_cast<std::uint32_t>(format.largest)
                        << static_cast<unsigned>(format.mantissa);
  for (std::uint32_t word = 0; word < infinity; ++word) {
    // Beyond the largest, the next step's middle decides about infinity as if it were a number.
    const double low = value_of(format, word);
    const double step =
        word + 1 < infinity ? value_of(format, word + 1) - low : low - value_of(format, word - 1);
    const auto middle = static_cast<float>(low + step / 2);
    ASSERT_EQ(static_cast<double>(middle), low + step / 2) << std::hex << word;
    for (const float sign : {1.0F, -1.0F}) {
      const std::uint32_t mark = sign < 0 ? 0x8000U : 0U;
      ASSERT_EQ(round(sign * middle), (word + (word & 1U)) | mark) << std::hex << word;
      ASSERT_EQ(round(sign * std::nextafterf(middle, 0.0F)), word | mark) << std::hex << word;
      ASSERT_EQ(round(sign * std::nextafterf(middle, kInfinite)), (word + 1) | mark)
          << std::hex << word;
    }
    ASSERT_EQ(round(std::nextafterf(widen(static_cast<std::uint16_t>(word)), kInfinite)), word)
        << std::hex << word;
  }
}

TEST(Bf16, RoundsToNearestAndTiesToEven) {
  expect_nearest(kBf16Format, float_of_bf16, bf16_of_float);
}

TEST(Fp16, RoundsToNearestAndTiesToEven) {
  expect_nearest(kFp16Format, float_of_fp16, fp16_of_float);
}

TEST(Bf16, TakesTheEndsOfTheFloats) {
  EXPECT_EQ(bf16_of_float(std::numeric_limits<float>::max()), 0x7F80U);
  EXPECT_EQ(bf16_of_float(kInfinite), 0x7F80U);
  EXPECT_EQ(bf16_of_float(-kInfinite), 0xFF80U);
  EXPECT_EQ(bf16_of_float(std::numeric_limits<float>::denorm_min()), 0U);
  EXPECT_EQ(bf16_of_float(-0.0F), 0x8000U);
  EXPECT_EQ(bf16_of_float(std::bit_cast<float>(0x7F800001U)), 0x7FC0U) << "not an infinity";
  EXPECT_EQ(bf16_of_float(std::bit_cast<float>(0xFFFFFFFFU)), 0xFFFFU);
}

TEST(Fp16, TakesTheEndsOfTheFloats) {
  EXPECT_EQ(fp16_of_float(65504.0F), 0x7BFFU);
  EXPECT_EQ(fp16_of_float(65520.0F), 0x7C00U);
  EXPECT_EQ(fp16_of_float(std::numeric_limits<float>::max()), 0x7C00U);
  EXPECT_EQ(fp16_of_float(-kInfinite), 0xFC00U);
  EXPECT_EQ(fp16_of_float(0x1p-25F), 0U) << "a tie";
  EXPECT_EQ(fp16_of_float(std::nextafterf(0x1p-25F, 1.0F)), 1U);
  EXPECT_EQ(fp16_of_float(-std::numeric_limits<float>::denorm_min()), 0x8000U);
  EXPECT_EQ(fp16_of_float(std::bit_cast<float>(0x7F800001U)), 0x7E00U) << "not an infinity";
  EXPECT_EQ(fp16_of_float(std::bit_cast<float>(0xFFFFFFFFU)), 0xFFFFU);
}

TEST(Tf32, KeepsTenBitsAndRoundsTiesAwayFromZero) {
  for (const float sign : {1.0F, -1.0F}) {
    for (const float scale : {1.0F, 0x1p-126F, 0x1p127F}) {
      const float unit = sign * scale;
      EXPECT_EQ(tf32_of_float(unit * (1 + 0x1p-10F)), unit * (1 + 0x1p-10F));
      EXPECT_EQ(tf32_of_float(unit * (1 + 0x1p-11F)), unit * (1 + 0x1p-10F));
      EXPECT_EQ(tf32_of_float(unit * (1 + 0x1p-11F - 0x1p-23F)), unit);
      EXPECT_EQ(tf32_of_float(unit * (1 + 0x3p-11F)), unit * (1 + 0x2p-10F));
    }
    EXPECT_EQ(tf32_of_float(sign * std::numeric_limits<float>::max()), sign * kInfinite);
    EXPECT_EQ(tf32_of_float(sign * kInfinite), sign * kInfinite);
  }
  EXPECT_TRUE(std::signbit(tf32_of_float(-0.0F)));
}

TEST(Tf32, KeepsEveryNan) {
  for (const std::uint32_t bits :
       {0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU, 0xFF801000U, 0xFFFFFFFFU}) {
    const float kept = tf32_of_float(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(kept)) << std::hex << bits;
    EXPECT_EQ(std::signbit(kept), (bits >> 31U) == 1) << std::hex << bits;
  }
}

}  // namespace
