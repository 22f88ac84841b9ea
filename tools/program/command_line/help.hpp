#pragma once

// What people and shells read of a command line: the text of --help, manual pages in the language
// of man(7), and scripts that complete commands, flags and values.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/program/command_line/command_text.hpp"

namespace weir {

/// Returns the help of a command, in lines of at most `width` columns.
[[nodiscard]] std::string help_text(const CommandText& command, std::size_t width);

/// Returns the width of help for an output of that many columns: 50 to 100. 80 if they are unknown
/// or 0.
[[nodiscard]] std::size_t help_width(std::optional<std::uint64_t> columns);

/// Breaks `text` at its spaces, and words that are too long at their commas, into lines of at most
/// `width` columns, the first of which begins in column `first`; the others are indented by
/// `indent`.
[[nodiscard]] std::string wrap(const std::string& text, std::size_t width, std::size_t first,
                               std::size_t indent);

struct ManualPage {
  std::string file;  ///< `weir-run.1`
  std::string text;
};

/// Returns a page for the program and one for each of its commands. The subcommands of a command
/// are on its page. `documents` is the folder of the pages in docs/.
[[nodiscard]] std::vector<ManualPage> manual_pages(const CommandText& program,
                                                   const std::string& documents);

/// Returns a script for bash, which needs no other.
[[nodiscard]] std::string bash_completion(const CommandText& program);
/// Returns a function file for zsh's compinit, named `_PROGRAM`. May also be read by `source`.
[[nodiscard]] std::string zsh_completion(const CommandText& program);

}  // namespace weir
