#pragma once

/// @file
/// Sizes in bytes as a type of their own, so that a count of elements cannot pass for one.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

/// A number of bytes. Unsigned: a difference that would be negative is a bug of the caller, except
/// in `minus_or_zero`, which is for "what is left, if anything".
struct Bytes {
  std::uint64_t count = 0;  ///< how many

  /// By count.
  friend constexpr auto operator<=>(Bytes, Bytes) noexcept = default;
  /// Unchecked: the sum must fit 64 bits.
  constexpr Bytes& operator+=(Bytes other) noexcept {
    count += other.count;
    return *this;
  }
  /// Unchecked: `other` must not be the larger.
  constexpr Bytes& operator-=(Bytes other) noexcept {
    count -= other.count;
    return *this;
  }
  /// Unchecked, as `+=`.
  friend constexpr Bytes operator+(Bytes a, Bytes b) noexcept { return {a.count + b.count}; }
  /// Unchecked, as `-=`; minus_or_zero where b may be the larger.
  friend constexpr Bytes operator-(Bytes a, Bytes b) noexcept { return {a.count - b.count}; }
  /// Unchecked: the product must fit 64 bits.
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) noexcept { return {a.count * n}; }
};

/// `n` × 1024 bytes.
[[nodiscard]] constexpr Bytes kib(std::uint64_t n) noexcept { return {n << 10U}; }
/// `n` × 1024 KiB.
[[nodiscard]] constexpr Bytes mib(std::uint64_t n) noexcept { return {n << 20U}; }
/// `n` × 1024 MiB.
[[nodiscard]] constexpr Bytes gib(std::uint64_t n) noexcept { return {n << 30U}; }

/// a − b, or zero when b is the larger.
[[nodiscard]] constexpr Bytes minus_or_zero(Bytes a, Bytes b) noexcept {
  return a > b ? a - b : Bytes{};
}

/// A size as people write it: `96MiB`, `1.5GiB`, `4096B`. Units B, KiB, MiB, GiB, TiB; a unit is
/// required. Nothing for what is no size, is negative, or does not fit 64 bits.
[[nodiscard]] std::optional<Bytes> parse_bytes(std::string_view text);

/// A whole number, nothing else around it. Nothing when it is none or does not fit 64 bits.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(std::string_view text);

/// A number such as `80`, `1.5` or `.25`, in decimal whatever the locale, nothing else around it.
/// Digits that a double cannot tell are left out. Nothing when it is none, is negative, or its
/// whole part has more than 15 digits.
[[nodiscard]] std::optional<double> parse_decimal(std::string_view text);

/// `96 MiB`, `1.50 GiB`, `512 B`: three significant digits or the exact number of whole units.
[[nodiscard]] std::string format_bytes(Bytes bytes);

}  // namespace weir
