#pragma once

// Reads a command line with CLI11, and reports its errors.

#include <functional>
#include <optional>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}  // namespace CLI

namespace weir {

/// Parses the command line. Prints --help and --version and returns an exit code for them. Throws a
/// one-line UsageError for a wrong flag, a missing or unknown subcommand or an empty value; it says
/// how to get help. `extras_hint` returns the message for words that no flag takes; it may be
/// empty.
[[nodiscard]] std::optional<int> parse_command_line(
    CLI::App& app, const std::string& program, int argc, const char* const* argv,
    const std::function<std::string()>& extras_hint = {});

}  // namespace weir
