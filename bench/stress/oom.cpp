// bench/run oom: runs each pattern in less memory than it needs, on each allocator, and run-ahead
// under each policy.

#include <array>
#include <cstdio>

#include "bench/stress/commands.hpp"
#include "bench/stress/report.hpp"
#include "bench/stress/run_ahead.hpp"
#include "bench/stress/running_out.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/table.hpp"

namespace weir::bench {
namespace {

constexpr std::array<std::uint64_t, 5> kPercents{90, 95, 99, 100, 103};
constexpr const char* kMarks =
    "  each mark: at 90, 95, 99, 100 and 103% of the least memory in which it completes; +: "
    "completes; x: runs out of memory and goes on as it should; !: does not go on so; -: cannot "
    "begin.";

/// The current table, and the faults found.
struct Report {
  std::vector<PatternRow> rows;
  std::vector<std::string> wrong;
  bool ours_are_clean = true;
};

char mark_of(Ending ending) {
  switch (ending) {
    case Ending::kCompleted:
      return '+';
    case Ending::kClean:
      return 'x';
    case Ending::kUnclean:
      return '!';
    case Ending::kCannotBegin:
      return '-';
  }
  return '?';
}

constexpr Bytes percent_of(Bytes bytes, std::uint64_t percent) {
  return {bytes.count / 100 * percent + bytes.count % 100 * percent / 100};
}

/// Returns a mark for each percentage of `whole`, from the result of `run` with that capacity.
template <typename Run>
std::string marks(Report& report, const std::string& what, Bytes whole, const Run& run) {
  std::string text;
  for (const std::uint64_t percent : kPercents) {
    const RunningOut result = run(percent_of(whole, percent));
    text += mark_of(result.ending);
    if (result.ending != Ending::kUnclean) continue;
    report.wrong.push_back(what + " at " + std::to_string(percent) + "%: " + result.wrong);
  }
  return text;
}

std::string pattern_marks(Report& report, const replay::Trace& trace,
                          const replay::Candidate& candidate, const Stress& stress) {
  const Bytes peak = replay::peak_requested(trace);
  const auto least = replay::least_capacity(
      {.low = peak, .high = peak * 2, .most = stress.capacity, .step = replay::search_step(peak)},
      [&](Bytes capacity) { return replay::completes(trace, *candidate.make(capacity)); });
  if (!least) return "-";
  return marks(report, trace.name + " on " + candidate.name, least->capacity,
               [&](Bytes capacity) { return run_out(trace, candidate.make, capacity); });
}

/// The percentages refer to the need of the threads one after another: threads that run
/// concurrently have no well-defined least capacity.
std::string threads_marks(Report& report, const std::vector<replay::Trace>& traces,
                          const replay::Candidate& candidate, const Stress& stress) {
  return marks(report, "threads on " + candidate.name, stress.patterns.most,
               [&](Bytes capacity) { return run_out_threads(traces, candidate.make, capacity); });
}

void print_patterns(Report& report, const Stress& stress) {
  std::vector<std::string> names;
  for (const replay::Candidate& candidate : stress.candidates) names.push_back(candidate.name);

  ProgressBar bar;
  std::size_t done = 0;
  const std::size_t all = (patterns().size() + 1) * stress.candidates.size();
  const auto row = [&](const std::string& name, const std::string& what, const auto& cell) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < stress.candidates.size(); ++i) {
      bar.show(name + ": " + stress.candidates[i].name, done++, all);
      const std::size_t before = report.wrong.size();
      cells.push_back(cell(stress.candidates[i]));
      if (i < stress.pools && report.wrong.size() > before) report.ours_are_clean = false;
    }
    report.rows.push_back({name, what, std::move(cells)});
  };
  for (const Pattern& pattern : patterns()) {
    const replay::Trace trace = pattern.make(stress.patterns);
    row(pattern.name, pattern.what, [&](const replay::Candidate& candidate) {
      return pattern_marks(report, trace, candidate, stress);
    });
  }
  const std::vector<replay::Trace> threaded = thread_patterns(stress.patterns, kPatternThreads);
  row("threads", kThreadsText, [&](const replay::Candidate& candidate) {
    return threads_marks(report, threaded, candidate, stress);
  });
  bar.clear();
  std::printf("patterns of up to %s, upstream %s\n\n%s%s%s\n",
              format_bytes(stress.patterns.most).c_str(), stress.upstream.c_str(),
              pattern_table(names, report.rows, stress.wide).c_str(), wrapped(kMarks, 2).c_str(),
              pattern_legend(report.rows, stress.wide).c_str());
}

void print_run_ahead(Report& report, bool wide) {
  RunAheadOptions options;
  options.work = half_a_millisecond();
  std::vector<RunAheadFigures> rows;
  for (const Policy policy :
       {Policy::kUnbounded, Policy::kBackstop, Policy::kThrottled, Policy::kBarrier}) {
    const RunAheadFigures& figures = rows.emplace_back(run_ahead(policy, options));
    if (figures.wrong.empty()) continue;
    report.ours_are_clean = false;
    report.wrong.push_back("run-ahead, " + std::string(to_string(policy)) + ": " + figures.wrong);
  }
  std::printf(
      "run-ahead: %llu batches of %s in a budget of %s, half a millisecond each on the cpu "
      "device\n\n%s",
      static_cast<unsigned long long>(options.batches), format_bytes(options.inputs).c_str(),
      format_bytes(options.budget).c_str(), run_ahead_table(rows, wide).c_str());
}

}  // namespace

int run_oom(const Stress& stress) {
  Report report;
  print_patterns(report, stress);
  print_run_ahead(report, stress.wide);
  if (!report.wrong.empty()) std::puts("");
  for (const std::string& line : report.wrong) std::printf("! %s\n", line.c_str());
  for (const std::string& line : stress.missing) std::printf("%s\n", line.c_str());
  return report.ours_are_clean ? 0 : 1;
}

}  // namespace weir::bench
