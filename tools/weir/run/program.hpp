#pragma once

// The program that `weir run` is to start: where it is, and whether a library can be preloaded into
// it. Everything here throws UsageError of one line.

#include <string>
#include <vector>

#include "allocator/base/setting.hpp"

namespace weir::cli {

/// The file that `name` means: itself if it has a slash, and otherwise the first executable one in
/// PATH.
[[nodiscard]] std::string find_program(const std::string& name, const Environment& environment);

/// What is given to execve.
struct Started {
  std::string path;
  std::vector<std::string> words;  ///< argv
};

/// How `path` is to be started with `words`, the first of which is its name. A script without #! is
/// run by /bin/sh, as a shell and execvp do. Refuses a file that nothing can be preloaded into; a
/// script stands for what runs it.
[[nodiscard]] Started check_program(const std::string& path, std::vector<std::string> words,
                                    const Environment& environment);

}  // namespace weir::cli
