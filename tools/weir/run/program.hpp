#pragma once

// The program that `weir run` starts: finds it, and checks that a library can be preloaded into it.
// Everything here throws UsageError of one line.

#include <string>
#include <vector>

#include "allocator/base/setting.hpp"

namespace weir::cli {

/// Returns the file for `name`: itself if it has a slash, otherwise the first executable one in
/// PATH.
[[nodiscard]] std::string find_program(const std::string& name, const Environment& environment);

/// Arguments for execve.
struct Started {
  std::string path;
  std::vector<std::string> words;  ///< argv
};

/// Returns how to start `path` with `words`, of which the first is its name. /bin/sh runs a script
/// without #!, as with a shell and execvp. Refuses a file that cannot be preloaded into; for a
/// script, its interpreter counts.
[[nodiscard]] Started check_program(const std::string& path, std::vector<std::string> words,
                                    const Environment& environment);

}  // namespace weir::cli
