#include "tools/timeline/model/shown_text.hpp"

#include <cstddef>

#include "allocator/base/utf8.hpp"

namespace weir::timeline {
namespace {

constexpr std::size_t kMostShown = 4096;

}  // namespace

std::string shown_text(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= kMostShown) return shown += "...";
    const Character character = first_character(text);
    if (!character.valid) {
      shown += kNoCharacter;
    } else {
      shown += character.is_shown() ? text.substr(0, character.bytes) : " ";
    }
    text.remove_prefix(character.bytes);
  }
  return shown;
}

}  // namespace weir::timeline
