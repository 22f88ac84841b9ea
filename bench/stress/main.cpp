// weir-stress: the stress benchmarks `fragmentation` and `oom`. Usually called by bench/run.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "allocator/base/error.hpp"
#include "bench/stress/commands.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir::bench {
namespace {

void add_flags(CLI::App& app, StressFlags& flags) {
  app.add_option(
      "--pool", flags.pools,
      "our pools, comma-separated, in the syntax of weir replay; default: all but unpooled");
  app.add_option("--peer", flags.peers, "other allocators, comma-separated: all, none, or names")
      ->capture_default_str();
  app.add_option("--upstream", flags.upstream,
                 "where memory comes from: simulated, host, or cuda (in a build without peers)")
      ->capture_default_str();
  app.add_option("--size", flags.size, "peak of requested bytes of a pattern, at least 64MiB")
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "seed of the random patterns")->capture_default_str();
}

int run_program(int argc, char** argv) {
  CLI::App app{"Stress benchmarks: what allocators reserve, and how they run out of memory."};
  app.require_subcommand(1);
  StressFlags flags;
  CLI::App* const fragmentation =
      app.add_subcommand("fragmentation", "table of reserved memory, by pattern and allocator");
  CLI::App* const oom = app.add_subcommand(
      "oom", "runs patterns in less memory than they need, and checks that failures are clean");
  add_flags(*fragmentation, flags);
  add_flags(*oom, flags);
  if (const auto code = parse_command_line(app, "weir-stress", argc, argv)) return *code;
  require_standard_output();
  const Stress stress = checked(flags);
  const int code = fragmentation->parsed() ? run_fragmentation(stress) : run_oom(stress);
  if (std::fflush(stdout) != 0) throw Error("standard output cannot be written");
  return code;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  return weir::run_main("weir-stress", [&] { return weir::bench::run_program(argc, argv); });
}
