#include "tools/weir/commands/replay_flags.hpp"

#include <CLI/CLI.hpp>
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

ReplayFlags::ReplayFlags(CLI::App& app) {
  app.add_option("TRACE", traces,
                 "an allocation log (WEIR_ALLOC_LOG), RMM's log, or lifetimes "
                 "(buffer,start,end,size), also in gzip; - is standard input")
      ->required();
  app.add_option("--pool", pool,
                 "which pools, with commas: a pool's name, round:CUTOFF, naive:SIZE, or all, which "
                 "is the default");
  app.add_option("--capacity", capacity,
                 "what the device has: 80GiB; more than enough unless given");
  app.add_option("--budget", budget, "of the capacity: 6GiB, or 80%")->capture_default_str();
  app.add_option("--lag", lag, "how many operations the device is behind the host")
      ->capture_default_str();
  app.add_option("--upstream", upstream, "where memory comes from: simulated, host or cuda")
      ->capture_default_str();
  app.add_flag("--no-search", no_search, "leave out the least capacity, which takes the longest");
  app.add_option("--svg", svg,
                 "draw memory over time to this file; with several traces, %t in its name is the "
                 "trace's number");
  app.add_option("--map", map,
                 "the pool whose addresses are drawn; the last one of them unless given");
  app.add_flag("--recommend", recommend,
               "try settings of each pool, or those of --pool, and say which to use and why");
  app.add_flag("--summary", summary, "one table for all traces, of reserved and least capacity");
  app.add_flag("--breakdown", breakdown,
               "say where the reserved memory was when it came to its peak: live, free beside what "
               "lives, or on pages on which nothing lives");
  app.add_option("--json", json,
                 "write the figures to this file; - is standard output, without the table");
  app.footer(
      "Exit code 3: out of memory with that capacity; 2: bad input. docs/replay.md says what the "
      "columns mean.");
}

ReplayRequest checked(const ReplayFlags& flags) {
  ReplayRequest request{.choices = choices_of(flags),
                        .upstream = replay::parse_upstream("--upstream", flags.upstream),
                        .capacity = {},
                        .lag = parse_lag(flags.lag)};
  if (!flags.capacity.empty()) request.capacity = parse_capacity(flags.capacity);
  request.mapped = mapped_of(flags, request.choices);
  return request;
}

}  // namespace weir::cli
