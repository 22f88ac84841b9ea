#pragma once

// What a file's first line says about who runs it. Pure.

#include <optional>
#include <string>
#include <string_view>

namespace weir::cli {

struct Interpreter {
  std::string name;
  bool in_path = false;  ///< it is looked for in PATH: `#!/usr/bin/env NAME`
};

/// Nothing where `front`, the file's first bytes, is no script's. An empty name where the script
/// names none.
[[nodiscard]] std::optional<Interpreter> interpreter_of(std::string_view front);

/// Whether a shell runs such a file by itself though it names no interpreter: `front` is that of no
/// ELF file, and its first line is text. An empty file is one.
[[nodiscard]] bool is_shell_script(std::string_view front);

}  // namespace weir::cli
