#include <cstddef>
#include <optional>

#include "allocator/base/error.hpp"
#include "tools/timeline/chrome/chrome.hpp"
#include "tools/timeline/chrome/event.hpp"
#include "tools/timeline/chrome/foreign.hpp"
#include "tools/timeline/chrome/records.hpp"
#include "tools/timeline/chrome/text.hpp"

namespace weir::timeline {
namespace {

/// Chooses by the first event whether the events are ours or another program's.
class Chooser final : public chrome::EventTaker {
 public:
  explicit Chooser(ReadState& state) : ours_(state), foreign_(state) {}

  void take(const chrome::Event& event) override {
    if (!is_ours_) is_ours_ = chrome::is_ours(event);
    if (*is_ours_) {
      ours_.take(event);
    } else {
      foreign_.take(event);
    }
  }
  [[nodiscard]] Timeline finish(const std::string& path, const chrome::FileFacts& facts) {
    if (!is_ours_) throw UsageError(path + ": not a timeline: it has no events");
    return *is_ours_ ? ours_.finish() : foreign_.finish(facts);
  }

 private:
  chrome::RecordTaker ours_;
  chrome::ForeignTaker foreign_;
  std::optional<bool> is_ours_;
};

}  // namespace

Timeline read_chrome(const std::string& path, const ReadLimits& limits) {
  ReadState state{.path = path, .limits = limits};
  Chooser chooser(state);
  const chrome::FileFacts facts = chrome::read_events(path, limits, chooser);
  return chooser.finish(path, facts);
}

}  // namespace weir::timeline

namespace weir::timeline::chrome {

namespace {

/// Returns the index of the first byte at or after `place` that is not white space.
std::size_t skip_space(std::string_view text, std::size_t place) {
  const std::size_t found = text.find_first_not_of(" \t\r\n", place);
  return found == std::string_view::npos ? text.size() : found;
}

}  // namespace

// A Perfetto trace begins with the tag of its first packet, which is a newline. So the byte after
// the bracket decides whether this is JSON.
bool recognises(std::string_view front) {
  const std::size_t bracket = skip_space(front, 0);
  if (bracket == front.size()) return false;
  const std::size_t next = skip_space(front, bracket + 1);
  const char follows = next < front.size() ? front[next] : '}';
  if (front[bracket] == '{') return follows == '"' || follows == '}';
  return front[bracket] == '[' && (follows == '{' || follows == ']' || follows == '}');
}

bool recognises_ours(std::string_view front) {
  return front.starts_with('[') && front.find(kBeginEvent) != std::string_view::npos;
}

}  // namespace weir::timeline::chrome
