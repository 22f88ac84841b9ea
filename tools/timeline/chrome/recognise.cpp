#include "tools/timeline/chrome/recognise.hpp"

#include <cstddef>

#include "tools/timeline/chrome/words.hpp"

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
