#pragma once

// The subcommands of `weir`, each in a file of its own (command_NAME.cpp). Bad input is a
// UsageError of one line.

#include <functional>
#include <string>
#include <vector>

#include "tools/weir/commands/run_flags.hpp"
#include "tools/weir/run/environment.hpp"

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
[[nodiscard]] Command add_ps_command(CLI::App& program);
[[nodiscard]] Command add_replay_command(CLI::App& program);
[[nodiscard]] Command add_set_command(CLI::App& program);
[[nodiscard]] Command add_top_command(CLI::App& program);
[[nodiscard]] Command add_timeline_command(CLI::App& program);

/// What `weir run` does with its flags and the program's words, of which there is one at least. The
/// program finds `more` set, too. Returns the exit code.
[[nodiscard]] int run_with(const RunFlags& flags, const std::vector<Variable>& more,
                           const std::vector<std::string>& words);

}  // namespace weir::cli
