#pragma once

/// @file
/// A type for sizes in bytes: a count of elements cannot pass for one.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

/// A number of bytes. Unsigned: a negative difference is the caller's bug, except in
/// `minus_or_zero`.
struct Bytes {
  std::uint64_t count = 0;  ///< how many

  /// Compares the counts.
  friend constexpr auto operator<=>(Bytes, Bytes) noexcept = default;
  /// Unchecked for overflow.
  constexpr Bytes& operator+=(Bytes other) noexcept {
    count += other.count;
    return *this;
  }
  /// Unchecked: `other` must not be larger.
  constexpr Bytes& operator-=(Bytes other) noexcept {
    count -= other.count;
    return *this;
  }
  /// Unchecked, as `+=`.
  friend constexpr Bytes operator+(Bytes a, Bytes b) noexcept { return {a.count + b.count}; }
  /// Unchecked, as `-=`; if b may be larger: minus_or_zero.
  friend constexpr Bytes operator-(Bytes a, Bytes b) noexcept { return {a.count - b.count}; }
  /// Unchecked for overflow.
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) noexcept { return {a.count * n}; }
};

/// `n` × 1024 bytes.
[[nodiscard]] constexpr Bytes kib(std::uint64_t n) noexcept { return {n << 10U}; }
/// `n` × 1024 KiB.
[[nodiscard]] constexpr Bytes mib(std::uint64_t n) noexcept { return {n << 20U}; }
/// `n` × 1024 MiB.
[[nodiscard]] constexpr Bytes gib(std::uint64_t n) noexcept { return {n << 30U}; }

/// Returns a − b, or zero if b is larger.
[[nodiscard]] constexpr Bytes minus_or_zero(Bytes a, Bytes b) noexcept {
  return a > b ? a - b : Bytes{};
}

/// Parses a size such as `96MiB`, `1.5GiB` or `4096B`. Requires a unit: B, KiB, MiB, GiB or TiB.
/// Returns nullopt if the text is no such size or does not fit 64 bits.
[[nodiscard]] std::optional<Bytes> parse_bytes(std::string_view text);

/// Parses a whole number. Returns nullopt for any other text, or beyond 64 bits.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(std::string_view text);

/// Parses a number such as `80`, `1.5` or `.25`, whatever the locale. Drops digits beyond a
/// double's precision. Returns nullopt for any other text, or more than 15 digits before the point.
[[nodiscard]] std::optional<double> parse_decimal(std::string_view text);

/// Returns `96 MiB`, `1.50 GiB`, `512 B`: three significant digits, or the exact number of units.
[[nodiscard]] std::string format_bytes(Bytes bytes);

/// Returns a short text that parse_bytes reads as exactly this size: `96MiB`, `1.5GiB`, `4097B`.
[[nodiscard]] std::string exact_bytes(Bytes bytes);

}  // namespace weir
