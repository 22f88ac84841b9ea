#include "trainer/commands/program.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "allocator/base/version.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/standard_streams.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/run/interrupt.hpp"

namespace weir {

int run_program(int argc, char** argv) {
  const std::stop_token stop = stop_on_interrupt();
  // A closed table reader becomes an error, reported after the figures are in their file. So does a
  // file that exceeds the size limit.
  for (const int signal : {SIGPIPE, SIGXFSZ}) (void)std::signal(signal, SIG_IGN);
  set_log_level(log_level_from_environment());
  warn_of_unknown_variables(environ);
  CLI::App app{"Trains under a memory budget: the host runs ahead only as far as memory allows."};
  app.set_version_flag("--version", "weir-train " + std::string(kVersion));
  app.require_subcommand(1);
  app.fallthrough(false);
  const std::vector<Command> commands{add_run_command(app), add_compare_command(app),
                                      add_predict_command(app), add_dispatch_command(app)};
  if (const auto code = parse_command_line(app, "weir-train", argc, argv)) return *code;
  require_standard_output();
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run(stop);
  }
  return 1;  // not reached: one subcommand is required
}

}  // namespace weir
