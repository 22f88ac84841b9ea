#include "bench/simulate/bounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulate/run.hpp"

namespace weir::simulate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
  RunResult filling = made(1, mib(400));

  [[nodiscard]] std::vector<std::string> missed(const RunResult& run) const {
    return texts(missed_bounds(run, {of, needs, budget, unbounded, filling}));
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
  made_runs.filling = made(0.8, mib(200));
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

/// What `throttled` is known to miss: a bound of missed_bounds, or a policy that is better.
struct Known {
  std::string_view workload;
  std::string_view budget;
  std::string_view what;
  double most = 0;    ///< by so much it misses the bound; or the other's throughput over its own
  double memory = 0;  ///< the other's over its own, at least
  bool found = false;
};

std::vector<Known> known_misses() {
  return {
      // Constant limits hold a burst back as well, and lose little where no queue covers the pause.
      {"bursts", "1.5", "batches-2", 1.04, 0.83},
      {"bursts", "2", "batches-4", 1.03, 0.87},
      // The copy of the batch before one that fails is not held up by memory that was handed over.
      {"too-large-1.1", "2", "batches-2", 1.1, 0.76},
      {"too-large-1.1", "2", "batches-3", 1.1, 0.89},
      {"too-large-1.1", "2", "bql", 1.1, 0.89},
      // A batch that fails has first waited until the device was done with all others.
      {"too-large-1.1", "16", "throttle-caused idle", 0.024},
      {"too-large-1.1", "devices", "throttle-caused idle", 0.024},
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
  compare(options, [&](Outcome&& outcome) {
    if (outcome.policy != &policies().front()) return;
    ++rows;
    EXPECT_THAT(unknown(outcome, known), IsEmpty())
        << outcome.workload->name << " at " << outcome.budget;
  });
  EXPECT_EQ(rows, options.workloads.size() * options.budgets.size());
  for (const Known& one : known) {
    EXPECT_TRUE(one.found) << "no longer missed: " << one.workload << " at " << one.budget << ": "
                           << one.what;
  }
}

}  // namespace
}  // namespace weir::simulate
