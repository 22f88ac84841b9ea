#include "tools/timeline/chrome/text.hpp"

#include "allocator/base/utf8.hpp"

namespace weir::timeline {
namespace {

void append_escape(std::string& result, unsigned char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  result += "\\u00";
  result += kDigits[c / 16U];
  result += kDigits[c % 16U];
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t place = 0; place < text.size();) {
    const Character character = first_character(text.substr(place));
    result += character.valid ? text.substr(place, character.bytes) : kNoCharacter;
    place += character.bytes;
  }
  return result;
}

std::string escaped(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string result;
  for (std::size_t place = 0; place < valid.size(); ++place) {
    const auto c = static_cast<unsigned char>(valid[place]);
    const char next = place + 1 < valid.size() ? valid[place + 1] : '\0';
    const bool ends_text = c == '\\' && place + 1 == valid.size();
    const bool begins_tag = c == '<' && (next == '/' || next == '!');
    if (c < 0x20 || c == 0x7F || ends_text || begins_tag) {
      append_escape(result, c);
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += valid[place];
  }
  return result;
}

}  // namespace weir::timeline
