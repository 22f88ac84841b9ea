#include "tools/replay/replay_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/program/table.hpp"
#include "tools/replay/measure/pools.hpp"
#include "tools/replay/read/readers.hpp"
#include "tools/replay/read/trace.hpp"
#include "tools/replay/show/picture.hpp"
#include "tools/replay/show/report.hpp"

namespace weir::replay {
namespace {

struct ReplayFlags {
  explicit ReplayFlags(CommandLine& line);

  std::vector<std::string> traces;
  std::string pool;
  std::string capacity;
  std::string budget = "100%";
  std::string upstream = "simulated";
  std::string lag = "0";
  std::string svg;
  std::string map;
  std::string json;
  bool no_search = false;
  bool recommend = false;
  bool summary = false;
  bool breakdown = false;
  bool wide = false;
};

struct ReplayRequest {
  std::vector<PoolChoice> choices;
  UpstreamKind upstream{};
  std::optional<Bytes> capacity;
  std::uint64_t lag = 0;
  std::size_t mapped = 0;  ///< the choice drawn by address
};

/// Returns the settings common to all pools.
PoolOptions base_options(const ReplayFlags& flags) {
  PoolOptions options = PoolOptions::from_environment();
  options.log = {};  // the trace is already a log
  options.budget = {parse_budget("--budget", flags.budget), "--budget"};
  return options;
}

Bytes parse_capacity(const std::string& text) {
  const auto capacity = parse_bytes(text);
  if (!capacity || capacity->count == 0 || *capacity > TraceBuilder::kMostInAll) {
    refuse("--capacity", text, "a size such as 80GiB");
  }
  return *capacity;
}

std::uint64_t parse_lag(const std::string& text) {
  const auto lag = parse_whole(text);
  if (!lag) refuse("--lag", text, "a whole number of operations");
  return *lag;
}

std::vector<PoolChoice> choices_of(const ReplayFlags& flags) {
  const PoolOptions base = base_options(flags);
  if (flags.pool.empty() && flags.recommend) return recommendable_choices(base);
  return parse_pool_choices("--pool", flags.pool.empty() ? "all" : flags.pool, base);
}

/// Returns the index that --map names; the last by default.
std::size_t mapped_of(const ReplayFlags& flags, const std::vector<PoolChoice>& choices) {
  if (flags.map.empty()) return choices.size() - 1;
  if (flags.svg.empty()) throw UsageError("--map says what is drawn: --svg FILE is missing");
  const auto wanted = parse_pool_choice("--map", flags.map, base_options(flags));
  const auto found = std::ranges::find(choices, wanted.name, &PoolChoice::name);
  if (found == choices.end()) {
    std::string names;
    for (const PoolChoice& choice : choices) {
      names += (names.empty() ? "" : ", ") + choice.name;
    }
    refuse("--map", flags.map, "one of the pools that are replayed: " + names);
  }
  return static_cast<std::size_t>(found - choices.begin());
}

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

/// Throws UsageError with the flag, its value and what is allowed.
ReplayRequest checked(const ReplayFlags& flags) {
  ReplayRequest request{.choices = choices_of(flags),
                        .upstream = parse_name<UpstreamKind>("--upstream", flags.upstream),
                        .capacity = {},
                        .lag = parse_lag(flags.lag)};
  if (!flags.capacity.empty()) request.capacity = parse_capacity(flags.capacity);
  request.mapped = mapped_of(flags, request.choices);
  return request;
}

std::vector<Trace> read_all(const std::vector<std::string>& paths) {
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    for (Trace& trace : read_traces(path)) traces.push_back(std::move(trace));
  }
  return traces;
}

Bytes largest_peak(const std::vector<Trace>& traces) {
  Bytes peak;
  for (const Trace& trace : traces) peak = std::max(peak, peak_requested(trace));
  return peak;
}

/// Returns the files for the traces' pictures.
std::vector<NamedPath> picture_files(const std::string& path, std::size_t traces) {
  std::vector<NamedPath> files;
  if (path.empty()) return files;
  const std::size_t place = path.find("%t");
  if (place == std::string::npos && traces > 1) {
    refuse("--svg", path, "for " + format_count(traces, "trace") + " a name with %t in it");
  }
  for (std::size_t i = 1; i <= traces; ++i) {
    std::string name = path;
    if (place != std::string::npos) name.replace(place, 2, std::to_string(i));
    files.push_back({"--svg", name});
  }
  return files;
}

/// Output files beside the table, opened before anything is computed.
struct Outputs {
  std::vector<std::unique_ptr<OutputFile>> pictures;
  std::unique_ptr<OutputFile> json;
};

/// Throws UsageError if one cannot be written or is a trace.
Outputs open_outputs(const ReplayFlags& flags, std::size_t traces) {
  std::vector<NamedPath> files = picture_files(flags.svg, traces);
  if (!flags.json.empty()) files.push_back({"--json", flags.json});
  std::vector<NamedPath> read;
  for (const std::string& path : flags.traces) read.push_back({"TRACE", path});
  require_different_files(files, read);
  Outputs outputs;
  if (!flags.json.empty()) {
    outputs.json = std::make_unique<OutputFile>("--json", flags.json);
    files.pop_back();
  }
  for (const NamedPath& file : files) {
    outputs.pictures.push_back(std::make_unique<OutputFile>(file.name, file.path));
  }
  return outputs;
}

Picture picture_of(const Trace& trace, const std::vector<Candidate>& candidates, const Setup& setup,
                   std::size_t mapped) {
  Picture picture{.title = std::filesystem::path(trace.name).filename().string() + ": " +
                           format_count(trace.operations.size(), "operation") +
                           ", peak requested " + format_bytes(peak_requested(trace)),
                  .subtitle = setup_text(setup),
                  .bands = {},
                  .mapped = candidates[mapped].name,
                  .map = AddressMap(trace.operations.size())};
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    picture.bands.push_back(
        record_band(trace, candidates[i], setup.capacity, i == mapped ? &*picture.map : nullptr));
  }
  return picture;
}

