#pragma once

// The subcommands of weir-train, each in a file of its own (command_NAME.cpp), and what they share.
// Tables go to standard output; settings, progress and diagnostics to standard error. Exit codes:
// allocator/base/error.hpp.

#include <functional>
#include <stop_token>
#include <string>

#include "trainer/run/train.hpp"

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

/// The exit code of a program whose work ended like this.
[[nodiscard]] int exit_code(Outcome outcome, bool diverged = false);
/// Says on standard error that training diverged, where it did.
void say_diverged(bool diverged);

}  // namespace weir
