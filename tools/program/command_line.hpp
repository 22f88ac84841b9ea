#pragma once

// Reading a command line with CLI11, and what is wrong with one.

#include <functional>
#include <optional>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}  // namespace CLI

namespace weir {

/// Parses the command line. Returns an exit code if that was all: --help and --version are printed.
/// Throws UsageError of one line for a wrong flag, a missing or unknown subcommand and an empty
/// value of a flag; it says how to get help. `extras_hint` returns what to say instead of words
/// that no flag takes; it may be empty.
[[nodiscard]] std::optional<int> parse_command_line(
    CLI::App& app, const std::string& program, int argc, const char* const* argv,
    const std::function<std::string()>& extras_hint = {});

}  // namespace weir
