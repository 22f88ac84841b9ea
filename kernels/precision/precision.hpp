#pragma once

// What a network's products are computed in: the precisions, arrays in the formats of 16 bits, and
// the two ends of loss scaling. The first half has the rounding of one number.
//
// Gradients are multiplied by the loss scale where the backward pass begins, and searched for what
// is not finite where it ends. Scale and flag lie in a step's state, of kStepStateWords words; see
// kernels/parts/step_state.hpp. On a device the host waits for neither. Source: P. Micikevicius and
// others, "Mixed precision training", ICLR 2018, section 3.2.
//
// Functions throw UsageError and change nothing if sizes differ. Thread-safe for disjoint outputs;
// calls for one state come one after the other. A converted output must not overlap the input.

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/parts/host_device.hpp"
#include "kernels/parts/same_bits.hpp"
#include "kernels/parts/stream.hpp"

namespace weir {

// Conversions between float and the shorter formats of mixed precision, with the same bits on every
// device. A 16-bit number is its word: std::uint16_t.
//
//            sign  exponent  mantissa   largest      smallest normal, subnormal
//   bf16        1         8         7   3.39e38      2^-126, 2^-133
//   fp16        1         5        10   65504        2^-14, 2^-24
//   tf32        1         8        10   as float, in a float whose last 13 bits are zero
//
// fp16 is IEEE 754's binary16, bf16 and tf32 are the upper 16 and 19 bits of its binary32.
//
// Finite numbers are rounded to nearest; too large ones become an infinity and too small ones keep
// their sign. A NaN stays a NaN of the same sign and gets quiet. Uses integer operations and one
// addition only (see same_bits.hpp), so a processor that takes subnormals for zero changes nothing.
// Everything is thread-safe and cannot fail.

/// The formats of 16 bits.
enum class HalfKind : std::uint8_t { kBf16, kFp16 };

/// What the factors of a product are. Its sums are float32 in every precision.
enum class Precision : std::uint8_t { kFloat32, kTf32, kBf16, kFp16 };

/// Returns the format of the factors' 16-bit copies, or nothing if the factors are floats.
[[nodiscard]] constexpr std::optional<HalfKind> half_kind(Precision precision) noexcept {
  if (precision == Precision::kBf16) return HalfKind::kBf16;
  if (precision == Precision::kFp16) return HalfKind::kFp16;
  return std::nullopt;
}

namespace half_parts {

inline constexpr std::uint32_t kSign = 0x80000000U;
inline constexpr std::uint32_t kInfinity = 0x7F800000U;  // as float
/// The exponent's bias in float less that in fp16, at the exponent's place in a float.
inline constexpr std::uint32_t kRebias = (127U - 15U) << 23U;

}  // namespace half_parts

/// Rounds to bf16; ties go to the even word.
[[nodiscard]] WEIR_HOST_DEVICE inline std::uint16_t bf16_of_float(float value) noexcept {
  const std::uint32_t bits = bits_of_float(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t quiet = (bits >> 16U) | 0x0040U;
  const bool nan = (bits & ~half_parts::kSign) > half_parts::kInfinity;
  return static_cast<std::uint16_t>(nan ? quiet : rounded);
}

/// Exact.
[[nodiscard]] WEIR_HOST_DEVICE inline float float_of_bf16(std::uint16_t word) noexcept {
  return float_of_bits(static_cast<std::uint32_t>(word) << 16U);
}

/// Rounds to fp16; ties go to the even word. From 65520 on, half a step above the largest, the
/// result is an infinity.
[[nodiscard]] WEIR_HOST_DEVICE inline std::uint16_t fp16_of_float(float value) noexcept {
  constexpr std::uint32_t kOverflow = 0x477FF000U;        // 65520
  constexpr std::uint32_t kSmallestNormal = 0x38800000U;  // 2^-14
  const std::uint32_t bits = bits_of_float(value);
  const std::uint32_t size = bits & ~half_parts::kSign;
  // The last place of 0.5 is 2^-24, the step of fp16's subnormals, so the addition rounds to it.
  const std::uint32_t subnormal =
      bits_of_float(rounded_add(float_of_bits(size), 0.5F)) - 0x3F000000U;
  const std::uint32_t normal = (size - half_parts::kRebias + 0x0FFFU + ((size >> 13U) & 1U)) >> 13U;
  std::uint32_t word = size < kSmallestNormal ? subnormal : normal;
  word = size >= kOverflow ? 0x7C00U : word;
  word = size > half_parts::kInfinity ? 0x7E00U | ((size >> 13U) & 0x03FFU) : word;
  return static_cast<std::uint16_t>(word | ((bits & half_parts::kSign) >> 16U));
}

/// Exact.
[[nodiscard]] WEIR_HOST_DEVICE inline float float_of_fp16(std::uint16_t word) noexcept {
  const std::uint32_t size = word & 0x7FFFU;
  const std::uint32_t shifted = size << 13U;
  const std::uint32_t subnormal =
      bits_of_float(rounded_multiply(rounded_float(static_cast<std::int32_t>(size)), 0x1p-24F));
  std::uint32_t bits = size < 0x0400U ? subnormal : shifted + half_parts::kRebias;
  bits = size >= 0x7C00U ? shifted | half_parts::kInfinity : bits;
  return float_of_bits(bits | ((static_cast<std::uint32_t>(word) & 0x8000U) << 16U));
}

/// Rounds to tf32, and ties away from zero.
///
/// So does the instruction that makes tf32 operands, `cvt.rna.tf32.f32` (PTX ISA, "Data Movement
/// and Conversion Instructions: cvt"). Whether a product of cuBLAS rounds its float operands by it,
/// or lets the tensor cores ignore their last 13 bits, is not documented and not verified here: a
/// bound for a device's product must allow both, 2^-10 relative per operand.
[[nodiscard]] WEIR_HOST_DEVICE inline float tf32_of_float(float value) noexcept {
  const std::uint32_t bits = bits_of_float(value);
  const bool nan = (bits & ~half_parts::kSign) > half_parts::kInfinity;
  const std::uint32_t rounded = nan ? bits | 0x00400000U : bits + 0x1000U;
  return float_of_bits(rounded & ~0x1FFFU);
}

template <HalfKind Kind>
[[nodiscard]] WEIR_HOST_DEVICE inline std::uint16_t half_of_float(float value) noexcept {
  return Kind == HalfKind::kBf16 ? bf16_of_float(value) : fp16_of_float(value);
}

template <HalfKind Kind>
[[nodiscard]] WEIR_HOST_DEVICE inline float float_of_half(std::uint16_t word) noexcept {
  return Kind == HalfKind::kBf16 ? float_of_bf16(word) : float_of_fp16(word);
}

/// Calls `work` with the kind as its template argument.
template <typename Work>
void with_half(HalfKind kind, const Work& work) {
  if (kind == HalfKind::kBf16) return work.template operator()<HalfKind::kBf16>();
  work.template operator()<HalfKind::kFp16>();
}

/// words[i] = x[i], rounded to nearest.
void to_half(std::span<const float> x, std::span<std::uint16_t> words, HalfKind kind);

/// Sets the state's overflow flag if an element of x is an infinity or a NaN; never clears it.
void flag_not_finite(std::span<const float> x, std::span<float> state);

/// x[i] *= the state's loss scale, a power of two: this rounds only what leaves the range of float.
/// Then words[i] = x[i] rounded to nearest.
void scale_to_half(std::span<const float> state, std::span<float> x, std::span<std::uint16_t> words,
                   HalfKind kind);

}  // namespace weir

/// On a device: see stream.hpp. `state` is aligned to 8 bytes.
namespace weir::cuda {

/// Eight elements at once from where both spans reach a 16-byte boundary.
void to_half(Stream stream, std::span<const float> x, std::span<std::uint16_t> words,
             HalfKind kind);
/// Calls for one state may run on several streams at once.
void flag_not_finite(Stream stream, std::span<const float> x, std::span<float> state);
void scale_to_half(Stream stream, std::span<const float> state, std::span<float> x,
                   std::span<std::uint16_t> words, HalfKind kind);

}  // namespace weir::cuda
