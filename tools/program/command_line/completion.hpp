#pragma once

// Scripts that complete a program's commands, flags and values in a shell.

#include <string>

#include "tools/program/command_line/command_text.hpp"

namespace weir {

/// Returns a script for bash, which needs no other.
[[nodiscard]] std::string bash_completion(const CommandText& program);
/// Returns a function file for zsh's compinit, named `_PROGRAM`. May also be read by `source`.
[[nodiscard]] std::string zsh_completion(const CommandText& program);

}  // namespace weir
