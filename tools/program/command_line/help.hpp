#pragma once

// The text of --help.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace weir
