// weir: finds the subcommand and runs it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/version.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/run_main.hpp"
#include "tools/weir/commands/command.hpp"

namespace weir::cli {
namespace {

int run_program(int argc, char** argv) {
  // Words after `--` are another program's, so CLI11 must not see them.
  char** const end = argv + argc;
  char** const mark = std::find(argv, end, std::string_view("--"));
  const std::vector<std::string> words(mark == end ? end : mark + 1, end);

  CLI::App app{"Runs unchanged CUDA programs with Weir's pool and budget."};
  app.set_version_flag("--version", "weir " + std::string(kVersion));
  app.require_subcommand(1);
  app.fallthrough(false);
  const std::vector<Command> commands{
      add_run_command(app), add_info_command(app),   add_ps_command(app),      add_set_command(app),
      add_top_command(app), add_replay_command(app), add_timeline_command(app)};
  const auto extras_hint = [&] {
    return commands.front().app->parsed()
               ? " (the program to run comes after --: weir run [FLAGS] -- PROGRAM)"
               : "";
  };
  if (const auto code =
          parse_command_line(app, "weir", static_cast<int>(mark - argv), argv, extras_hint)) {
    return *code;
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run(words);
  }
  return 1;  // not reached: one subcommand is required
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  return weir::run_main("weir", [&] { return weir::cli::run_program(argc, argv); });
}
