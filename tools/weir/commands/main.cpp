// weir: finds the subcommand and runs it.

#include <string>
#include <vector>

#include "allocator/base/version.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/run_main.hpp"
#include "tools/replay/replay_command.hpp"
#include "tools/weir/commands/command.hpp"

namespace weir::cli {
namespace {

Command add_replay_command(CommandLine& program) {
  CommandLine& line = program.add_command(
      "replay", "replay allocation traces against pools, and print what each pool costs");
  return {line, [run = replay::add_replay(line)](const std::vector<std::string>& /*words*/) {
            return run();
          }};
}

int run_program(int argc, char** argv) {
  CommandLine line("run unchanged CUDA programs with Weir's pool and budget");
  line.add_version("weir " + std::string(kVersion));
  line.require_command();
  line.set_page("README.md");
  const std::vector<Command> commands{add_run_command(line),    add_info_command(line),
                                      add_doctor_command(line), add_ps_command(line),
                                      add_set_command(line),    add_top_command(line),
                                      add_replay_command(line), add_timeline_command(line)};
  if (const auto code = line.parse("weir", argc, argv)) return *code;
  return line.run([&] {
    for (const Command& command : commands) {
      if (command.line.named()) return command.run(line.program_words());
    }
    return 1;  // not reached: one subcommand is required
  });
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  return weir::run_main("weir", [&] { return weir::cli::run_program(argc, argv); });
}
