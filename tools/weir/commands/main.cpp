// weir: finds the subcommand and runs it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/version.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/printable.hpp"
#include "tools/weir/commands/command.hpp"

namespace weir::cli {
namespace {

constexpr const char* kWant = "run, info, ps, set, top, replay or timeline";

int run_program(int argc, char** argv) {
  // Words after `--` are another program's, so CLI11 must not see them.
  char** const end = argv + argc;
  char** const mark = std::find(argv, end, std::string_view("--"));
  const std::vector<std::string> words(mark == end ? end : mark + 1, end);

  CLI::App app{"Swaps Weir's pool and budget into CUDA programs as they are."};
  app.set_version_flag("--version", "weir " + std::string(kVersion));
  app.require_subcommand(1);
  app.fallthrough(false);
  const std::vector<Command> commands{
      add_run_command(app), add_info_command(app),   add_ps_command(app),      add_set_command(app),
      add_top_command(app), add_replay_command(app), add_timeline_command(app)};
  try {
    app.parse(static_cast<int>(mark - argv), argv);
  } catch (const CLI::Success& asked) {
    return print_help(app, asked);
  } catch (const CLI::RequiredError& error) {
    const std::vector<CLI::App*> known = app.get_subcommands();
    if (!known.empty()) {
      throw UsageError(std::string(error.what()) + " (see weir " + known.front()->get_name() +
                       " --help)");
    }
    // CLI11 reports a missing subcommand even if a wrong word stands in its place.
    const std::vector<std::string> rest = app.remaining();
    if (rest.empty()) throw UsageError(std::string(error.what()) + ": " + kWant);
    throw UsageError("'" + rest.front() + "' is not known: " + kWant);
  } catch (const CLI::ExtrasError& error) {
    if (!commands.front().app->parsed()) throw UsageError(error.what());
    throw UsageError(std::string(error.what()) +
                     " (a program to run stands after --: weir run [FLAGS] -- PROGRAM)");
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + " (see weir --help)");
  }
  refuse_empty_values(app);
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run(words);
  }
  return 1;  // not reached: one subcommand is required
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  weir::hold_standard_streams();
  try {
    return weir::cli::run_program(argc, argv);
  } catch (const weir::UsageError& error) {
    // The message quotes user input, such as a file name with a newline.
    std::fprintf(stderr, "weir: %s\n", weir::cli::printable(error.what(), true).c_str());
    return weir::exit_code(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir: %s\n", error.what());
    return weir::exit_code(error);
  }
}
