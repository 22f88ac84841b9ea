#pragma once

// Finds the interpreter that a file's first line names. Pure.

#include <optional>
#include <string>
#include <string_view>

namespace weir::cli {

struct Interpreter {
  std::string name;
  bool in_path = false;  ///< searched in PATH: `#!/usr/bin/env NAME`
};

/// Returns nothing if `front`, the file's first bytes, is not a script; an empty name if the script
/// names no interpreter.
[[nodiscard]] std::optional<Interpreter> interpreter_of(std::string_view front);

/// Whether a shell runs such a file itself without an interpreter line: `front` is not ELF and its
/// first line is text. True for an empty file.
[[nodiscard]] bool is_shell_script(std::string_view front);

}  // namespace weir::cli
