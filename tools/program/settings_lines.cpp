#include "tools/program/settings_lines.hpp"

#include <algorithm>

#include "tools/program/printable.hpp"

namespace weir {

std::string settings_lines(std::span<const SettingLine> lines, std::size_t most) {
  constexpr std::size_t kIndent = 2;
  constexpr std::size_t kComma = 1;
  constexpr char kHeld = '\x1f';  // stands for a space at which no line breaks
  std::string text = "settings:";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // The text of one setting, without the word before it.
    std::string one = settings_text(lines.subspan(i, 1)).substr(text.find(':') + 2);
    if (columns_of(one) + kIndent + kComma <= most) std::ranges::replace(one, ' ', kHeld);
    text += " " + one + (i + 1 < lines.size() ? "," : "");
  }
  text = wrapped(text, kIndent, most);
  std::ranges::replace(text, kHeld, ' ');
  return text;
}

}  // namespace weir
