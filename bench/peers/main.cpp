// weir-peers: replays traces against our pools and other allocators in one run.

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/peers/peers.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/program/table.hpp"
#include "tools/replay/measure/pools.hpp"
#include "tools/replay/read/readers.hpp"
#include "tools/replay/show/report.hpp"
#include "tools/replay/subject/upstreams.hpp"

namespace weir::bench {
namespace {

struct Flags {
  std::vector<std::string> traces;
  std::string pools = "all";
  std::string peers = "all";
  std::string upstream = "simulated";
  std::string capacity;
  bool no_search = false;
  bool summary = false;
  bool wide = false;
  std::string json;
};

void add_flags(CommandLine& line, Flags& flags) {
  line.add("TRACE", flags.traces, Value("FILE"), "a trace that weir replay reads; may be gzipped")
      .require();
  line.add("--pool", flags.pools, Value("all|POOL,..."), "our pools, in the syntax of weir replay");
  line.add("--peer", flags.peers, Value("all|none|NAME,..."), "other allocators");
  line.add("--upstream", flags.upstream, Value("simulated|host"), "where memory comes from");
  line.add("--capacity", flags.capacity, Value("BYTES"),
           "device memory (default: more than enough)");
  line.add("--no-search", flags.no_search,
           "skip the search for the least capacity, the slowest part");
  line.add("--summary", flags.summary, "one table for all traces, of reserved and least capacity");
  line.add("--wide", flags.wide, "show all columns, and cut nothing to fit 100 columns");
  line.add("--json", flags.json, Value("FILE"),
           "write the figures to FILE; - is standard output, without the table");
  line.set_page("docs/fragmentation.md");
  line.set_exit_codes({{"0", "finished"},
                       {"1", "the program or the machine failed"},
                       {"2", "bad input"},
                       {"3", "out of memory with that capacity"}});
}

int run(const CommandLine& line, const Flags& flags) {
  const replay::UpstreamKind kind = parse_peer_upstream("--upstream", flags.upstream);
  std::vector<replay::Candidate> candidates =
      pool_candidates("--pool", flags.pools, replay::upstreams_of(kind));
  const PeerCandidates peers =
      peer_candidates("--peer", flags.peers, kind, replay::upstreams_of(kind));
  candidates.insert(candidates.end(), peers.candidates.begin(), peers.candidates.end());

  std::vector<replay::Trace> traces;
  Bytes peak;
  for (const std::string& path : flags.traces) {
    for (replay::Trace& trace : replay::read_traces(path)) traces.push_back(std::move(trace));
  }
  for (const replay::Trace& trace : traces) peak = std::max(peak, replay::peak_requested(trace));
  replay::Setup setup{.upstream = flags.upstream, .capacity = replay::default_capacity(kind, peak)};
  if (!flags.capacity.empty()) {
    const auto capacity = parse_bytes(flags.capacity);
    if (!capacity || capacity->count == 0 || *capacity > replay::TraceBuilder::kMostInAll) {
      refuse("--capacity", flags.capacity, "a size such as 80GiB");
    }
    setup.capacity = *capacity;
  }
  setup.settings = line.settings();
  if (flags.capacity.empty()) {
    setup.settings.push_back({"capacity", format_bytes(setup.capacity), "default"});
  }

  std::vector<NamedPath> read;
  for (const std::string& path : flags.traces) read.push_back({"TRACE", path});
  require_different_files(std::array{NamedPath{"--json", flags.json}}, read);
  const auto json =
      flags.json.empty() ? nullptr : std::make_unique<OutputFile>("--json", flags.json);
  ProgressBar bar;
  const auto results = replay::measure_all(
      traces, candidates, {.capacity = setup.capacity, .search = !flags.no_search},
      [&bar](std::size_t done, std::size_t all, const std::string& what) {
        bar.show(what, done, all);
      });
  bar.clear();
  const std::string text = flags.summary ? replay::summary_text(results, setup, flags.wide)
                                         : replay::results_text(results, setup, flags.wide);
  const int print_error = flags.json == "-" ? 0 : print(text);
  if (json) json->commit(replay::results_json(results, setup));
  for (const std::string& missing : peers.missing)
    std::fprintf(stderr, "weir-peers: %s\n", missing.c_str());
  require_printed(print_error);
  return replay::any_refused(results) ? 3 : 0;
}

int run_program(int argc, char** argv) {
  CommandLine line("replay traces of allocations against our pools and other people's allocators");
  Flags flags;
  add_flags(line, flags);
  if (const auto code = line.parse("weir-peers", argc, argv)) return *code;
  require_standard_output();
  return line.run([&] { return run(line, flags); });
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  return weir::run_main("weir-peers", [&] { return weir::bench::run_program(argc, argv); });
}
