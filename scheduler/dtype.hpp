#pragma once

/// @file
/// Types of a tensor's elements, and the C++ types that hold one element.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "allocator/base/names.hpp"

namespace weir {

/// The type of a tensor's elements. The library moves elements and computes nothing with them.
enum class DType : std::uint8_t {
  kFloat32,   ///< IEEE 754 binary32
  kFloat16,   ///< IEEE 754 binary16
  kBFloat16,  ///< the upper 16 bits of a binary32
  kInt32,     ///< two's complement
  kInt64,     ///< two's complement
  kUInt8,     ///< also raw bytes
};

/// Bytes of the largest element of any type.
inline constexpr std::size_t kLargestElement = 8;

/// Returns the bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kInt64:
      return kLargestElement;
    case DType::kUInt8:
      break;
  }
  return 1;
}

/// The names in messages.
[[nodiscard]] constexpr auto names_of(DType /*of*/) noexcept {
  return name_table("float32", "float16", "bfloat16", "int32", "int64", "uint8");
}

/// The bits of a kFloat16 element, laid out as CUDA's `__half`.
struct Float16 {
  std::uint16_t bits = 0;  ///< sign, 5 of the exponent, 10 of the fraction
  /// Compares the bits.
  friend constexpr bool operator==(Float16, Float16) noexcept = default;
};

/// The bits of a kBFloat16 element, laid out as CUDA's `__nv_bfloat16`.
struct BFloat16 {
  std::uint16_t bits = 0;  ///< sign, 8 of the exponent, 7 of the fraction
  /// Compares the bits.
  friend constexpr bool operator==(BFloat16, BFloat16) noexcept = default;
};

/// The dtype of a C++ type, `kValue`. A program specializes it for types of its own:
///
///   template <>
///   struct weir::DTypeOf<__half> { static constexpr DType kValue = DType::kFloat16; };
template <typename T>
struct DTypeOf {};
/// @cond
template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::kFloat32;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType kValue = DType::kFloat16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType kValue = DType::kBFloat16;
};
// By size: `long` and `long long` may both have 64 bits.
template <std::signed_integral T>
requires(sizeof(T) == 4) struct DTypeOf<T> {
  static constexpr DType kValue = DType::kInt32;
};
template <std::signed_integral T>
requires(sizeof(T) == 8) struct DTypeOf<T> {
  static constexpr DType kValue = DType::kInt64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType kValue = DType::kUInt8;
};
template <>
struct DTypeOf<std::byte> {
  static constexpr DType kValue = DType::kUInt8;
};
/// @endcond

/// A C++ type that holds one element of a tensor: `float`, Float16, BFloat16, 32 and 64 bit signed
/// integers, `std::uint8_t`, `std::byte`, and what DTypeOf is specialized for.
template <typename T>
concept Element = std::is_trivially_copyable_v<T> && requires {
  { DTypeOf<T>::kValue } -> std::convertible_to<DType>;
} && sizeof(T) == size_of(DTypeOf<T>::kValue);

/// Throws UsageError: `what` has elements of type `has`, and was used as `asked`.
[[noreturn]] void refuse_dtype(std::string_view what, DType has, DType asked);

}  // namespace weir
