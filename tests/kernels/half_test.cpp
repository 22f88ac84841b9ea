#include "kernels/parts/half.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "support/random_seed.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::float_of_half;
using weir::half_of_float;

constexpr std::uint32_t kHalves = 0x10000;
constexpr std::uint32_t kInfinityBits = 0x7C00;

/// The value of a finite half by the definition of the format, and infinity for its successor.
double value_of(std::uint32_t half) {
  const auto exponent = static_cast<int>((half >> 10U) & 0x1FU);
  const auto mantissa = static_cast<double>(half & 0x3FFU);
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024.0 + mantissa, exponent - 25);
  return (half & 0x8000U) != 0 ? -size : size;
}

/// The nearest half in double, by IEEE's rule: what lies past 65520 rounds to infinity.
double nearest_half(double x) {
  const double size = std::abs(x);
  if (size >= 65520.0) return std::copysign(std::numeric_limits<double>::infinity(), x);
  const int exponent = std::max(size > 0 ? std::ilogb(size) : -14, -14);
  // The steps are 2^(exponent - 10) wide; nearbyint rounds to the nearest even one.
  return std::copysign(std::ldexp(std::nearbyint(std::ldexp(size, 10 - exponent)), exponent - 10),
                       x);
}

void expect_nearest(float x) {
  const double expected = nearest_half(static_cast<double>(x));
  const auto found = static_cast<double>(float_of_half(half_of_float(x)));
  ASSERT_EQ(found, expected) << x;
  ASSERT_EQ(std::signbit(found), std::signbit(expected)) << x;
}

TEST(FloatOfHalf, IsTheValueOfEveryHalf) {
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    const float found = float_of_half(static_cast<std::uint16_t>(half));
    const std::uint32_t size = half & 0x7FFFU;
    if (size > kInfinityBits) {
      ASSERT_TRUE(std::isnan(found)) << half;
    } else if (size == kInfinityBits) {
      ASSERT_TRUE(std::isinf(found)) << half;
    } else {
      ASSERT_EQ(static_cast<double>(found), value_of(half)) << half;
    }
    ASSERT_EQ(std::signbit(found), (half & 0x8000U) != 0) << half;
  }
}

TEST(HalfOfFloat, GivesEveryHalfBack) {
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    if ((half & 0x7FFFU) > kInfinityBits) continue;
    ASSERT_EQ(half_of_float(float_of_half(static_cast<std::uint16_t>(half))), half);
  }
}

TEST(HalfOfFloat, RoundsTiesToTheEvenHalfAndTheirNeighboursToTheNearer) {
  for (std::uint32_t half = 0; half < kInfinityBits; ++half) {
    // Halfway to the next half, which is a float: 11 bits more are there.
    const auto tie = static_cast<float>(
        half + 1 == kInfinityBits ? 65520.0 : (value_of(half) + value_of(half + 1)) / 2);
    const std::uint32_t even = (half & 1U) == 0 ? half : half + 1;
    ASSERT_EQ(half_of_float(tie), even) << half;
    ASSERT_EQ(half_of_float(-tie), even | 0x8000U) << half;
    ASSERT_EQ(half_of_float(std::nextafter(tie, 0.0F)), half);
    ASSERT_EQ(half_of_float(std::nextafter(tie, 1e6F)), half + 1);
  }
}

TEST(HalfOfFloat, IsTheNearestForFloatsOfEverySize) {
  const std::uint64_t seed = weir::testing::random_seed();
  SCOPED_TRACE(weir::testing::seed_message(seed));
  const std::vector<float> steps = weir::reference::random_numbers(1U << 16U, seed);
  std::uint32_t bits = 0;
  for (const float step : steps) {  // random mantissas, and every exponent many times
    bits += std::bit_cast<std::uint32_t>(step) % 70001U + 1;
    const auto x = std::bit_cast<float>((bits * 2654435761U) % 0x7F800000U);
    ASSERT_NO_FATAL_FAILURE(expect_nearest(x));
    ASSERT_NO_FATAL_FAILURE(expect_nearest(-x));
  }
}

TEST(HalfOfFloat, KeepsNanAndItsSign) {
  const std::uint32_t sizes[] = {0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU};
  for (const std::uint32_t size : sizes) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      const std::uint16_t half = half_of_float(std::bit_cast<float>(sign | size));
      EXPECT_GT(half & 0x7FFFU, kInfinityBits) << size;
      EXPECT_EQ((half & 0x8000U) != 0, sign != 0) << size;
    }
  }
}

}  // namespace
