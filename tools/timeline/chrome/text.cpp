#include "tools/timeline/chrome/text.hpp"

namespace weir::timeline {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

unsigned byte_at(std::string_view text, std::size_t place) {
  return place < text.size() ? static_cast<unsigned char>(text[place]) : 0U;
}

/// Returns the length of the UTF-8 character at `place`; 0 if it is invalid (Unicode 15, table
/// 3-7).
std::size_t character_at(std::string_view text, std::size_t place) {
  const unsigned first = byte_at(text, place);
  const unsigned second = byte_at(text, place + 1);
  const auto follows = [&](std::size_t offset) {
    return (byte_at(text, place + offset) & 0xC0U) == 0x80U;
  };
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return follows(1) ? 2 : 0;
  if (first < 0xF0) {
    const unsigned least = first == 0xE0 ? 0xA0U : 0x80U;
    const unsigned most = first == 0xED ? 0x9FU : 0xBFU;
    return second >= least && second <= most && follows(2) ? 3 : 0;
  }
  const unsigned least = first == 0xF0 ? 0x90U : 0x80U;
  const unsigned most = first == 0xF4 ? 0x8FU : 0xBFU;
  return second >= least && second <= most && follows(2) && follows(3) ? 4 : 0;
}

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
    const std::size_t length = character_at(text, place);
    result += length == 0 ? kReplacement : text.substr(place, length);
    place += length == 0 ? 1 : length;
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
