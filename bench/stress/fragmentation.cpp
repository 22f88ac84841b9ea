// bench/run fragmentation: what each allocator reserves for each pattern, relative to the pattern's
// peak of requested bytes.

#include <algorithm>
#include <cstdio>
#include <optional>

#include "bench/stress/commands.hpp"
#include "bench/stress/report.hpp"
#include "bench/stress/running_out.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/table.hpp"

namespace weir::bench {
namespace {

std::string times(Bytes bytes, Bytes peak) {
  return format_number(static_cast<double>(bytes.count) / static_cast<double>(peak.count), 3);
}

std::vector<std::string> names_of(const Stress& stress) {
  std::vector<std::string> names;
  for (const replay::Candidate& candidate : stress.candidates) names.push_back(candidate.name);
  return names;
}

/// Returns whether it took the whole capacity, within rounding, though nothing needs it.
bool takes_all(Bytes reserved, const Stress& stress) { return reserved + mib(1) > stress.capacity; }

std::string reserved_cell(const replay::Measured& measured, const Stress& stress, Bytes peak) {
  if (measured.figures.refusal) return "oom";
  return takes_all(measured.figures.peak_reserved, stress)
             ? "all"
             : times(measured.figures.peak_reserved, peak);
}

std::string threads_cell(const Stress& stress, const replay::Candidate& candidate,
                         const std::vector<replay::Trace>& traces) {
  const std::unique_ptr<replay::Subject> subject = candidate.make(stress.capacity);
  const ThreadsFigures figures = replay_threads(traces, *subject);
  if (figures.refused > 0) return "oom";
  if (takes_all(figures.peak_reserved, stress)) return "all";
  return times(figures.peak_reserved, figures.peak_requested);
}

std::vector<replay::TraceResults> measure(const Stress& stress,
                                          const std::vector<replay::Trace>& traces) {
  ProgressBar bar;
  return replay::measure_all(
      traces, stress.candidates,
      {.capacity = stress.capacity, .search = true, .timings = 0, .threads = stress.threads},
      [&bar](std::size_t done, std::size_t all, const std::string& what) {
        bar.show(what, done, all);
      });
}

}  // namespace

int run_fragmentation(const Stress& stress) {
  std::vector<replay::Trace> traces;
  for (const Pattern& pattern : patterns()) traces.push_back(pattern.make(stress.patterns));
  const auto results = measure(stress, traces);

  std::vector<PatternRow> least;
  std::vector<PatternRow> reserved;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Pattern& pattern = patterns()[i];
    const Bytes peak = results[i].peak_requested;
    least.push_back({pattern.name, pattern.what});
    reserved.push_back({pattern.name, pattern.what});
    for (const replay::Measured& measured : results[i].measured) {
      least.back().cells.push_back(measured.least ? times(measured.least->capacity, peak) : "-");
      reserved.back().cells.push_back(reserved_cell(measured, stress, peak));
    }
  }
  const std::vector<replay::Trace> threaded = thread_patterns(stress.patterns, kPatternThreads);
  reserved.push_back({"threads", kThreadsText});
  for (const replay::Candidate& candidate : stress.candidates) {
    reserved.back().cells.push_back(threads_cell(stress, candidate, threaded));
  }

  const std::vector<std::string> names = names_of(stress);
  std::printf("patterns of up to %s, upstream %s\n\n", format_bytes(stress.patterns.most).c_str(),
              stress.upstream.c_str());
  std::printf("least memory in which it completes, over the peak requested\n%s\n",
              pattern_table(names, least, stress.wide).c_str());
  std::printf(
      "%s%s%s",
      wrapped(
          "most memory reserved when nothing limits it, over the peak requested; all: the whole "
          "device",
          2)
          .c_str(),
      pattern_table(names, reserved, stress.wide).c_str(),
      pattern_legend(reserved, stress.wide).c_str());
  for (const std::string& line : stress.missing) std::printf("%s\n", line.c_str());
  return 0;
}

}  // namespace weir::bench
