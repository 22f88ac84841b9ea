// weir-stress: the stress benchmarks `fragmentation` and `oom`. Usually called by bench/run.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "bench/stress/commands.hpp"
#include "tools/program/command_line.hpp"

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
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return print_help(app, asked);
  } catch (const CLI::RequiredError&) {
    const std::vector<std::string> rest = app.remaining();
    throw UsageError((rest.empty() ? "no table is named" : "'" + rest.front() + "' is not known") +
                     std::string(": fragmentation or oom"));
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + " (see weir-stress --help)");
  }
  refuse_empty_values(app);
  require_standard_output();
  const Stress stress = checked(flags);
  const int code = fragmentation->parsed() ? run_fragmentation(stress) : run_oom(stress);
  if (std::fflush(stdout) != 0) throw Error("standard output cannot be written");
  return code;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  weir::hold_standard_streams();
  try {
    return weir::bench::run_program(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir-stress: %s\n", error.what());
    return weir::exit_code(error);
  }
}
