#pragma once

// The subcommands of weir-train, each in a file of its own (command_NAME.cpp), and what they share.
// Tables go to standard output; settings, progress and diagnostics to standard error. Exit codes:
// allocator/error.hpp.

#include <functional>
#include <stop_token>
#include <string>

#include "trainer/train.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}  // namespace CLI

namespace weir {

/// A subcommand that was added to the program.
struct Command {
  CLI::App* app;
  /// Runs it with the flags that were parsed, and returns the exit code.
  std::function<int(const std::stop_token& stop)> run;
};

[[nodiscard]] Command add_run_command(CLI::App& program);
[[nodiscard]] Command add_compare_command(CLI::App& program);
[[nodiscard]] Command add_predict_command(CLI::App& program);
[[nodiscard]] Command add_dispatch_command(CLI::App& program);

/// To standard output now, before anything else can fail; zero, or what went wrong.
[[nodiscard]] int print(const std::string& text);
/// Last of all, so that figures that could not be printed are not lost to their file too. Throws
/// Error when `print` returned an error.
void require_printed(int error);

/// The exit code of a program whose work ended like this.
[[nodiscard]] int exit_code(Outcome outcome);

}  // namespace weir
