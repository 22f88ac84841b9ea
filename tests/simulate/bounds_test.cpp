#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulate/run.hpp"

namespace weir::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A run of 1,000 ms, of which the device computes `part`.
RunResult made(double part, Bytes peak) {
  RunResult run;
  run.duration = std::chrono::seconds(1);
  run.computed = scaled(run.duration, part);
  run.peak = run.warm_peak = peak;
  return run;
}

template <typename Lines>
std::vector<std::string> texts(const Lines& lines) {
  std::vector<std::string> texts;
  for (const auto& line : lines) texts.push_back(line.text());
  return texts;
}

struct Made {
  Workload of = workload("steady-2ms");
  Needs needs{.one = mib(100), .two = mib(120)};
  Bytes budget = mib(400);
  RunResult unbounded = made(1, mib(4000));
  RunResult backstop = made(1, mib(400));
  RunResult filling = made(1, mib(400));

  [[nodiscard]] std::vector<std::string> missed(const RunResult& run) const {
    return texts(missed_bounds(run, {of, needs, budget, unbounded, backstop, filling}));
  }
};

TEST(SimulatedBounds, SteadyNeedsThroughputAndLittleMemory) {
  const Made made_runs;
  EXPECT_THAT(made_runs.missed(made(0.996, mib(150))), IsEmpty());
  EXPECT_THAT(made_runs.missed(made(0.994, mib(150))), ElementsAre(HasSubstr("of unbounded")));
  EXPECT_THAT(made_runs.missed(made(0.996, mib(151))), ElementsAre(HasSubstr("memory")));
}

TEST(SimulatedBounds, OthersAreComparedWithFillingTheBudget) {
  Made made_runs;
  made_runs.of = workload("log-normal");
  made_runs.filling = made(0.8, mib(300));
  EXPECT_THAT(made_runs.missed(made(0.795, mib(300))), IsEmpty());
  EXPECT_THAT(made_runs.missed(made(0.79, mib(301))),
              ElementsAre(HasSubstr("of filling"), HasSubstr("memory")));
}

TEST(SimulatedBounds, ATightBudgetIsNeverBehindBackstop) {
  Made made_runs;
  made_runs.of = workload("bursts");
  made_runs.budget = mib(200);
  made_runs.backstop = made_runs.filling = made(0.8, mib(200));
  EXPECT_THAT(made_runs.missed(made(0.796, mib(200))), IsEmpty());
  EXPECT_THAT(made_runs.missed(made(0.794, mib(200))), ElementsAre(HasSubstr("behind backstop")));
}

TEST(SimulatedBounds, CausedIdleFailuresAndUnfairnessCount) {
  Made made_runs;
  made_runs.of = workload("producers-1:10");
  RunResult run = made(1, mib(400));
  run.failed = 1;
  run.jain = 0.94;
  run.caused_idle = std::chrono::milliseconds(11);
  EXPECT_THAT(made_runs.missed(run), ElementsAre(HasSubstr("Jain"), HasSubstr("out of memory"),
                                                 HasSubstr("throttle-caused idle")));
}

TEST(SimulatedBounds, OnlyBatchesThatNeedMoreThanTheBudgetMayFail) {
  const Made made_runs;
  RunResult run = made(1, mib(100));
  run.failed = run.too_large = 3;
  EXPECT_THAT(made_runs.missed(run), IsEmpty());
  ++run.failed;
  EXPECT_THAT(made_runs.missed(run), ElementsAre("out of memory 4.0000 > 3.0000"));
}

TEST(SimulatedBounds, APolicyIsBetterOnlyInBothColumns) {
  const RunResult own = made(0.9, mib(100));
  const RunResult faster = made(0.95, mib(95));
  const RunResult smaller = made(0.9, mib(50));
  const RunResult both = made(0.95, mib(80));
  EXPECT_THAT(texts(better_policies(own, {{"a", faster}, {"b", smaller}, {"c", both}})),
              ElementsAre("c has 1.056x the throughput and 0.80x the memory"));
}

/// A bound of missed_bounds, or a policy that is better, on one row.
struct Known {
  std::string_view workload;
  std::string_view budget;
  std::string_view what;  ///< Miss::what or Better::policy
  double most = 0;     ///< it misses the bound by no more; or the other's throughput over its own
  double memory = 0;   ///< the other's over its own, at least
  bool found = false;  ///< by the test
};

/// What `throttled` is known to miss, with seeds 1 and 3. A list to shorten: an entry that is
/// missed by more, or that no seed misses any more, fails the test.
std::vector<Known> known_misses() {
  return {
      // Only with seed 3. Once in 2,000 delays the host is late by half a millisecond, which is
      // five batches, and with this seed far more often. No constant limit from 2 to 4 batches
      // reaches 0.995 of unbounded then. So the limit grows, and keeps 2.5 times what was needed.
      {"steady-0.1ms", "1.5", "of unbounded", 0.0035},
      {"steady-0.1ms", "2", "of unbounded", 0.0026},
      {"steady-0.1ms", "2", "memory, of two batches'", 0.351},
      {"steady-0.1ms", "4", "of unbounded", 0.0007},
      {"steady-0.1ms", "4", "memory, of two batches'", 1.951},
      {"steady-0.1ms", "16", "memory, of two batches'", 2.551},
      {"steady-0.1ms", "devices", "memory, of two batches'", 5.751},
  };
}

/// Returns what the row misses and nobody knows of, or not as much. Marks what it finds.
std::vector<std::string> unknown(const Outcome& outcome, std::vector<Known>& known) {
  const auto is_known = [&](std::string_view what, double by, double memory) {
    for (Known& one : known) {
      if (one.workload != outcome.workload->name || one.budget != outcome.budget) continue;
      if (one.what != what) continue;
      one.found = true;
      return by <= one.most && memory >= one.memory;
    }
    return false;
  };
  std::vector<std::string> unknown;
  for (const Miss& miss : outcome.missed) {
    if (!is_known(miss.what, miss.by(), 0)) unknown.push_back(miss.text());
  }
  for (const Better& better : outcome.better) {
    if (!is_known(better.policy, better.throughput, better.memory)) {
      unknown.push_back(better.text());
    }
  }
  return unknown;
}

TEST(SimulatedBounds, ThrottledKeepsThemOnEveryRowButTheKnownOnes) {
  ComparisonOptions options;
  options.run = {.batches = 2000, .jitter = assumed_jitter()};
  for (const Workload& of : workloads()) options.workloads.push_back(&of);
  for (const PolicyChoice& policy : policies()) options.policies.push_back(&policy);
  for (const char* budget : {"1", "1.5", "2", "4", "16", "devices"}) {
    options.budgets.push_back(parse_budget(budget));
  }
  std::vector<Known> known = known_misses();
  std::size_t rows = 0;
  // Rare delays of the host make seeds differ for short batches: 1 is a lucky one, 3 is not.
  for (const std::uint64_t seed : {1U, 3U}) {
    options.run.seed = seed;
    compare(options, [&](Outcome&& outcome) {
      if (outcome.policy != &policies().front()) return;
      ++rows;
      EXPECT_THAT(unknown(outcome, known), IsEmpty())
          << outcome.workload->name << " at " << outcome.budget << ", seed " << seed;
    });
  }
  EXPECT_EQ(rows, 2 * options.workloads.size() * options.budgets.size());
  for (const Known& one : known) {
    EXPECT_TRUE(one.found) << "no longer missed: " << one.workload << " at " << one.budget << ": "
                           << one.what;
  }
}

}  // namespace
}  // namespace weir::simulate
