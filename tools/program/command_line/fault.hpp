#pragma once

// Says in one line what is wrong with a command line.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/program/command_line/reading.hpp"

namespace weir {

/// Returns what is wrong with the words, and which --help to read; nullopt if nothing is.
[[nodiscard]] std::optional<std::string> find_fault(const CommandText& program,
                                                    const Reading& reading);
/// Returns ` (see COMMAND --help)`.
[[nodiscard]] std::string see_help(const CommandText& command);
/// Returns the refusal with that at its end, if it begins with the name of a flag or an argument of
/// the command.
[[nodiscard]] std::string with_help(const CommandText& command, const std::string& refusal);
/// Returns the name that `word` was probably meant to be; empty if none is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace weir
