#pragma once

// Where a user finds the manual page and the page in docs/ of a command.

#include <filesystem>
#include <string>

#include "tools/program/command_line/command_text.hpp"

namespace weir {

/// Returns the folder of this process's program.
[[nodiscard]] std::filesystem::path folder_of_program();

struct FoundPage {
  std::filesystem::path file;   ///< empty: the page is not here
  bool in_source_tree = false;  ///< and not installed
};

/// Finds `docs/group.md`, for example, for a program in `folder`: installed with it, in the
/// environment of its wheel, or in the source tree that `folder` is in.
[[nodiscard]] FoundPage find_page(const std::string& page, const std::filesystem::path& folder);

/// Returns what to read about a command: `man weir-run, /usr/share/doc/weir/docs/weir-run.md` if a
/// program in `folder` is installed with them, or the page of the source tree that `folder` is in.
/// Names only what is there; empty if nothing is.
[[nodiscard]] std::string further_reading(const CommandText& command,
                                          const std::filesystem::path& folder);

}  // namespace weir
