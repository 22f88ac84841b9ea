#include "tools/preload/summary/bare_json.hpp"

#include <algorithm>
#include <cstdio>

namespace weir::preload {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Returns the length in bytes of the first character of `text`, by the table of well-formed
/// sequences in the Unicode standard (3.9, D92); zero if malformed.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4 || text.size() < length) return 0;
  // The second byte's range is narrower to exclude overlong forms, surrogates and values beyond
  // U+10FFFF.
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t at = 2; at < length; ++at) {
    if (byte(at) < 0x80 || byte(at) > 0xBF) return 0;
  }
  return length;
}

void append_ascii(std::string& json, char letter) {
  if (letter == '"' || letter == '\\') {
    json += '\\';
    json += letter;
    return;
  }
  if (static_cast<unsigned char>(letter) >= 0x20) {
    json += letter;
    return;
  }
  char escaped[8];
  std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(letter));
  json += escaped;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 1) {
      append_ascii(json, text.front());
    } else {
      json += length == 0 ? kReplacement : text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return json + "\"";
}

std::string json_share(double share) {
  constexpr unsigned kDigits = 1'000'000;
  // Rounded without libm, which a preloaded library avoids.
  const unsigned parts = (static_cast<unsigned>(std::clamp(share, 0.0, 1.0) * kDigits * 2) + 1) / 2;
  char text[16];
  std::snprintf(text, sizeof text, "%u.%06u", parts / kDigits, parts % kDigits);
  return text;
}

void JsonObject::add(std::string_view name, std::string_view value) {
  if (!members_.empty()) members_ += ",";
  members_.append("\"").append(name).append("\":").append(value);
}

void JsonObject::add(std::string_view name, std::uint64_t value) {
  add(name, std::string_view(std::to_string(value)));
}

}  // namespace weir::preload
