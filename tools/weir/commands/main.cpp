// weir: finds the subcommand and runs it.

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
  // Words after `--` are another program's, so they are not ours to read.
  char** const end = argv + argc;
  char** const mark = std::find(argv, end, std::string_view("--"));
  const std::vector<std::string> words(mark == end ? end : mark + 1, end);

  CommandLine line("Runs unchanged CUDA programs with Weir's pool and budget.");
  line.add_version("weir " + std::string(kVersion));
  line.require_command();
  const std::vector<Command> commands{add_run_command(line),     add_info_command(line),
                                      add_ps_command(line),      add_set_command(line),
                                      add_top_command(line),     add_replay_command(line),
                                      add_timeline_command(line)};
  const auto extras_hint = [&] {
    return commands.front().line.named()
               ? " (the program to run comes after --: weir run [FLAGS] -- PROGRAM)"
               : "";
  };
  if (const auto code = line.parse("weir", static_cast<int>(mark - argv), argv, extras_hint)) {
    return *code;
  }
  for (const Command& command : commands) {
    if (command.line.named()) return command.run(words);
  }
  return 1;  // not reached: one subcommand is required
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  return weir::run_main("weir", [&] { return weir::cli::run_program(argc, argv); });
}
