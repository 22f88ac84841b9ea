#pragma once

// Number formats for people.

#include <cstdint>
#include <string>

namespace weir {

/// Formats with `digits` after the point; `nan` without a sign.
[[nodiscard]] std::string format_number(double value, int digits);

/// Formats with three significant digits, at most two after the point: `1.23`, `12.3`, `1234`.
[[nodiscard]] std::string format_three_digits(double value);

/// Formats a time in a fitting unit, with three significant digits: `12.3 us`.
[[nodiscard]] std::string format_nanoseconds(double nanoseconds);

/// Formats a count: `1 batch`, `3 batches`. `plural` is the ending for more than one.
[[nodiscard]] std::string format_count(std::uint64_t count, const std::string& thing,
                                       const std::string& plural = "s");

/// Formats as `0x0801`, with at least `digits` digits.
[[nodiscard]] std::string format_hex(std::uint64_t value, int digits = 1);

}  // namespace weir
