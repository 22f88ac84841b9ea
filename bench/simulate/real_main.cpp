// weir-simulate-real: the simulator's workloads for real on the cpu device, beside what the
// simulator predicts with the jitter of these runs.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "bench/simulate/choices.hpp"
#include "bench/simulate/comparison.hpp"
#include "bench/simulate/real.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/median.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir::simulate {
namespace {

struct Flags {
  ChoiceFlags choices{.policies = "throttled,throttled-2,throttled-20ms,backstop,unbounded,barrier",
                      .budgets = "1,1.5,4"};
  std::string seconds = "1";
  std::string rounds = "3";
  std::string record;
};

struct Options {
  Choices choices;
  std::uint64_t seconds = 1;
  std::uint64_t rounds = 3;
};

/// One policy in one budget: what was measured in each round, and what is predicted from its
/// jitter.
struct Row {
  const PolicyChoice* policy;
  const BudgetChoice* budget;
  RealOptions options;
  struct Figures {
    std::vector<double> ms{};
    std::vector<double> held{};  ///< bytes, the most at one time
    std::vector<double> peak{};  ///< bytes that the pool reserved; that were used
  };
  Figures real{};
  Figures predicted{};
};

Options checked(const Flags& flags) {
  Options options{.choices = flags.choices.read()};
  Choices& choices = options.choices;
  std::erase_if(choices.workloads, [](const Workload* one) { return !runs_for_real(*one); });
  std::erase_if(choices.policies, [](const PolicyChoice* one) { return !runs_for_real(*one); });
  if (choices.workloads.empty()) throw UsageError("--workload: only simulated");
  if (choices.policies.empty()) throw UsageError("--policy: only simulated");
  options.seconds = whole("--seconds", flags.seconds, 1, 600);
  options.rounds = whole("--rounds", flags.rounds, 1, 100);
  return options;
}

std::uint64_t batches_of(const Workload& workload, std::uint64_t seconds) {
  const std::uint64_t batches =
      static_cast<std::uint64_t>(std::chrono::seconds(seconds) / workload.compute);
  return std::clamp<std::uint64_t>(batches, 40, 20'000);
}

std::vector<Row> rows_of(const Workload& workload, const Options& options) {
  const std::uint64_t batches = batches_of(workload, options.seconds);
  const Choices& choices = options.choices;
  const Needs needs = needs_of(workload, batches, choices.seed);
  std::vector<Row> rows;
  for (const BudgetChoice& budget : choices.budgets) {
    for (const PolicyChoice* policy : choices.policies) {
      const bool is_known = !policy->has_budget && &budget != &choices.budgets.front();
      const Bytes bytes = bytes_of(budget, needs);
      if (is_known || bytes < needs.one) continue;
      rows.push_back({.policy = policy,
                      .budget = &budget,
                      .options = {.budget = bytes, .batches = batches, .seed = choices.seed}});
    }
  }
  return rows;
}

double ms(Time time) { return std::chrono::duration<double, std::milli>(time).count(); }

/// Runs every row, and predicts it from the delays of that run, batch by batch: a rare one of a
/// millisecond moves the peak by a whole batch, and a draw would have it twice or never. Wake-ups
/// of several producers are drawn from those of a barrier run: there it is known what each wait was
/// for.
void run_round(const Workload& workload, std::vector<Row>& rows, JitterSamples& all) {
  const bool is_alone = workload.producers.size() == 1;
  std::vector<Time> wake_up;
  if (!is_alone) {
    Workload alone = workload;
    alone.producers = {workload.producers.front()};
    RealOptions options = rows.front().options;
    options.budget = gib(1024);
    const auto barrier = std::ranges::find_if(policies(), &PolicyChoice::barrier);
    wake_up = run_for_real(alone, *barrier, options).samples.wake_up;
  }
  const auto note = [](Row::Figures& figures, Time duration, Bytes held, Bytes peak) {
    figures.ms.push_back(ms(duration));
    figures.held.push_back(static_cast<double>(held.count));
    figures.peak.push_back(static_cast<double>(peak.count));
  };
  for (Row& row : rows) {
    RealResult real = run_for_real(workload, *row.policy, row.options);
    note(row.real, real.duration, real.held, real.peak);
    if (!is_alone) real.samples.wake_up = wake_up;
    const RunResult predicted = simulate(workload, *row.policy,
                                         {.budget = row.options.budget,
                                          .batches = row.options.batches,
                                          .seed = row.options.seed,
                                          .jitter = real.samples.distributions(),
                                          .recorded = real.recorded});
    note(row.predicted, predicted.duration, predicted.held_peak, predicted.peak);
    all.add(real.samples);
  }
}

/// How many rows are predicted well, in one figure.
struct Summary {
  static constexpr double kWithin = 3;  ///< percent

  std::size_t rows = 0;
  std::size_t within = 0;
  double worst = 0;  ///< percent

  void add(double off) {
    ++rows;
    if (std::abs(off) <= kWithin) ++within;
    worst = std::max(worst, std::abs(off));
  }
  [[nodiscard]] std::string text() const {
    return std::to_string(within) + " of " + std::to_string(rows) + " (worst " +
           format_number(worst, 1) + "%)";
  }
};

struct Summaries {
  Summary time;
  Summary held;
  Summary peak;

  [[nodiscard]] std::string text() const {
    return "rows within " + format_number(Summary::kWithin, 0) + "%: time " + time.text() +
           ", held " + held.text() + ", peak " + peak.text();
  }
};

/// The medians of a figure, and by how many percent the prediction is off.
struct Pair {
  double real = 0;
  double predicted = 0;
  [[nodiscard]] double off() const { return 100 * (predicted / real - 1); }
};

Pair pair_of(const std::vector<double>& real, const std::vector<double>& predicted) {
  return {median(real), median(predicted)};
}

/// A line of the table.
struct Line {
  std::string budget;
  std::string policy;
  Pair ms;
  Pair held;
  Pair peak;
};

/// Adds by how much the prediction of a figure is off, and for a wide table the figure itself.
void add_pair(ReportTable& table, const std::vector<Line>& lines, Pair Line::*pair,
              const std::string& name, const std::string& meaning) {
  const auto sizes = [&](double Pair::*figure) {
    return cells_of(lines, [&](const Line& line) {
      return std::optional(Bytes{static_cast<std::uint64_t>(line.*pair.*figure)});
    });
  };
  table.numbers(
      {name + " off %", "by how much the predicted " + meaning + " is off"},
      cells_of(lines, [&](const Line& line) { return format_number((line.*pair).off(), 1); }));
  if (pair == &Line::ms) {
    const auto times = [&](double Pair::*figure) {
      return cells_of(lines,
                      [&](const Line& line) { return std::optional(1e6 * (line.*pair.*figure)); });
    };
    table.times({"real " + name, "measured"}, times(&Pair::real));
    table.times({"predicted " + name, "simulated", Shown::kWide}, times(&Pair::predicted));
    return;
  }
  table.bytes({"real " + name, "measured"}, sizes(&Pair::real));
  table.bytes({"predicted " + name, "simulated", Shown::kWide}, sizes(&Pair::predicted));
}

void print(const Workload& workload, const std::vector<Row>& rows, Summaries& all, bool wide) {
  Summaries own;
  std::vector<Line> lines;
  for (const Row& row : rows) {
    lines.push_back({.budget = row.policy->has_budget ? row.budget->name : "-",
                     .policy = std::string(row.policy->name),
                     .ms = pair_of(row.real.ms, row.predicted.ms),
                     .held = pair_of(row.real.held, row.predicted.held),
                     .peak = pair_of(row.real.peak, row.predicted.peak)});
    for (Summaries* sums : {&own, &all}) {
      sums->time.add(lines.back().ms.off());
      sums->held.add(lines.back().held.off());
      sums->peak.add(lines.back().peak.off());
    }
  }
  ReportTable table;
  table
      .words({"policy", "of " + std::string(workload.name)},
             cells_of(lines, [](const Line& line) { return line.policy; }), Long::kCut)
      .words({"budget", "in least budgets, or a size"},
             cells_of(lines, [](const Line& line) { return line.budget; }), Long::kCut);
  add_pair(table, lines, &Line::ms, "time", "time");
  add_pair(table, lines, &Line::held, "held", "most memory in use");
  add_pair(table, lines, &Line::peak, "peak", "most memory taken");
  std::fputs(
      (std::string(workload.name) + "\n" + table.format(wide) + wrapped(own.text(), 2) + "\n")
          .c_str(),
      stdout);
  std::fflush(stdout);
}

int run(const Flags& flags) {
  const Options options = checked(flags);
  std::optional<OutputFile> record;
  if (!flags.record.empty()) record.emplace("--record", flags.record);
  JitterSamples samples;
  Summaries summaries;
  for (const Workload* workload : options.choices.workloads) {
    std::vector<Row> rows = rows_of(*workload, options);
    if (rows.empty()) continue;
    for (std::uint64_t i = 0; i < options.rounds; ++i) run_round(*workload, rows, samples);
    print(*workload, rows, summaries, flags.choices.wide);
  }
  if (summaries.time.rows == 0)
    throw UsageError("--budget: below the least budget of each workload");
  std::fputs(wrapped("all workloads: " + summaries.text(), 2).c_str(), stdout);
  if (record) record->commit(format_jitter(samples.distributions()));
  return 0;
}

int run_program(int argc, char** argv) {
  CommandLine line(
      "run the simulator's workloads on the cpu device, beside what the simulator predicts");
  Flags flags;
  flags.choices.add_to(line);
  line.add("--seconds", flags.seconds, Value("SECONDS"), "device time of a run");
  line.add("--rounds", flags.rounds, Value("N"),
           "rounds over all rows of a workload; medians are shown");
  line.add("--record", flags.record, Value("FILE"), "write the jitter, for weir-simulate --jitter");
  line.set_page("docs/simulate.md");
  line.set_footer(
      "Each round runs each row and predicts it from the delays of that run. Memory is smaller by "
      "16, and shown as if not.");
  if (const auto code = line.parse("weir-simulate-real", argc, argv)) return *code;
  require_standard_output();
  return line.run([&] { return run(flags); });
}

}  // namespace
}  // namespace weir::simulate

int main(int argc, char** argv) {
  return weir::run_main("weir-simulate-real",
                        [&] { return weir::simulate::run_program(argc, argv); });
}
