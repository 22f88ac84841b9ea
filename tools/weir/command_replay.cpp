// weir replay: traces of allocations against pools.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "allocator/error.hpp"
#include "tools/replay/picture.hpp"
#include "tools/replay/readers.hpp"
#include "tools/replay/report.hpp"
#include "tools/weir/command.hpp"
#include "tools/weir/replay_flags.hpp"
#include "trainer/output_file.hpp"
#include "trainer/table.hpp"

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

/// The files that the traces' pictures go to, opened now so that nothing is computed in vain.
std::vector<std::unique_ptr<OutputFile>> open_pictures(const std::string& path,
                                                       std::size_t traces) {
  std::vector<std::unique_ptr<OutputFile>> files;
  if (path.empty()) return files;
  const std::size_t place = path.find("%t");
  if (place == std::string::npos && traces > 1) {
    refuse("--svg", path, "for " + format_count(traces, "trace") + " a name with %t in it");
  }
  for (std::size_t i = 1; i <= traces; ++i) {
    std::string name = path;
    if (place != std::string::npos) name.replace(place, 2, std::to_string(i));
    files.push_back(std::make_unique<OutputFile>("--svg", name));
  }
  return files;
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

std::optional<replay::Advice> advice_for(const std::vector<replay::TraceResults>& results,
                                         const ReplayRequest& request) {
  replay::Advice advice;
  advice.recommendation = replay::recommend(
      replay::scores_of(results), request.capacity ? replay::kAnyNeed : replay::kSameNeed);
  for (const replay::PoolChoice& choice : request.choices) {
    advice.variables.push_back(replay::variables_of(choice));
  }
  return advice;
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
  const ReplayRequest request = checked(flags);
  const replay::MakeUpstream upstream = replay::upstreams_of(request.upstream);
  const std::vector<replay::Trace> traces = read_all(flags.traces);
  const auto pictures = open_pictures(flags.svg, traces.size());

  const replay::Setup setup{
      .upstream = flags.upstream,
      .capacity = request.capacity
                      ? *request.capacity
                      : replay::default_capacity(request.upstream, largest_peak(traces)),
      .lag = request.lag};
  std::vector<replay::Candidate> candidates;
  for (const replay::PoolChoice& choice : request.choices) {
    candidates.push_back(replay::candidate_of(choice, upstream, request.lag));
  }
  // Real memory is one replay's at a time.
  const bool real = request.upstream != replay::UpstreamKind::kSimulated;
  ProgressBar bar;
  const auto results = replay::measure_all(
      traces, candidates,
      {.capacity = setup.capacity, .search = !flags.no_search, .threads = real ? 1U : 2U},
      [&bar](std::size_t done, std::size_t all, const std::string& what) {
        bar.show(what, done, all);
      });
  bar.clear();
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    pictures[i]->commit(draw(picture_of(traces[i], candidates, setup, request.mapped)));
  }
  const auto advice = flags.recommend ? advice_for(results, request) : std::nullopt;
  if (flags.json) {
    print(replay::results_json(results, setup, advice));
  } else {
    const std::string text =
        flags.summary ? replay::summary_text(results, setup) : replay::results_text(results, setup);
    print(text + (advice ? "\n" + advice_text(*advice) : ""));
  }
  return replay::any_refused(results) ? 3 : 0;
}

}  // namespace

Command add_replay_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "replay", "replay traces of allocations against pools, and print what each of them costs");
  const auto flags = std::make_shared<ReplayFlags>(*app);
  return {app, [flags](const std::vector<std::string>& words) { return run(*flags, words); }};
}

}  // namespace weir::cli
