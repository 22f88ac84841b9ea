// weir-stress: the stress benchmarks `fragmentation` and `oom`. Usually called by bench/run.

#include <cstdio>
#include <string>

#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "bench/peers/peers.hpp"
#include "bench/stress/commands.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/replay/subject/upstreams.hpp"

namespace weir::bench {
namespace {

/// The flags as given.
struct StressFlags {
  std::string pools;
  std::string peers = "all";
  std::string upstream = "simulated";
  std::string size = "1GiB";
  std::string seed = "1";
  bool wide = false;
};

/// Returns the names of all caching pools.
std::string kept_pools() {
  std::string names;
  for (const PoolKind kind : pool_kinds()) {
    if (kind == PoolKind::kUnpooled) continue;
    names += (names.empty() ? "" : ",") + std::string(to_string(kind));
    if (kind == PoolKind::kRound) names += ",round:28";
  }
  return names;
}

replay::UpstreamKind upstream_of(const std::string& text) {
  const auto kind = parse_name<replay::UpstreamKind>("--upstream", text);
  if (kind == replay::UpstreamKind::kCuda && peers_runtime() != nullptr) {
    refuse("--upstream", text, "simulated or host: this build has peers, which need the stand-in");
  }
  return kind;
}

Bytes parse_size(const std::string& text) {
  const auto size = parse_bytes(text);
  if (!size || *size < kLeastPattern || *size > gib(64)) {
    refuse("--size", text, "a size from 64MiB to 64GiB");
  }
  return *size;
}

std::uint64_t parse_pattern_seed(const std::string& text) {
  const auto seed = parse_whole(text);
  if (!seed) refuse("--seed", text, "a whole number");
  return *seed;
}

/// Throws UsageError naming the flag, its value and what is allowed.
Stress checked(const StressFlags& flags) {
  const replay::UpstreamKind kind = upstream_of(flags.upstream);
  const replay::MakeUpstream upstream = replay::upstreams_of(kind);
  Stress stress{
      .candidates =
          pool_candidates("--pool", flags.pools.empty() ? kept_pools() : flags.pools, upstream),
      .missing = {},
      .upstream = flags.upstream,
      .capacity = {},
      .patterns = {.most = parse_size(flags.size), .seed = parse_pattern_seed(flags.seed)}};
  stress.pools = stress.candidates.size();
  PeerCandidates peers = peer_candidates("--peer", flags.peers, kind, upstream);
  stress.candidates.insert(stress.candidates.end(), peers.candidates.begin(),
                           peers.candidates.end());
  stress.missing = std::move(peers.missing);
  stress.capacity = replay::default_capacity(kind, stress.patterns.most);
  stress.wide = flags.wide;
  // Real memory allows only one replay at a time.
  if (kind != replay::UpstreamKind::kSimulated) stress.threads = 1;
  return stress;
}

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
