// weir-peers: replays traces against our pools and other allocators in one run.

#include <cstdio>
#include <string>
#include <vector>

#include "bench/peers/peers.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/run_main.hpp"
#include "tools/replay/replay_command.hpp"

namespace weir::bench {
namespace {

int run_program(int argc, char** argv) {
  CommandLine line("replay traces of allocations against our pools and other people's allocators");
  std::string peers = "all";
  std::vector<std::string> missing;
  line.add("--peer", peers, Value("all|none|NAME,..."),
           "other allocators; --budget, --lag and --breakdown are of our pools alone");
  const auto run = replay::add_replay(line, [&](replay::UpstreamKind kind) {
    if (kind == replay::UpstreamKind::kCuda && peers_runtime() != nullptr) {
      refuse("--upstream", "cuda",
             "simulated or host: this build has peers, which need the stand-in");
    }
    PeerCandidates chosen = peer_candidates("--peer", peers, kind, upstreams_of(kind));
    missing = std::move(chosen.missing);
    return std::move(chosen.candidates);
  });
  line.set_page("docs/fragmentation.md");
  if (const auto code = line.parse("weir-peers", argc, argv)) return *code;
  const int code = line.run(run);
  for (const std::string& one : missing) std::fprintf(stderr, "weir-peers: %s\n", one.c_str());
  return code;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  return weir::run_main("weir-peers", [&] { return weir::bench::run_program(argc, argv); });
}
