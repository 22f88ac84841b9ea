// weir replay: replays allocation traces against pools.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/program/table.hpp"
#include "tools/replay/read/readers.hpp"
#include "tools/replay/show/picture.hpp"
#include "tools/replay/show/report.hpp"
#include "tools/weir/commands/command.hpp"
#include "tools/weir/commands/replay_flags.hpp"

namespace weir::cli {
namespace {

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

replay::Picture picture_of(const replay::Trace& trace,
                           const std::vector<replay::Candidate>& candidates,
                           const replay::Setup& setup, std::size_t mapped) {
  replay::Picture picture{.title = std::filesystem::path(trace.name).filename().string() + ": " +
                                   format_count(trace.operations.size(), "operation") +
                                   ", peak requested " +
                                   format_bytes(replay::peak_requested(trace)),
                          .subtitle = replay::setup_text(setup),
                          .bands = {},
                          .mapped = candidates[mapped].name,
                          .map = replay::AddressMap(trace.operations.size())};
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    picture.bands.push_back(replay::record_band(trace, candidates[i], setup.capacity,
                                                i == mapped ? &*picture.map : nullptr));
  }
  return picture;
}

/// Uses replays of their own, so that the others are not slowed down.
void add_breakdowns(std::vector<replay::TraceResults>& results,
                    const std::vector<replay::Candidate>& candidates, Bytes capacity) {
  for (replay::TraceResults& result : results) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      result.measured[i].breakdown =
          replay::break_down_peak(*result.trace, candidates[i].make, capacity);
    }
  }
}

std::optional<replay::Advice> advice_for(const std::vector<replay::TraceResults>& results,
                                         const ReplayRequest& request) {
  replay::Advice advice;
  std::vector<bool> by_default;
  for (const replay::PoolChoice& choice : request.choices) {
    advice.variables.push_back(replay::variables_of(choice));
    by_default.push_back(choice.by_default());
  }
  advice.recommendation =
      replay::recommend(replay::scores_of(results, by_default),
                        request.capacity ? replay::kAnyNeed : replay::kSameNeed);
  return advice;
}

std::string text_of(const std::vector<replay::TraceResults>& results, const replay::Setup& setup,
                    const ReplayFlags& flags, const std::optional<replay::Advice>& advice) {
  std::string text = flags.summary ? replay::summary_text(results, setup, flags.wide)
                                   : replay::results_text(results, setup, flags.wide);
  const std::string breakdown = replay::breakdown_text(results, setup, flags.wide);
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
  for (const replay::PoolChoice& choice : request.choices) {
    names += (names.empty() ? "" : ",") + choice.name;
  }
  lines.push_back({"pool", names, flags.recommend ? "--recommend" : "default"});
  return lines;
}

int run(const CommandLine& line, const ReplayFlags& flags) {
  const ReplayRequest request = checked(flags);
  require_standard_output();
  set_log_level(log_level_from_environment());
  warn_of_unknown_variables(environ);
  const replay::MakeUpstream upstream = replay::upstreams_of(request.upstream);
  const std::vector<replay::Trace> traces = read_all(flags.traces);
  const Outputs outputs = open_outputs(flags, traces.size());

  replay::Setup setup{.upstream = flags.upstream,
                      .capacity = request.capacity ? *request.capacity
                                                   : replay::default_capacity(request.upstream,
                                                                              largest_peak(traces)),
                      .lag = request.lag};
  setup.settings = settings_of(line, flags, request, setup.capacity);
  std::vector<replay::Candidate> candidates;
  for (const replay::PoolChoice& choice : request.choices) {
    candidates.push_back(replay::candidate_of(choice, upstream, request.lag));
  }
  // Only one replay at a time can use real memory.
  const bool real = request.upstream != replay::UpstreamKind::kSimulated;
  ProgressBar bar;
  auto results = replay::measure_all(
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
  if (outputs.json) outputs.json->commit(replay::results_json(results, setup, advice));
  require_printed(print_error);
  return replay::any_refused(results) ? 3 : 0;
}

}  // namespace

Command add_replay_command(CommandLine& program) {
  CommandLine& line = program.add_command(
      "replay", "replay allocation traces against pools, and print what each pool costs");
  const auto flags = std::make_shared<ReplayFlags>(line);
  return {line,
          [flags, &line](const std::vector<std::string>& /*words*/) { return run(line, *flags); }};
}

}  // namespace weir::cli
