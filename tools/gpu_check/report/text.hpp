#pragma once

// How figures are written on the page and in the verdicts.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir::gpu_check {

[[nodiscard]] inline std::string number(double value, int digits) {
  const auto size = static_cast<std::size_t>(std::snprintf(nullptr, 0, "%.*f", digits, value));
  std::string text(size, '\0');
  (void)std::snprintf(text.data(), size + 1, "%.*f", digits, value);
  return text;
}

/// `0.985 (0.970 to 0.990)`: a ratio, and the least and the largest that it was.
[[nodiscard]] inline std::string spread(double median, double low, double high) {
  return number(median, 3) + " (" + number(low, 3) + " to " + number(high, 3) + ")";
}

[[nodiscard]] inline std::string bytes(double count) {
  return format_bytes({static_cast<std::uint64_t>(count)});
}

/// `1 test`, `3 tests`.
[[nodiscard]] inline std::string count(std::size_t n, const std::string& thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

/// The parts with `; ` between them.
[[nodiscard]] inline std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

}  // namespace weir::gpu_check
