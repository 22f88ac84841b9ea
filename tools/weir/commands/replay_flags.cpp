#include "tools/weir/commands/replay_flags.hpp"

#include <algorithm>

#include "allocator/base/error.hpp"
#include "tools/replay/read/trace.hpp"

namespace weir::cli {
namespace {

/// Returns the settings common to all pools.
PoolOptions base_options(const ReplayFlags& flags) {
  PoolOptions options = PoolOptions::from_environment();
  options.log = {};  // the trace is already a log
  options.budget = {parse_budget("--budget", flags.budget), "--budget"};
  return options;
}

Bytes parse_capacity(const std::string& text) {
  const auto capacity = parse_bytes(text);
  if (!capacity || capacity->count == 0 || *capacity > replay::TraceBuilder::kMostInAll) {
    refuse("--capacity", text, "a size such as 80GiB");
  }
  return *capacity;
}

std::uint64_t parse_lag(const std::string& text) {
  const auto lag = parse_whole(text);
  if (!lag) refuse("--lag", text, "a whole number of operations");
  return *lag;
}

std::vector<replay::PoolChoice> choices_of(const ReplayFlags& flags) {
  const PoolOptions base = base_options(flags);
  if (flags.pool.empty() && flags.recommend) return replay::recommendable_choices(base);
  return replay::parse_pool_choices("--pool", flags.pool.empty() ? "all" : flags.pool, base);
}

/// Returns the index that --map names; the last by default.
std::size_t mapped_of(const ReplayFlags& flags, const std::vector<replay::PoolChoice>& choices) {
  if (flags.map.empty()) return choices.size() - 1;
  if (flags.svg.empty()) throw UsageError("--map says what is drawn: --svg FILE is missing");
  const auto wanted = replay::parse_pool_choice("--map", flags.map, base_options(flags));
  const auto found = std::ranges::find(choices, wanted.name, &replay::PoolChoice::name);
  if (found == choices.end()) {
    std::string names;
    for (const replay::PoolChoice& choice : choices) {
      names += (names.empty() ? "" : ", ") + choice.name;
    }
    refuse("--map", flags.map, "one of the pools that are replayed: " + names);
  }
  return static_cast<std::size_t>(found - choices.begin());
}

}  // namespace

ReplayFlags::ReplayFlags(CommandLine& line) {
  const std::vector<std::string> pools = names_to(PoolKind::kPaged);
  line.add("TRACE", traces, Value("FILE"),
           "an allocation log (WEIR_ALLOC_LOG), RMM's log, or lifetimes "
           "(buffer,start,end,size), also in gzip; - is standard input")
      .require();
  line.add("--pool", pool, Value("all|POOL,...", pools),
           "pools, each a name, round:CUTOFF or naive:SIZE (default: all)");
  line.add("--recommend", recommend,
           "try settings of each pool, or of those in --pool, and recommend one with the reason");
  line.add("--svg", svg, Value("FILE"),
           "draw memory over time; with several traces, %t in the file's name is the trace's "
           "number");
  line.add("--map", map, Value("POOL", pools),
           "the pool whose addresses --svg draws (default: the last one)");
  line.add("--capacity", capacity, Value("BYTES"), "device memory (default: more than enough)");
  line.add("--budget", budget, Value("BYTES|PERCENT"), "how much of the capacity a pool may use");
  line.add("--summary", summary, "one table for all traces, of reserved and least capacity");
  line.add("--breakdown", breakdown,
           "show where the reserved memory was at its peak: live, free beside live blocks, or "
           "on pages without live blocks");
  line.add("--wide", wide, "show all columns, and cut nothing to fit 100 columns");
  line.add("--no-search", no_search, "skip the search for the least capacity, the slowest part");
  line.add("--lag", lag, Value("N"), "number of operations by which the device lags the host");
  line.add("--upstream", upstream, Value("simulated|host|cuda"), "where memory comes from");
  line.add("--json", json, Value("FILE"),
           "write the figures to FILE; - is standard output, without the table");
  line.set_page("docs/replay.md");
  line.set_exit_codes({{"0", "finished"},
                       {"1", "the program or the machine failed"},
                       {"2", "bad input"},
                       {"3", "out of memory with that capacity"}});
}

ReplayRequest checked(const ReplayFlags& flags) {
  ReplayRequest request{.choices = choices_of(flags),
                        .upstream = parse_name<replay::UpstreamKind>("--upstream", flags.upstream),
                        .capacity = {},
                        .lag = parse_lag(flags.lag)};
  if (!flags.capacity.empty()) request.capacity = parse_capacity(flags.capacity);
  request.mapped = mapped_of(flags, request.choices);
  return request;
}

}  // namespace weir::cli
