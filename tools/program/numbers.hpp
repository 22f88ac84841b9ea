#pragma once

// Numbers as people read them.

#include <cstdint>
#include <string>

namespace weir {

/// `value` with `digits` after the point; `nan` whatever its sign.
[[nodiscard]] std::string format_number(double value, int digits);

/// `value` with three significant digits, at most two of them after the point: `1.23`, `12.3`,
/// `1234`.
[[nodiscard]] std::string format_three_digits(double value);

/// A time in the unit that suits it, with three significant digits: `12.3 us`.
[[nodiscard]] std::string format_nanoseconds(double nanoseconds);

/// `1 batch`, `3 batches`: the thing, and what is added to it for more than one.
[[nodiscard]] std::string format_count(std::uint64_t count, const std::string& thing,
                                       const std::string& plural = "s");

/// `0x0801`: at least `digits` hexadecimal digits.
[[nodiscard]] std::string format_hex(std::uint64_t value, int digits = 1);

}  // namespace weir
