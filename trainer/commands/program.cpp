#include "trainer/commands/program.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "allocator/base/version.hpp"
#include "tools/program/command_line.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/run/interrupt.hpp"

namespace weir {
namespace {

/// Returns `run, compare, predict or dispatch`.
std::string names_of(const std::vector<Command>& commands) {
  std::string names;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (i != 0) names += i + 1 == commands.size() ? " or " : ", ";
    names += commands[i].app->get_name();
  }
  return names;
}

}  // namespace

int run_program(int argc, char** argv) {
  hold_standard_streams();
  const std::stop_token stop = stop_on_interrupt();
  // A closed table reader becomes an error, reported after the figures are in their file. So does a
  // file that exceeds the size limit.
  for (const int signal : {SIGPIPE, SIGXFSZ}) (void)std::signal(signal, SIG_IGN);
  set_log_level(log_level_from_environment());
  warn_of_unknown_variables(environ);
  CLI::App app{"Trains under a memory budget: the host may run ahead, but only as far as it fits."};
  app.set_version_flag("--version", "weir-train " + std::string(kVersion));
  app.require_subcommand(1);
  app.fallthrough(false);
  const std::vector<Command> commands{add_run_command(app), add_compare_command(app),
                                      add_predict_command(app), add_dispatch_command(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return print_help(app, asked);
  } catch (const CLI::RequiredError& error) {
    // CLI11 reports a missing subcommand even if a wrong word stands in its place.
    const std::vector<std::string> words = app.remaining();
    if (words.empty()) throw UsageError(std::string(error.what()) + ": " + names_of(commands));
    throw UsageError("'" + words.front() + "' is not known: " + names_of(commands));
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + " (see weir-train --help)");
  }
  refuse_empty_values(app);
  require_standard_output();
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run(stop);
  }
  return 1;  // not reached: one subcommand is required
}

}  // namespace weir
