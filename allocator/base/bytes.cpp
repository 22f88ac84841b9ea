#include "allocator/base/bytes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

namespace weir {
namespace {

struct Unit {
  std::string_view name;
  unsigned shift;
};
constexpr std::array<Unit, 5> kUnits{
    {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}}};

}  // namespace

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::optional<double> parse_decimal(std::string_view text) {
  // Not from_chars: GCC 12's for double needs libm, which libweir.so does not link.
  constexpr std::size_t kMostDigits = 15;  // both parts stay exact
  const auto point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = text.substr(std::min(point + 1, text.size()));
  const auto digits = [](std::string_view t) {
    return t.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (whole.size() > kMostDigits || whole.size() + part.size() == 0) return std::nullopt;
  if (!digits(whole) || !digits(part)) return std::nullopt;
  double scale = 1;
  double numerator = 0;
  for (const char digit : part.substr(0, kMostDigits)) {
    numerator = numerator * 10 + (digit - '0');
    scale *= 10;
  }
  return static_cast<double>(parse_whole(whole).value_or(0)) + numerator / scale;
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const std::string_view number = text.substr(0, text.size() - unit.name.size());
    if (const auto whole = parse_whole(number)) {
      if (*whole > (UINT64_MAX >> unit.shift)) return std::nullopt;
      return Bytes{*whole << unit.shift};
    }
    const auto value = parse_decimal(number);
    if (!value) return std::nullopt;
    const double bytes = std::ldexp(*value, static_cast<int>(unit.shift));
    if (!(bytes >= 0 && bytes < 0x1p63)) return std::nullopt;
    return Bytes{static_cast<std::uint64_t>(bytes)};
  }
  return std::nullopt;
}

std::string format_bytes(Bytes bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes.count < (std::uint64_t{1} << unit.shift) && unit.shift != 0) continue;
    const std::uint64_t whole = bytes.count >> unit.shift;
    const double value =
        std::ldexp(static_cast<double>(bytes.count), -static_cast<int>(unit.shift));
    const bool exact = (whole << unit.shift) == bytes.count;
    const int digits = exact || value >= 100 ? 0 : (value >= 10 ? 1 : 2);
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%.*f %.*s", digits, value,
                  static_cast<int>(unit.name.size()), unit.name.data());
    return text.data();
  }
  return "0 B";
}

std::string exact_bytes(Bytes bytes) {
  constexpr int kMostDigits = 2;
  for (const Unit& unit : kUnits) {
    if (bytes.count < (std::uint64_t{1} << unit.shift)) continue;
    const std::uint64_t whole = bytes.count >> unit.shift;
    if ((whole << unit.shift) == bytes.count) return std::to_string(whole).append(unit.name);
    const double value =
        std::ldexp(static_cast<double>(bytes.count), -static_cast<int>(unit.shift));
    for (int digits = 1; digits <= kMostDigits; ++digits) {
      std::array<char, 48> number{};
      std::snprintf(number.data(), number.size(), "%.*f", digits, value);
      std::string text = std::string(number.data()).append(unit.name);
      if (parse_bytes(text) == bytes) return text;
    }
  }
  return "0B";
}

}  // namespace weir
