#pragma once

// Characters of texts that may hold any bytes.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace weir {

/// U+FFFD, which stands for a byte that is no UTF-8.
inline constexpr std::string_view kNoCharacter = "\xEF\xBF\xBD";

/// One character, or one byte that is no UTF-8.
struct Character {
  char32_t code = 0;      ///< of an invalid one, the byte
  std::size_t bytes = 1;  ///< of the text
  bool valid = false;

  /// Whether it is valid and no control character of ASCII.
  [[nodiscard]] constexpr bool is_shown() const noexcept {
    return valid && code >= 0x20 && code != 0x7F;
  }
};

/// Whether a byte continues a character.
[[nodiscard]] constexpr bool continues_character(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// Returns the first character of a text that is not empty (Unicode 15, table 3-7).
[[nodiscard]] constexpr Character first_character(std::string_view text) noexcept {
  const unsigned first = static_cast<unsigned char>(text[0]);
  if (first < 0x80U) return {first, 1, true};
  const std::size_t length = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : 2;
  if (first < 0xC2U || first > 0xF4U || text.size() < length) return {first, 1, false};
  char32_t code = first & (0x7FU >> length);
  for (const char byte : text.substr(1, length - 1)) {
    if (!continues_character(byte)) return {first, 1, false};
    code = (code << 6U) | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[length] || code > 0x10FFFF || surrogate) return {first, 1, false};
  return {code, length, true};
}

/// Returns the beginning of `text` with at most so many bytes. Cuts no character.
[[nodiscard]] constexpr std::string_view cut_between_characters(std::string_view text,
                                                                std::size_t most) noexcept {
  if (text.size() <= most) return text;
  constexpr std::size_t kLongest = 4;  // so many bytes have the longest characters
  const std::size_t least = most - std::min(most, kLongest);
  std::size_t end = most;
  while (end > least && continues_character(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace weir
