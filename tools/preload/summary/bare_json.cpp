#include "tools/preload/summary/bare_json.hpp"

#include <cstdio>

#include "allocator/base/utf8.hpp"

namespace weir::preload {
namespace {

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
    const Character character = first_character(text);
    if (!character.valid) {
      json += kNoCharacter;
    } else if (character.bytes == 1) {
      append_ascii(json, text.front());
    } else {
      json += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
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

std::string json_object(const std::vector<JsonMember>& members) {
  std::string text = "{";
  for (const JsonMember& member : members) {
    if (text.size() > 1) text += ",";
    text += member.text;
  }
  return text + "}";
}

}  // namespace weir::preload
