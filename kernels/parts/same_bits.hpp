#pragma once

// Functions with the same bits on every device: logarithm, exponential, softplus, and two standard
// normal numbers from two uniform words.
//
// They use no maths library, because each library rounds differently: only integer operations and
// float
// +, -, *, / and sqrt, each rounded to nearest separately, which IEEE 754 defines exactly. So files
// that include this must be compiled with -ffp-contract=off, which stops a host compiler from
// fusing a product and a sum; on a device the `rounded_` functions use instructions that are never
// fused.
//
// Largest errors, checked by tests/kernels/same_bits_test.cpp: `log_of_unit` 1e-7 relative, the
// sine and cosine 1.2e-7 absolute, `exp_of_negative` 1.5e-7 and `softplus` 3e-7 relative.

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "kernels/parts/host_device.hpp"

namespace weir {

static_assert(FLT_EVAL_METHOD == 0, "float must be computed as float");

#if defined(__CUDA_ARCH__)
__device__ inline float rounded_add(float a, float b) { return __fadd_rn(a, b); }
__device__ inline float rounded_multiply(float a, float b) { return __fmul_rn(a, b); }
__device__ inline float rounded_sqrt(float a) { return __fsqrt_rn(a); }
__device__ inline float float_of_bits(std::uint32_t a) { return __uint_as_float(a); }
__device__ inline std::uint32_t bits_of_float(float a) { return __float_as_uint(a); }
__device__ inline float rounded_float(std::int32_t a) { return __int2float_rn(a); }
#else
inline float rounded_add(float a, float b) noexcept { return a + b; }
inline float rounded_multiply(float a, float b) noexcept { return a * b; }
inline float rounded_sqrt(float a) noexcept { return std::sqrt(a); }
inline float float_of_bits(std::uint32_t a) noexcept { return std::bit_cast<float>(a); }
inline std::uint32_t bits_of_float(float a) noexcept { return std::bit_cast<std::uint32_t>(a); }
inline float rounded_float(std::int32_t a) noexcept { return static_cast<float>(a); }
#endif

WEIR_HOST_DEVICE inline bool is_finite(float a) noexcept {
  return (bits_of_float(a) & 0x7F800000U) != 0x7F800000U;
}

/// c0 + x (c1 + x (c2 + ...)), by Horner's rule.
WEIR_HOST_DEVICE inline float polynomial(float, float last) noexcept { return last; }
template <typename... Rest>
WEIR_HOST_DEVICE inline float polynomial(float x, float first, Rest... rest) noexcept {
  return rounded_add(first, rounded_multiply(x, polynomial(x, rest...)));
}

/// A uniform number in (0, 1] from a word: the middle of one of 2^30 equal cells, rounded to float.
[[nodiscard]] WEIR_HOST_DEVICE inline float unit_of_word(std::uint32_t word) noexcept {
  const auto odd = static_cast<std::int32_t>((word >> 1U) | 1U);
  return rounded_multiply(rounded_float(odd), 0x1p-31F);
}

/// ln(u) for a normal float u > 0; never above zero for u <= 1.
///
/// u = 2^e m with m in [sqrt(1/2), sqrt(2)); with f = m - 1, ln(m) = f - f^2/2 + f^3 P(f). P
/// interpolates at the nine Chebyshev nodes of f's interval, its coefficients rounded to float.
/// ln 2 is added in two parts, the first so short that its product with e is exact.
[[nodiscard]] WEIR_HOST_DEVICE inline float log_of_unit(float u) noexcept {
  constexpr std::uint32_t kSqrtHalfBits = 0x3F3504F3U;
  const std::uint32_t shifted = bits_of_float(u) - kSqrtHalfBits;
  const float exponent = rounded_float(static_cast<std::int32_t>(shifted) >> 23);
  const float m = float_of_bits((shifted & 0x007FFFFFU) + kSqrtHalfBits);
  const float f = rounded_add(m, -1.0F);
  const float square = rounded_multiply(f, f);
  const float p =
      polynomial(f, 0x1.555554p-2F, -0x1.fffffcp-3F, 0x1.999d5ap-3F, -0x1.555b4ap-3F,
                 0x1.23d21ap-3F, -0x1.fcf4c6p-4F, 0x1.dea282p-4F, -0x1.d635bcp-4F, 0x1.1d8ea6p-4F);
  float small = rounded_multiply(rounded_multiply(f, square), p);
  small = rounded_add(small, rounded_multiply(exponent, -0x1.bd0106p-13F));
  small = rounded_add(small, rounded_multiply(square, -0.5F));
  return rounded_add(rounded_add(f, small), rounded_multiply(exponent, 0x1.63p-1F));
}

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

struct Softplus {
  float value = 0;  ///< ln(1 + e^a)
  float slope = 0;  ///< 1 / (1 + e^-a)
};

/// With u = e^-|a|, at most 1: ln(1 + e^a) = max(a, 0) + ln(1 + u), and the slope is 1 / (1 + u) or
/// u / (1 + u). The sum 1 + u loses the end of u, and all of a small one; with w the rounded sum
/// and c = u - (w - 1), which is exact, ln(1 + u) = ln w + c / w to first order in c. NaN stays
/// NaN.
[[nodiscard]] WEIR_HOST_DEVICE inline Softplus softplus(float a) noexcept {
  const float power = exp_of_negative(a > 0.0F ? -a : a);
  const float sum = rounded_add(1.0F, power);
  const float share = 1.0F / sum;
  const float lost = rounded_add(power, -rounded_add(sum, -1.0F));
  const float log = rounded_add(log_of_unit(sum), rounded_multiply(lost, share));
  return {rounded_add(a > 0.0F ? a : 0.0F, log), a > 0.0F ? share : rounded_multiply(power, share)};
}

struct FloatPair {
  float first = 0;
  float second = 0;
};

/// (cos, sin) of the angle word * 2 pi / 2^32.
///
/// The angle is cut into a whole number of quarter turns and a rest t of at most half a quarter
/// turn; sin(t pi/2) = t S(t^2), cos(t pi/2) = 1 + t^2 C(t^2). S and C interpolate at the four
/// Chebyshev nodes of [0, 1/4]. Odd quarters swap the two; the signs follow the quarter.
[[nodiscard]] WEIR_HOST_DEVICE inline FloatPair cos_sin_of_word(std::uint32_t word) noexcept {
  const std::uint32_t quarter = (word + 0x20000000U) >> 30U;
  const auto rest = static_cast<std::int32_t>(word - (quarter << 30U));
  const float t = rounded_multiply(rounded_float(rest), 0x1p-30F);
  const float square = rounded_multiply(t, t);
  const float s = rounded_multiply(
      t, polynomial(square, 0x1.921fb6p+0F, -0x1.4abbbap-1F, 0x1.465ec4p-4F, -0x1.2d9b40p-8F));
  const float c =
      polynomial(square, 1.0F, -0x1.3bd3ccp+0F, 0x1.03c1eap-2F, -0x1.55cb98p-6F, 0x1.db6492p-11F);
  const std::uint32_t swap = 0U - (quarter & 1U);
  const std::uint32_t sine = bits_of_float(s);
  const std::uint32_t cosine = bits_of_float(c);
  const std::uint32_t cosine_sign = ((quarter + 1U) & 2U) << 30U;
  const std::uint32_t sine_sign = (quarter & 2U) << 30U;
  return {float_of_bits(((cosine & ~swap) | (sine & swap)) ^ cosine_sign),
          float_of_bits(((sine & ~swap) | (cosine & swap)) ^ sine_sign)};
}

/// Two independent numbers of N(0, 1) from two independent uniform words, by Box and Muller:
/// r = sqrt(-2 ln u), angle = 2 pi v, the pair is (r cos angle, r sin angle). Source: G. Box, M.
/// Muller, "A note on the generation of random normal deviates", Annals of Mathematical Statistics
/// 29 (1958). At most 6.56 in size: sqrt(2 * 31 ln 2), which a true normal number exceeds once in 2
/// * 10^10 draws. Once in 2^25 draws the first word rounds to 1, and both are zero.
[[nodiscard]] WEIR_HOST_DEVICE inline FloatPair normal_pair(std::uint32_t radius,
                                                            std::uint32_t angle) noexcept {
  const float r = rounded_sqrt(rounded_multiply(-2.0F, log_of_unit(unit_of_word(radius))));
  const FloatPair direction = cos_sin_of_word(angle);
  return {rounded_multiply(r, direction.first), rounded_multiply(r, direction.second)};
}

}  // namespace weir
