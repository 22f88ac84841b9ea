#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace weir {

/// Returns the parts of `text` between any of these characters, without empty ones. Valid as long
/// as `text`.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text,
                                                         std::string_view separators = "\n") {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace weir
