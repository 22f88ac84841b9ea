#include "allocator/base/setting.hpp"

#include <cstdint>
#include <cstdlib>
#include <optional>

namespace weir {
namespace {

/// Writes control characters as `\x0a`, so a refusal stays one line.
std::string shown(std::string_view value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr unsigned char kSpace = 0x20;
  constexpr unsigned char kDelete = 0x7f;
  std::string text;
  for (const char each : value) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >= kSpace && byte != kDelete) {
      text += each;
      continue;
    }
    text += "\\x";
    text += kDigits[byte / kDigits.size()];
    text += kDigits[byte % kDigits.size()];
  }
  return text;
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

void refuse(std::string_view name, std::string_view value, std::string_view want) {
  throw UsageError(std::string(name) + "='" + shown(value) +
                   "' is not allowed: " + std::string(want));
}

Bytes parse_some_bytes(std::string_view name, std::string_view text) {
  const std::optional<std::uint64_t> plain = parse_whole(text);
  const std::optional<Bytes> bytes = plain ? Bytes{*plain} : parse_bytes(text);
  if (!bytes || bytes->count == 0) refuse(name, text, "a number of bytes from 1 on, or 25MiB");
  return *bytes;
}

}  // namespace weir
