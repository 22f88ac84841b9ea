// weir-stress: the stress benchmarks `fragmentation` and `oom`. Usually called by bench/run.

#include <cstdio>
#include <string>

#include "allocator/base/error.hpp"
#include "bench/stress/commands.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir::bench {
namespace {

void add_flags(CommandLine& line, StressFlags& flags) {
  line.add("--pool", flags.pools, Value("all|POOL,..."),
           "our pools, in the syntax of weir replay (default: all but unpooled)");
  line.add("--peer", flags.peers, Value("all|none|NAME,..."), "other allocators");
  line.add("--size", flags.size, Value("BYTES"),
           "peak of requested bytes of a pattern, at least 64MiB");
  line.add("--upstream", flags.upstream, Value("simulated|host|cuda"),
           "where memory comes from; cuda needs a build without peers");
  line.add("--wide", flags.wide, "show what the patterns do in the table, and fold nothing");
  line.add("--seed", flags.seed, Value("N"), "seed of the random patterns");
}

int run_program(int argc, char** argv) {
  CommandLine line("measure what allocators reserve, and how they run out of memory");
  line.require_command();
  line.set_page("docs/fragmentation.md");
  line.set_exit_codes({{"0", "finished, and failures are clean"},
                       {"1", "a failure is not clean, or the program or the machine failed"},
                       {"2", "bad input"}});
  StressFlags flags;
  CommandLine& fragmentation = line.add_command(
      "fragmentation", "print a table of reserved memory, by pattern and allocator");
  CommandLine& oom = line.add_command(
      "oom", "run patterns in less memory than they need, and check that failures are clean");
  add_flags(fragmentation, flags);
  add_flags(oom, flags);
  if (const auto code = line.parse("weir-stress", argc, argv)) return *code;
  require_standard_output();
  return line.run([&] {
    const Stress stress = checked(flags);
    const int code = fragmentation.named() ? run_fragmentation(stress) : run_oom(stress);
    if (std::fflush(stdout) != 0) throw Error("standard output cannot be written");
    return code;
  });
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  return weir::run_main("weir-stress", [&] { return weir::bench::run_program(argc, argv); });
}
