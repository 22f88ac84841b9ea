// weir-run-ahead: the run-ahead limit that adapts beside free run-ahead and fixed limits.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "bench/run_ahead/run.hpp"
#include "bench/simulate/choices.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir::run_ahead {
namespace {

constexpr RunAhead kFree{.batches = std::nullopt};

struct Flags {
  std::string cases = "all";
  std::string batches = "1500";
  std::string seeds = "5";
  std::string first = std::to_string(RunAheadLimit::kFirstBatches);
  bool real = false;
  bool list = false;
};

/// A case over all seeds.
struct Row {
  std::string_view name;
  double mean = 0;   ///< speed over free run-ahead
  double worst = 2;  ///< of a seed
  double held = 0;   ///< MiB, mean
  double peak = 0;   ///< MiB, most
  double lost = 0;   ///< per cent of the free run, as measured by the rules
  double fixed = 0;  ///< the smallest fixed limit that is as fast, mean
  double fixed_held = 0;
};

double mib_of(Bytes bytes) { return static_cast<double>(bytes.count) / 0x1p20; }
double ratio(Time a, Time b) {
  return static_cast<double>(a.count()) / static_cast<double>(b.count());
}

class Comparison {
 public:
  Comparison(std::uint64_t batches, std::uint64_t seeds, std::uint64_t first, bool real)
      : batches_(batches), seeds_(seeds), first_(first), real_(real) {}

  [[nodiscard]] Row compare(const Case& of) const {
    Row row{.name = of.name};
    for (std::uint64_t seed = 1; seed <= seeds_; ++seed) {
      const auto drawn = draw(of, batches_, seed);
      const CaseRun free = run(drawn, kFree, seed);
      const CaseRun adapts = run(drawn, {}, seed);
      const double speed = adapts.speed() / free.speed();
      const double part = 1 / static_cast<double>(seeds_);
      row.mean += speed * part;
      row.worst = std::min(row.worst, speed);
      row.held += mib_of(adapts.held) * part;
      row.peak = std::max(row.peak, mib_of(adapts.peak));
      row.lost += 100 * ratio(adapts.lost, free.duration) * part;
      if (real_) continue;
      const auto [limit, run] = smallest_as_fast(drawn, adapts, seed);
      row.fixed += static_cast<double>(limit) * part;
      row.fixed_held += mib_of(run.held) * part;
    }
    return row;
  }

 private:
  [[nodiscard]] CaseRun run(const std::vector<std::vector<CaseBatch>>& drawn,
                            const RunAhead& run_ahead, std::uint64_t seed) const {
    return real_ ? run_case(drawn, run_ahead) : simulate_case(drawn, run_ahead, seed, first_);
  }
  /// Within a fifth of a per cent, which wake-ups make.
  [[nodiscard]] std::pair<std::uint64_t, CaseRun> smallest_as_fast(
      const std::vector<std::vector<CaseBatch>>& drawn, const CaseRun& adapts,
      std::uint64_t seed) const {
    for (std::uint64_t limit = 1;; ++limit) {
      const CaseRun fixed = run(drawn, {.batches = limit, .time = Time{}}, seed);
      if (fixed.speed() >= 0.998 * adapts.speed() || limit > batches_) {
        return {limit, fixed};
      }
    }
  }

  const std::uint64_t batches_;
  const std::uint64_t seeds_;
  const std::uint64_t first_;
  const bool real_;
};

std::string table_of(const std::vector<Row>& rows, bool real) {
  const auto numbers = [&](double Row::*field, int digits) {
    std::vector<std::string> cells;
    cells.reserve(rows.size());
    for (const Row& row : rows) cells.push_back(format_number(row.*field, digits));
    return cells;
  };
  std::vector<std::string> names;
  std::vector<std::string> ratios;
  names.reserve(rows.size());
  ratios.reserve(rows.size());
  for (const Row& row : rows) {
    names.emplace_back(row.name);
    ratios.push_back(format_number(row.held / row.fixed_held, 2));
  }
  ReportTable table;
  table.words({"case", "what runs (--list)"}, names)
      .numbers({"to free", "speed over that of free run-ahead, mean"}, numbers(&Row::mean, 3))
      .numbers({"worst", "of a seed"}, numbers(&Row::worst, 3))
      .numbers({"lost %", "as the rules measured it"}, numbers(&Row::lost, 1))
      .numbers({"held MiB", "most, in the last third"}, numbers(&Row::held, 1))
      .numbers({"peak MiB", "of the whole run"}, numbers(&Row::peak, 1));
  if (!real) {
    table
        .numbers({"fixed", "smallest fixed limit that is as fast, in batches"},
                 numbers(&Row::fixed, 1))
        .numbers({"held/fixed", "memory in the last third, over that limit's"}, ratios);
  }
  double sum = 0;
  std::string slow;
  for (const Row& row : rows) {
    sum += row.mean;
    if (row.mean < 0.99) slow += (slow.empty() ? "" : ", ") + std::string(row.name);
  }
  return table.format(false) + "\nmean speed " +
         format_number(sum / static_cast<double>(rows.size()), 3) +
         "; below 0.99: " + (slow.empty() ? "none" : slow) + "\n";
}

int run(const Flags& flags) {
  std::vector<const Case*> chosen = cases(flags.real || flags.list);
  if (flags.list) {
    for (const Case* of : chosen) std::printf("%-18s  %s\n", of->name.data(), of->about.data());
    return 0;
  }
  if (flags.cases != "all") {
    std::erase_if(chosen, [&](const Case* of) { return of->name != flags.cases; });
  }
  if (chosen.empty())
    refuse("--case", flags.cases, "all or a name of --list; pipelines only with --real");
  const Comparison comparison(simulate::whole("--batches", flags.batches, 3, 1'000'000),
                              simulate::whole("--seeds", flags.seeds, 1, 1000),
                              simulate::whole("--first", flags.first, 2, 1'000'000), flags.real);
  std::vector<Row> rows;
  rows.reserve(chosen.size());
  for (const Case* of : chosen) rows.push_back(comparison.compare(*of));
  std::fputs(table_of(rows, flags.real).c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : throw Error("standard output cannot be written");
}

int run_program(int argc, char** argv) {
  CommandLine line("the run-ahead that adapts, beside free run-ahead and fixed limits");
  Flags flags;
  line.add("--case", flags.cases, Value("all|NAME"), "what runs");
  line.add("--batches", flags.batches, Value("N"), "of a run");
  line.add("--seeds", flags.seeds, Value("N"), "runs of each case");
  line.add("--first", flags.first, Value("N"), "batches that it begins with; not with --real");
  line.add("--real", flags.real, "in real time on the cpu device; use chrt -f 10");
  line.add("--list", flags.list, "print the cases");
  line.set_page("docs/throttling.md");
  if (const auto code = line.parse("weir-run-ahead", argc, argv)) return *code;
  require_standard_output();
  return line.run([&] { return run(flags); });
}

}  // namespace
}  // namespace weir::run_ahead

int main(int argc, char** argv) {
  return weir::run_main("weir-run-ahead", [&] { return weir::run_ahead::run_program(argc, argv); });
}
