#pragma once

// The words of a program, and its variables, as execve and posix_spawn take them.

#include <string>
#include <vector>

namespace weir {

/// Returns a pointer to each text and a null pointer at the end. Valid while `texts` is not
/// changed.
[[nodiscard]] inline std::vector<char*> argument_pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace weir
