#include "tools/timeline/chrome/words.hpp"

#include <unordered_map>

#include "tools/timeline/model/tracks.hpp"

namespace weir::timeline::chrome {
namespace {

constexpr std::array<std::string_view, 4> kServed{"own", "passed", "grown", "handed_over"};
constexpr std::array<std::string_view, 4> kStalls{"budget", "run_ahead", "turn", "open"};
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
