#pragma once

// e^x for x <= 0, with the same bits on every device. See normal.hpp for the method and the
// required compiler flags. Largest relative error, checked by
// tests/kernels/classification_test.cpp: 1.5e-7.

#include <cmath>
#include <cstdint>

#include "kernels/parts/host_device.hpp"
#include "kernels/parts/normal.hpp"

namespace weir {

/// Below this e^x counts as zero: it is less than 2^-125, almost a denormal.
inline constexpr float kLeastExponent = -87.0F;

/// e^x for x <= 0. NaN stays NaN.
///
/// x = n ln 2 + r with n whole and |r| <= ln(2) / 2; e^r is its Taylor polynomial of degree 7, with
/// a remainder below 2^-27. n ln 2 is subtracted in two parts, the first so short that its product
/// with n is exact. 2^n is built from its bits.
///
/// Without a branch, so that a host compiler can compute several at once: what is out of range is
/// computed for the least exponent and masked. GCC 12 makes a branch of `x < k ? 0 : result`.
[[nodiscard]] WEIR_HOST_DEVICE inline float exp_of_negative(float x) noexcept {
  const float within = x >= kLeastExponent ? x : kLeastExponent;
  const float quotient = rounded_add(rounded_multiply(within, 0x1.715476p+0F), -0.5F);
  const auto n = static_cast<std::int32_t>(quotient);  // towards zero: the nearest of x / ln 2
  const float whole = rounded_float(n);
  float r = rounded_add(within, rounded_multiply(whole, -0x1.63p-1F));
  r = rounded_add(r, rounded_multiply(whole, 0x1.bd0106p-13F));
  const float power =
      polynomial(r, 1.0F, 1.0F, 1.0F / 2, 1.0F / 6, 1.0F / 24, 1.0F / 120, 1.0F / 720, 1.0F / 5040);
  const auto exponent = static_cast<std::uint32_t>(n + 127);
  const float result = rounded_multiply(power, float_of_bits(exponent << 23U));
  const std::uint32_t kept = x < kLeastExponent ? 0U : ~0U;
  const std::uint32_t nan = x != x ? bits_of_float(x) : 0U;
  return float_of_bits((bits_of_float(result) & kept) | nan);
}

}  // namespace weir
