#pragma once

// IEEE 754 halves as their bits, for devices and hosts alike: integer operations and one exact or
// correctly rounded float operation, so that every device gives the same bits.

#include <cstdint>

#include "kernels/parts/host_device.hpp"
#include "kernels/parts/normal.hpp"

namespace weir {

/// Returns the nearest half, to even on a tie; infinity from 65520 up. A NaN stays a quiet NaN with
/// its sign and the upper bits of its payload.
[[nodiscard]] WEIR_HOST_DEVICE inline std::uint16_t half_of_float(float x) noexcept {
  const std::uint32_t bits = bits_of_float(x);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t size = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (size > 0x7F800000U) {  // NaN
    half = 0x7E00U | ((size >> 13U) & 0x01FFU);
  } else if (size >= 0x477FF000U) {  // 65520, halfway from the largest half to the next
    half = 0x7C00U;
  } else if (size >= 0x38800000U) {  // 2^-14, the least normal half
    const std::uint32_t odd = (size >> 13U) & 1U;
    half = (size - 0x38000000U + 0x0FFFU + odd) >> 13U;
  } else {
    // Floats from 1/2 up are 2^-24 apart, like subnormal halves, so the sum rounds to one.
    half = bits_of_float(rounded_add(float_of_bits(size), 0.5F)) - 0x3F000000U;
  }
  return static_cast<std::uint16_t>(sign | half);
}

/// Returns the float of the same value. A NaN stays a quiet NaN with its sign and payload.
[[nodiscard]] WEIR_HOST_DEVICE inline float float_of_half(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 0x1FU;
  const std::uint32_t mantissa = half & 0x03FFU;
  std::uint32_t size = 0;
  if (exponent == 0x1FU) {
    size = 0x7F800000U | (mantissa << 13U) | (mantissa != 0 ? 0x00400000U : 0U);
  } else if (exponent != 0) {
    size = ((exponent + 112U) << 23U) | (mantissa << 13U);
  } else {
    const float whole = rounded_float(static_cast<std::int32_t>(mantissa));
    size = bits_of_float(rounded_multiply(whole, 0x1p-24F));
  }
  return float_of_bits(sign | size);
}

}  // namespace weir
