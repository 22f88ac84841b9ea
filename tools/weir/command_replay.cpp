// weir replay: traces of allocations against pools.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "allocator/error.hpp"
#include "tools/replay/measure.hpp"
#include "tools/replay/pools.hpp"
#include "tools/replay/readers.hpp"
#include "tools/replay/report.hpp"
#include "tools/replay/upstreams.hpp"
#include "tools/weir/command.hpp"
#include "trainer/table.hpp"

namespace weir::cli {
namespace {

struct ReplayFlags {
  std::vector<std::string> traces;
  std::string pool = "all";
  std::string capacity;
  std::string budget = "100%";
  std::string upstream = "simulated";
  std::string lag = "0";
  bool no_search = false;
  bool json = false;
};

/// The settings that the pools have in common.
PoolOptions base_options(const ReplayFlags& flags) {
  PoolOptions options = PoolOptions::from_environment();
  options.log = {};  // what is replayed is a log already
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

std::vector<replay::Trace> read_all(const std::vector<std::string>& paths) {
  std::vector<replay::Trace> traces;
  for (const std::string& path : paths) {
    for (replay::Trace& trace : replay::read_traces(path)) traces.push_back(std::move(trace));
  }
  return traces;
}

Bytes largest_peak(const std::vector<replay::Trace>& traces) {
  Bytes peak;
  for (const replay::Trace& trace : traces) peak = std::max(peak, replay::peak_requested(trace));
  return peak;
}

void print(const std::string& text) {
  errno = 0;
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw Error("standard output cannot be written (" + std::generic_category().message(errno) +
                ")");
  }
}

int run(const ReplayFlags& flags, const std::vector<std::string>& words) {
  if (!words.empty()) throw UsageError("weir replay takes no words after --");
  const auto choices = replay::parse_pool_choices("--pool", flags.pool, base_options(flags));
  const auto kind = replay::parse_upstream("--upstream", flags.upstream);
  const std::uint64_t lag = parse_lag(flags.lag);
  const replay::MakeUpstream upstream = replay::upstreams_of(kind);
  const std::vector<replay::Trace> traces = read_all(flags.traces);

  replay::MeasureOptions options{
      .capacity = flags.capacity.empty() ? replay::default_capacity(kind, largest_peak(traces))
                                         : parse_capacity(flags.capacity),
      .search = !flags.no_search};
  // Real memory is one program's at a time.
  if (kind != replay::UpstreamKind::kSimulated) options.threads = 1;
  std::vector<replay::Candidate> candidates;
  for (const replay::PoolChoice& choice : choices) {
    candidates.push_back(replay::candidate_of(choice, upstream, lag));
  }
  ProgressBar bar;
  const auto results =
      replay::measure_all(traces, candidates, options,
                          [&bar](std::size_t done, std::size_t all, const std::string& what) {
                            bar.show(what, done, all);
                          });
  bar.clear();
  const replay::Setup setup{.upstream = flags.upstream, .capacity = options.capacity, .lag = lag};
  print(flags.json ? results_json(results, setup) : results_text(results, setup));
  return replay::any_refused(results) ? 3 : 0;
}

}  // namespace

Command add_replay_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "replay", "replay traces of allocations against pools, and print what each of them costs");
  const auto flags = std::make_shared<ReplayFlags>();
  app->add_option("TRACE", flags->traces,
                  "an allocation log (WEIR_ALLOC_LOG), RMM's log, or lifetimes "
                  "(buffer,start,end,size); also gzip's")
      ->required();
  app->add_option("--pool", flags->pool,
                  "which pools, with commas: their names, round:CUTOFF, naive:SIZE, or all")
      ->capture_default_str();
  app->add_option("--capacity", flags->capacity,
                  "what the device has: 80GiB; more than enough unless given");
  app->add_option("--budget", flags->budget, "of the capacity: 6GiB, or 80%")
      ->capture_default_str();
  app->add_option("--lag", flags->lag, "how many operations the device is behind the host")
      ->capture_default_str();
  app->add_option("--upstream", flags->upstream, "simulated, host or cuda")->capture_default_str();
  app->add_flag("--no-search", flags->no_search,
                "leave the least capacity out, which takes longest");
  app->add_flag("--json", flags->json, "print it for a program");
  app->footer("Exit code 3: out of memory with that capacity; 2: bad input.");
  return {app, [flags](const std::vector<std::string>& words) { return run(*flags, words); }};
}

}  // namespace weir::cli