/// Uses replays of their own, so that the others are not slowed down.
void add_breakdowns(std::vector<TraceResults>& results, const std::vector<Candidate>& candidates,
                    Bytes capacity) {
  for (TraceResults& result : results) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      result.measured[i].breakdown = break_down_peak(*result.trace, candidates[i].make, capacity);
    }
  }
}

std::optional<Advice> advice_for(const std::vector<TraceResults>& results,
                                 const ReplayRequest& request) {
  Advice advice;
  std::vector<bool> by_default;
  for (const PoolChoice& choice : request.choices) {
    advice.variables.push_back(variables_of(choice));
    by_default.push_back(choice.by_default());
  }
  advice.recommendation =
      recommend(scores_of(results, by_default), request.capacity ? kAnyNeed : kSameNeed);
  return advice;
}

std::string text_of(const std::vector<TraceResults>& results, const Setup& setup,
                    const ReplayFlags& flags, const std::optional<Advice>& advice) {
  std::string text = flags.summary ? summary_text(results, setup, flags.wide)
                                   : results_text(results, setup, flags.wide);
  const std::string breakdown = breakdown_text(results, setup, flags.wide);
  if (!breakdown.empty()) text += "\n" + breakdown;
  if (advice) text += "\n" + advice_text(*advice, setup);
  return text;
}

/// Returns the flags in force, with what stands for a flag that was left out.
std::vector<SettingLine> settings_of(const CommandLine& line, const ReplayFlags& flags,
                                     const ReplayRequest& request, Bytes capacity) {
  std::vector<SettingLine> lines = line.settings();
  if (flags.capacity.empty()) lines.push_back({"capacity", exact_bytes(capacity), "default"});
  if (!flags.pool.empty()) return lines;
  std::string names;
  for (const PoolChoice& choice : request.choices) {
    names += (names.empty() ? "" : ",") + choice.name;
  }
  lines.push_back({"pool", names, flags.recommend ? "--recommend" : "default"});
  return lines;
}

int run_replay(const CommandLine& line, const ReplayFlags& flags, const MoreCandidates& more) {
  const ReplayRequest request = checked(flags);
  require_standard_output();
  set_log_level(log_level_from_environment());
  warn_of_unknown_variables(environ);
  const std::vector<Candidate> besides = more ? more(request.upstream) : std::vector<Candidate>{};
  if (flags.recommend && !besides.empty()) {
    throw UsageError("--recommend names settings of Weir's pools, and '" + besides.front().name +
                     "' is none of them: leave out one or the other");
  }
  const MakeUpstream upstream = upstreams_of(request.upstream);
  const std::vector<Trace> traces = read_all(flags.traces);
  const Outputs outputs = open_outputs(flags, traces.size());

  Setup setup{.upstream = flags.upstream,
              .capacity = request.capacity
                              ? *request.capacity
                              : default_capacity(request.upstream, largest_peak(traces)),
              .lag = request.lag};
  setup.settings = settings_of(line, flags, request, setup.capacity);
  std::vector<Candidate> candidates;
  for (const PoolChoice& choice : request.choices) {
    candidates.push_back(candidate_of(choice, upstream, request.lag));
  }
  candidates.insert(candidates.end(), besides.begin(), besides.end());
  // Only one replay at a time can use real memory.
  const bool real = request.upstream != UpstreamKind::kSimulated;
  ProgressBar bar;
  auto results = measure_all(
      traces, candidates,
      {.capacity = setup.capacity, .search = !flags.no_search, .threads = real ? 1U : 2U},
      [&bar](std::size_t done, std::size_t all, const std::string& what) {
        bar.show(what, done, all);
      });
  if (flags.breakdown) add_breakdowns(results, candidates, setup.capacity);
  bar.clear();
  for (std::size_t i = 0; i < outputs.pictures.size(); ++i) {
    outputs.pictures[i]->commit(draw(picture_of(traces[i], candidates, setup, request.mapped)));
  }
  const auto advice = flags.recommend ? advice_for(results, request) : std::nullopt;
  const int print_error = flags.json == "-" ? 0 : print(text_of(results, setup, flags, advice));
  if (outputs.json) outputs.json->commit(results_json(results, setup, advice));
  require_printed(print_error);
  return any_refused(results) ? 3 : 0;
}

}  // namespace

std::function<int()> add_replay(CommandLine& line, MoreCandidates more) {
  const auto flags = std::make_shared<ReplayFlags>(line);
  return [flags, &line, more = std::move(more)] { return run_replay(line, *flags, more); };
}

}  // namespace weir::replay
