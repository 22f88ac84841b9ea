#pragma once

// Undoes the wrapping of a message.

#include <string>

namespace weir::testing {

/// Joins lines to those that they continue, which they do if they are indented by `indent` spaces.
[[nodiscard]] inline std::string joined_lines(std::string text, std::size_t indent) {
  const std::string begin = "\n" + std::string(indent, ' ');
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    text.replace(at, begin.size(), " ");
  }
  return text;
}

}  // namespace weir::testing
