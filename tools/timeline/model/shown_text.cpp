#include "tools/timeline/model/shown_text.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::timeline {
namespace {

constexpr std::size_t kMostShown = 4096;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Returns the length of the first UTF-8 character of `text`; 0 if it is invalid.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xC2   ? 0
                           : first < 0xE0 ? 2
                           : first < 0xF0 ? 3
                           : first < 0xF5 ? 4
                                          : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  const std::uint8_t second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool too_large = first == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : size;
}

}  // namespace

std::string shown_text(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= kMostShown) return shown += "...";
    const std::size_t size = character(text);
    if (size == 0) {
      shown += kReplacement;
    } else if (size == 1 && (static_cast<std::uint8_t>(text[0]) < 0x20 || text[0] == 0x7F)) {
      shown += ' ';
    } else {
      shown += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return shown;
}

}  // namespace weir::timeline
