#include "kernels/parts/same_bits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "kernels/parts/philox.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::cos_sin_of_word;
using weir::exp_of_negative;
using weir::FloatPair;
using weir::log_of_unit;
using weir::normal_pair;
using weir::Softplus;
using weir::softplus;
using weir::unit_of_word;

constexpr double kWordToAngle = 2.0 * std::numbers::pi * 0x1p-32;
constexpr float kBeyond = std::numeric_limits<float>::infinity();
constexpr float kLargestNormal = 6.5559F;  // sqrt(62 ln 2), rounded up

TEST(UnitOfWord, IsTheMiddleOfACellAndNeverZero) {
  EXPECT_EQ(unit_of_word(0), 0x1p-31F);
  EXPECT_EQ(unit_of_word(3), 0x1p-31F);
  EXPECT_EQ(unit_of_word(4), 0x3p-31F);
  EXPECT_EQ(unit_of_word(0x80000000U), 0x1p-1F);
  EXPECT_EQ(unit_of_word(0xFFFFFFFFU), 1.0F);
}

double relative_error_of_log(float u) {
  const double exact = std::log(static_cast<double>(u));
  return std::abs(static_cast<double>(log_of_unit(u)) - exact) / std::abs(exact);
}

TEST(LogOfUnit, ErrsByAtMostOneTenMillionthInEveryBinade) {
  double worst = 0;
  const auto end = std::bit_cast<std::uint32_t>(1.0F);
  for (auto bits = std::bit_cast<std::uint32_t>(0x1p-31F); bits < end; bits += 61) {
    worst = std::max(worst, relative_error_of_log(std::bit_cast<float>(bits)));
  }
  EXPECT_LE(worst, 1e-7);
}

TEST(LogOfUnit, IsAccurateAndBelowZeroForEveryFloatFromAHalfToOne) {
  double worst = 0;
  float largest = -1;
  const auto end = std::bit_cast<std::uint32_t>(1.0F);
  for (auto bits = std::bit_cast<std::uint32_t>(0.5F); bits < end; ++bits) {
    worst = std::max(worst, relative_error_of_log(std::bit_cast<float>(bits)));
    largest = std::max(largest, log_of_unit(std::bit_cast<float>(bits)));
  }
  EXPECT_LE(worst, 1e-7);
  EXPECT_LT(largest, 0.0F);
  EXPECT_EQ(log_of_unit(1.0F), 0.0F);
}

TEST(CosSinOfWord, ErrsByAtMostTwelveHundredMillionths) {
  double worst = 0;
  for (std::uint64_t word = 0; word <= UINT32_MAX; word += 2039) {
    const FloatPair found = cos_sin_of_word(static_cast<std::uint32_t>(word));
    const double angle = static_cast<double>(word) * kWordToAngle;
    worst = std::max(worst, std::abs(static_cast<double>(found.first) - std::cos(angle)));
    worst = std::max(worst, std::abs(static_cast<double>(found.second) - std::sin(angle)));
  }
  EXPECT_LE(worst, 1.2e-7);
}

TEST(CosSinOfWord, IsExactAtQuarterTurns) {
  constexpr std::array<FloatPair, 4> kExpected{{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}};
  for (std::uint32_t quarter = 0; quarter < 4; ++quarter) {
    const FloatPair found = cos_sin_of_word(quarter << 30U);
    EXPECT_EQ(found.first, kExpected.at(quarter).first) << quarter;
    EXPECT_EQ(found.second, kExpected.at(quarter).second) << quarter;
  }
}

TEST(NormalPair, IsBoxAndMullersPairToThreeTenMillionthsOfItsRadius) {
  double worst = 0;
  for (std::uint32_t i = 0; i < 200000; ++i) {
    const weir::PhiloxWords words = weir::philox4x32({i, 0, 0, 0}, {7, 0});
    const FloatPair found = normal_pair(words.x, words.y);
    const double r = std::sqrt(-2.0 * std::log(static_cast<double>(unit_of_word(words.x))));
    const double angle = words.y * kWordToAngle;
    const double x_error = std::abs(static_cast<double>(found.first) - r * std::cos(angle));
    const double y_error = std::abs(static_cast<double>(found.second) - r * std::sin(angle));
    worst = std::max(worst, std::max(x_error, y_error) / r);
  }
  EXPECT_LE(worst, 3e-7);
}

TEST(NormalPair, IsFiniteAndBoundedForTheExtremeWords) {
  for (const std::uint32_t radius : {0U, 1U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFEU, 0xFFFFFFFFU}) {
    for (const std::uint32_t angle : {0U, 0x1FFFFFFFU, 0x20000000U, 0xDFFFFFFFU, 0xFFFFFFFFU}) {
      const FloatPair found = normal_pair(radius, angle);
      EXPECT_LE(std::hypot(found.first, found.second), kLargestNormal) << radius << " " << angle;
    }
  }
  EXPECT_NEAR(normal_pair(0, 0).first, kLargestNormal, 1e-3);
}

TEST(ExpOfNegative, IsWithin15E8OfTheExponential) {
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    const float x = -87.0F * static_cast<float>(i) / 200'000.0F;
    const double expected = std::exp(static_cast<double>(x));
    ASSERT_NEAR(exp_of_negative(x), expected, 1.5e-7 * expected) << x;
  }
}

TEST(ExpOfNegative, OfItsEndsIsExact) {
  EXPECT_EQ(exp_of_negative(0.0F), 1.0F);
  EXPECT_EQ(exp_of_negative(-0.0F), 1.0F);
  EXPECT_GT(exp_of_negative(weir::kLeastExponent), 0.0F);
  for (const float x : {-87.001F, -1e4F, std::numeric_limits<float>::lowest(), -kBeyond}) {
    EXPECT_EQ(exp_of_negative(x), 0.0F) << x;
  }
  EXPECT_TRUE(std::isnan(exp_of_negative(weir::reference::kNan)));
}

double softplus_of(double a) { return (a > 0 ? a : 0) + std::log1p(std::exp(a > 0 ? -a : a)); }

TEST(SoftplusFunction, IsWithin3E7OfTheReferenceAndSoIsItsSlope) {
  for (std::int32_t i = -86'999; i <= 90'000; ++i) {
    const float a = static_cast<float>(i) * 1e-3F;
    const Softplus found = softplus(a);
    const double expected = softplus_of(static_cast<double>(a));
    const double slope = 1 / (1 + std::exp(-static_cast<double>(a)));
    ASSERT_NEAR(found.value, expected, 3e-7 * expected) << a;
    ASSERT_NEAR(found.slope, slope, 3e-7 * slope) << a;
  }
}

TEST(SoftplusFunction, OfItsEndsIsExact) {
  EXPECT_EQ(softplus(-1e4F).value, 0.0F);
  EXPECT_EQ(softplus(-kBeyond).value, 0.0F);
  EXPECT_EQ(softplus(-kBeyond).slope, 0.0F);
  EXPECT_EQ(softplus(1e4F).value, 1e4F);
  EXPECT_EQ(softplus(kBeyond).value, kBeyond);
  EXPECT_EQ(softplus(kBeyond).slope, 1.0F);
  EXPECT_TRUE(std::isnan(softplus(weir::reference::kNan).value) &&
              std::isnan(softplus(weir::reference::kNan).slope));
}

}  // namespace
