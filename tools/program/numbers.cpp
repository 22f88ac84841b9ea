#include "tools/program/numbers.hpp"

#include <cmath>
#include <cstdio>

namespace weir {

std::string format_number(double value, int digits) {
  if (std::isnan(value)) return "nan";
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string format_three_digits(double value) {
  return format_number(value, value >= 99.95 ? 0 : (value >= 9.995 ? 1 : 2));
}

std::string format_nanoseconds(double nanoseconds) {
  if (nanoseconds >= 0.9995e9) return format_three_digits(nanoseconds / 1e9) + " s";
  if (nanoseconds >= 0.9995e6) return format_three_digits(nanoseconds / 1e6) + " ms";
  if (nanoseconds >= 999.5) return format_three_digits(nanoseconds / 1e3) + " us";
  return format_three_digits(nanoseconds) + " ns";
}

std::string format_count(std::uint64_t count, const std::string& thing, const std::string& plural) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : plural);
}

std::string format_hex(std::uint64_t value, int digits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

}  // namespace weir
