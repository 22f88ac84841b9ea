#pragma once

// The subcommands of `weir`, one file each (command_NAME.cpp). Bad input throws a UsageError of one
// line.

#include <functional>
#include <string>
#include <vector>

#include "tools/program/command_line.hpp"
#include "tools/weir/commands/run_flags.hpp"
#include "tools/weir/run/environment.hpp"

namespace weir::cli {

struct Command {
  CommandLine& line;
  /// Runs it with the parsed flags and the words after `--`. Returns the exit code.
  std::function<int(const std::vector<std::string>& program)> run;
};

[[nodiscard]] Command add_run_command(CommandLine& program);
[[nodiscard]] Command add_info_command(CommandLine& program);
[[nodiscard]] Command add_doctor_command(CommandLine& program);
[[nodiscard]] Command add_ps_command(CommandLine& program);
[[nodiscard]] Command add_set_command(CommandLine& program);
[[nodiscard]] Command add_top_command(CommandLine& program);
[[nodiscard]] Command add_timeline_command(CommandLine& program);

/// The exit codes of a command that runs another program.
[[nodiscard]] std::vector<ExitCode> exit_codes_of_program();

/// Runs the program, given by at least one word, as `weir run` does with these flags. Also sets
/// `more` in its environment, by the flags `more_flags`. Returns the exit code.
[[nodiscard]] int run_with(const RunFlags& flags, const std::vector<Variable>& more,
                           const FlagSources& more_flags, const std::vector<std::string>& words);

}  // namespace weir::cli
