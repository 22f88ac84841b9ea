#pragma once

// The subcommands of weir-train, one file each (command_NAME.cpp), and what they share. Tables go
// to standard output; settings, progress and diagnostics to standard error. Exit codes:
// allocator/base/error.hpp.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "tools/program/command_line.hpp"
#include "trainer/run/train.hpp"

namespace weir {

struct Command {
  CommandLine& line;
  /// Runs it with the parsed flags and returns the exit code.
  std::function<int(const std::stop_token& stop)> run;
};

/// Adds a command whose flags are made by `Kind(line)`, and which `run(stop)` of that runs.
template <typename Kind>
[[nodiscard]] Command add_command(CommandLine& program, const std::string& name,
                                  const std::string& about) {
  CommandLine& line = program.add_command(name, about);
  const auto kind = std::make_shared<Kind>(line);  // flags write into it: it stays where it is
  return {line, [kind](const std::stop_token& stop) { return kind->run(stop); }};
}

[[nodiscard]] Command add_run_command(CommandLine& program);
[[nodiscard]] Command add_compare_command(CommandLine& program);
[[nodiscard]] Command add_predict_command(CommandLine& program);
[[nodiscard]] Command add_dispatch_command(CommandLine& program);
[[nodiscard]] Command add_wide_command(CommandLine& program);

/// Returns the exit code for this outcome.
[[nodiscard]] int exit_code(Outcome outcome, bool diverged = false);
/// Prints a report of a lack of memory to standard error, if there is one, and where to read more.
void say_out_of_memory(const std::string& report);
/// Prints to standard error if training diverged.
void say_diverged(bool diverged);

/// weir-train without `main`, shared by several programs: finds the subcommand, runs it and returns
/// the exit code. Throws UsageError and whatever a run throws.
int run_program(int argc, char** argv);

}  // namespace weir
