#include "tools/timeline/chrome/text.hpp"

#include <unordered_map>

#include "allocator/base/utf8.hpp"
#include "tools/timeline/model/tracks.hpp"

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

namespace weir::timeline::chrome {

namespace {

constexpr std::array<std::string_view, 4> kServed{"own", "passed", "grown", "handed_over"};
constexpr std::array<std::string_view, 3> kStalls{"budget", "run_ahead", "turn"};
constexpr std::array<std::string_view, 6> kCopies{"other",     "to_device", "from_device",
                                                  "on_device", "peer",      "on_host"};
constexpr std::array<std::string_view, 6> kMemories{"other",    "device",  "pinned",
                                                    "pageable", "managed", "array"};

std::unordered_map<std::string_view, TimelineKind> all_kinds() {
  std::unordered_map<std::string_view, TimelineKind> kinds;
  for (std::size_t i = 0; i < kTimelineKinds; ++i) {
    const auto kind = static_cast<TimelineKind>(i);
    kinds.emplace(kind_name(kind), kind);
  }
  return kinds;
}

}  // namespace

std::span<const std::string_view> detail_words(TimelineKind kind) noexcept {
  switch (kind) {
    case TimelineKind::kAllocate:
      return kServed;
    case TimelineKind::kStall:
    case TimelineKind::kPace:
      return kStalls;
    case TimelineKind::kCopy:
      return kCopies;
    case TimelineKind::kDriverAlloc:
    case TimelineKind::kDriverFree:
      return kMemories;
    default:
      return {};
  }
}

std::optional<TimelineKind> kind_of(std::string_view word) noexcept {
  static const std::unordered_map<std::string_view, TimelineKind> kKinds = all_kinds();
  const auto found = kKinds.find(word);
  if (found == kKinds.end()) return std::nullopt;
  return found->second;
}

}  // namespace weir::timeline::chrome
