// weir-faq: measures answers of docs/faq.md. Usually called by bench/run faq.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "bench/faq/cache.hpp"
#include "bench/faq/made_run.hpp"
#include "bench/faq/order.hpp"
#include "kernels/blas/blas.hpp"
#include "scheduler/admission/policy.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/median.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/timeline/begin.hpp"

namespace weir::bench {
namespace {

constexpr std::array<Policy, 4> kPolicies{Policy::kUnbounded, Policy::kBackstop, Policy::kThrottled,
                                          Policy::kBarrier};

struct Flags {
  std::string read = "0";
  std::string copy = "400";
  std::string launch = "0";
  std::string compute = "2000";
  std::string operations = "1";
  std::string batches = "200";
  std::string policy = "throttled";
  std::string timeline;
  std::string repeats = "3";
};

std::uint64_t whole(const std::string& flag, const std::string& text, std::uint64_t least,
                    std::uint64_t most) {
  const auto value = parse_whole(text);
  if (!value || *value < least || *value > most) {
    refuse(flag, text,
           "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return *value;
}

std::chrono::microseconds time(const std::string& flag, const std::string& text) {
  return std::chrono::microseconds(whole(flag, text, 0, 1'000'000));
}

std::string share(std::chrono::nanoseconds part, std::chrono::nanoseconds all) {
  return format_number(100.0 * static_cast<double>(part.count()) / static_cast<double>(all.count()),
                       1) +
         "%";
}

int print_made_run(const Flags& flags) {
  const MadeTimes times{.read = time("--read", flags.read),
                        .copy = time("--copy", flags.copy),
                        .launch = time("--launch", flags.launch),
                        .compute = time("--compute", flags.compute),
                        .operations = whole("--operations", flags.operations, 1, 1000)};
  const Policy policy = parse_policy("--policy", flags.policy);
  const std::uint64_t batches = whole("--batches", flags.batches, 1, 100'000);
  timeline::TimelineSettings settings;
  if (!flags.timeline.empty()) {
    settings.file = {timeline::parse_timeline_file("--timeline", flags.timeline), "--timeline"};
  }
  timeline::Recorder* const recorder =
      timeline::record_program(settings, {.gpu = false, .required = true});
  const MadeRunFigures figures = run_made(times, policy, batches);
  if (recorder != nullptr) (void)recorder->finish();
  const double each = static_cast<double>(figures.time.count()) / static_cast<double>(batches);
  std::fputs(format_facts({{"policy", flags.policy},
                           {"batches", flags.batches},
                           {"time of a batch", format_nanoseconds(each)},
                           {"copying", share(figures.copying, figures.time)},
                           {"computing", share(figures.computing, figures.time)},
                           {"most in flight", format_count(figures.most_in_flight, "batch", "es")}})
                 .c_str(),
             stdout);
  return 0;
}

std::string order_table(const std::vector<std::pair<Policy, OrderFigures>>& rows) {
  const auto counts = [&](std::uint64_t OrderFigures::*count) {
    return cells_of(rows, [&](const auto& row) { return std::to_string(row.second.*count); });
  };
  ReportTable table;
  table
      .words({"policy", "how the frontends are held back"},
             cells_of(rows, [](const auto& row) { return std::string(to_string(row.first)); }))
      .numbers({"late", "operations that ran before an earlier one of their tensor"},
               counts(&OrderFigures::late))
      .numbers({"lost", "that did not run"}, counts(&OrderFigures::lost))
      .numbers({"overtaken", "by one of another tensor"}, counts(&OrderFigures::overtaken))
      .numbers({"operations", "in all"}, counts(&OrderFigures::operations))
      .words({"results", "their hash"},
             cells_of(rows, [](const auto& row) { return format_hex(row.second.hash, 16); }));
  return table.format(false);
}

/// Returns 1 if an order was not kept.
int print_order(const Flags& flags) {
  const std::uint64_t batches = whole("--batches", flags.batches, 1, 2000);  // all may be queued
  const std::uint64_t repeats = whole("--repeats", flags.repeats, 1, 100);
  std::vector<std::pair<Policy, OrderFigures>> rows;
  std::set<std::uint64_t> hashes;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < repeats; ++i) {
    for (const Policy policy : kPolicies) {
      const OrderFigures figures = run_order(policy, batches);
      hashes.insert(figures.hash);
      wrong += figures.late + figures.lost;
      rows.emplace_back(policy, figures);
    }
  }
  std::fputs(order_table(rows).c_str(), stdout);
  if (wrong == 0 && hashes.size() == 1) return 0;
  std::fputs("weir-faq: an order was not kept\n", stderr);
  return 1;
}

std::string miss_text(const CacheFigures& figures) {
  return figures.misses ? format_number(*figures.misses, 0) : "not counted: " + figures.refusal;
}

/// The median of the runs of one case.
struct CacheRow {
  CacheCase what{};
  double seconds = 0;
  double ratio = 0;  ///< to the same with one batch queued
  std::string misses;
};

std::string cache_table(const std::vector<CacheRow>& rows) {
  ReportTable table;
  table
      .words({"operation", "on each batch"},
             cells_of(rows,
                      [](const CacheRow& row) {
                        return std::string(row.what.operation == CacheOperation::kAdd ? "add"
                                                                                      : "product");
                      }))
      .bytes({"batch", "its size"},
             cells_of(rows, [](const CacheRow& row) { return std::optional(row.what.batch); }))
      .numbers({"queued", "batches queued before it"},
               cells_of(rows, [](const CacheRow& row) { return std::to_string(row.what.depth); }))
      .times({"time", "of an operation, median"},
             cells_of(rows, [](const CacheRow& row) { return std::optional(1e9 * row.seconds); }))
      .numbers({"to 1 queued", "that over the time with one batch queued"},
               cells_of(rows, [](const CacheRow& row) { return format_number(row.ratio, 2); }))
      .words({"cache misses", "of an operation"},
             cells_of(rows, [](const CacheRow& row) { return row.misses; }), Long::kCut);
  return table.format(false);
}

int print_cache(const Flags& flags) {
  constexpr std::array<std::uint64_t, 4> kDepths{1, 4, 16, 64};
  const std::uint64_t operations = whole("--operations", flags.operations, 1, 100'000);
  const std::uint64_t repeats = whole("--repeats", flags.repeats, 1, 100);
  reserve_blas_memory();
  set_blas_threads(1);
  std::vector<CacheRow> rows;
  for (const CacheOperation operation : {CacheOperation::kAdd, CacheOperation::kProduct}) {
    for (const Bytes batch : {kib(64), mib(1)}) {
      std::array<std::vector<double>, kDepths.size()> times;
      std::array<CacheFigures, kDepths.size()> last;
      // In turn, so that other load on the machine affects all alike.
      for (std::uint64_t i = 0; i < repeats; ++i) {
        for (std::size_t at = 0; at < kDepths.size(); ++at) {
          last.at(at) = run_cache({.operation = operation, .batch = batch, .depth = kDepths.at(at)},
                                  operations);
          times.at(at).push_back(last.at(at).seconds);
        }
      }
      const double one = median(times.front());
      for (std::size_t at = 0; at < kDepths.size(); ++at) {
        const double here = median(times.at(at));
        rows.push_back({.what = {.operation = operation, .batch = batch, .depth = kDepths.at(at)},
                        .seconds = here,
                        .ratio = here / one,
                        .misses = miss_text(last.at(at))});
      }
    }
  }
  std::fputs(cache_table(rows).c_str(), stdout);
  return 0;
}

int run_program(int argc, char** argv) {
  CommandLine line("measure answers of docs/faq.md on the cpu device; bench/run faq has them all");
  line.require_command();
  line.set_page("docs/faq.md");
  Flags made;
  Flags order;
  Flags cache;
  cache.operations = "64";
  CommandLine& run = line.add_command("run", "run a training loop whose times are made");
  run.add("--read", made.read, Value("N"), "microseconds to read a batch, before it begins");
  run.add("--copy", made.copy, Value("N"), "microseconds to copy a batch to the device");
  run.add("--launch", made.launch, Value("N"), "microseconds of the program before each operation");
  run.add("--compute", made.compute, Value("N"), "microseconds of an operation on the device");
  run.add("--operations", made.operations, Value("N"), "operations of a batch");
  run.add("--batches", made.batches, Value("N"), "batches to run");
  run.add("--policy", made.policy, Value::one_of(names_to(Policy::kBarrier)),
          "what holds the loop back");
  run.add("--timeline", made.timeline, Value("FILE"), "record a timeline");
  CommandLine& two = line.add_command(
      "order", "run two threads and two streams: exit with 1 if a tensor's order is not kept");
  two.add("--batches", order.batches, Value("N"), "batches of each thread");
  two.add("--repeats", order.repeats, Value("N"), "runs of each policy");
  CommandLine& queue = line.add_command(
      "cache", "measure the time of an operation, by the batches queued before it");
  queue.add("--operations", cache.operations, Value("N"),
            "operations of a run, at least as many as queued");
  queue.add("--repeats", cache.repeats, Value("N"), "runs of each; medians are shown");
  if (const auto code = line.parse("weir-faq", argc, argv)) return *code;
  require_standard_output();
  return line.run([&] {
    const int code = run.named()   ? print_made_run(made)
                     : two.named() ? print_order(order)
                                   : print_cache(cache);
    if (std::fflush(stdout) != 0) throw Error("standard output cannot be written");
    return code;
  });
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  return weir::run_main("weir-faq", [&] { return weir::bench::run_program(argc, argv); });
}
