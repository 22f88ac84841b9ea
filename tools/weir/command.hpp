#pragma once

// The subcommands of `weir`, each in a file of its own (command_NAME.cpp). Bad input is a
// UsageError of one line.

#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}  // namespace CLI

namespace weir::cli {

/// A subcommand that was added to the program.
struct Command {
  CLI::App* app;
  /// Runs it with the flags that were parsed and the words after `--`; the exit code.
  std::function<int(const std::vector<std::string>& program)> run;
};

[[nodiscard]] Command add_run_command(CLI::App& program);
[[nodiscard]] Command add_info_command(CLI::App& program);
[[nodiscard]] Command add_replay_command(CLI::App& program);

}  // namespace weir::cli
