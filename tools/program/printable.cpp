#include "tools/program/printable.hpp"

#include <algorithm>
#include <array>

#include "allocator/base/utf8.hpp"

namespace weir {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};
bool is_in(char32_t code, const auto& ranges) {
  return std::ranges::any_of(
      ranges, [code](const Range& range) { return range.first <= code && code <= range.last; });
}

/// Returns whether it is a control, a line end, a mark of direction or an invisible character.
bool is_hidden(char32_t code) {
  constexpr std::array<Range, 11> kRanges{{{0x0, 0x1f},
                                           {0x7f, 0x9f},
                                           {0xad, 0xad},
                                           {0x300, 0x36f},
                                           {0x61c, 0x61c},
                                           {0x200b, 0x200f},
                                           {0x2028, 0x202e},
                                           {0x2060, 0x206f},
                                           {0xfe00, 0xfe0f},
                                           {0xfeff, 0xfeff},
                                           {0xe0000, 0x10ffff}}};
  return is_in(code, kRanges);
}

/// Returns its terminal columns: two for East Asian text and pictures.
std::size_t width_of(char32_t code) {
  constexpr std::array<Range, 9> kWide{{{0x1100, 0x115f},
                                        {0x2e80, 0xa4cf},
                                        {0xac00, 0xd7a3},
                                        {0xf900, 0xfaff},
                                        {0xfe30, 0xfe6f},
                                        {0xff00, 0xff60},
                                        {0xffe0, 0xffe6},
                                        {0x1f300, 0x1faff},
                                        {0x20000, 0x3fffd}}};
  return is_in(code, kWide) ? 2U : 1U;
}

std::string escaped(char32_t code) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t digits = code < 0x100 ? 2 : code < 0x10000 ? 4 : 8;
  std::string text = digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
  for (std::size_t i = digits; i-- > 0;) text += kDigits[(code >> (4 * i)) & 0xfU];
  return text;
}

}  // namespace

std::string printable(std::string_view text, bool utf8) {
  std::string result;
  while (!text.empty()) {
    const Character glyph = first_character(text);
    if (!glyph.valid || is_hidden(glyph.code)) {
      result += escaped(glyph.code);
    } else if (glyph.bytes > 1 && !utf8) {
      result += '?';
    } else {
      result += text.substr(0, glyph.bytes);
    }
    text.remove_prefix(glyph.bytes);
  }
  return result;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character glyph = first_character(text);
    columns += width_of(glyph.code);
    text.remove_prefix(glyph.bytes);
  }
  return columns;
}

std::string fitted(std::string_view text, std::size_t columns, Align align) {
  std::size_t used = 0;
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Character glyph = first_character(text.substr(bytes));
    const std::size_t width = width_of(glyph.code);
    if (used + width > columns) break;
    used += width;
    bytes += glyph.bytes;
  }
  const std::string fill(columns - used, ' ');
  const std::string kept(text.substr(0, bytes));
  return align == Align::kLeft ? kept + fill : fill + kept;
}

}  // namespace weir
