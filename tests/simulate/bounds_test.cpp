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

struct Made {
  Workload of = workload("steady-2ms");
  Needs needs{.one = mib(100), .two = mib(120)};
  Bytes budget = mib(400);
  RunResult unbounded = made(1, mib(4000));
  RunResult filling = made(1, mib(400));

  [[nodiscard]] std::vector<std::string> missed(const RunResult& run) const {
    return missed_bounds(run, {of, needs, budget, unbounded, filling});
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

TEST(SimulatedBounds, APolicyIsBetterOnlyInBothColumns) {
  const RunResult own = made(0.9, mib(100));
  const RunResult faster = made(0.95, mib(95));
  const RunResult smaller = made(0.9, mib(50));
  const RunResult both = made(0.95, mib(80));
  EXPECT_THAT(better_policies(own, {{"a", faster}, {"b", smaller}, {"c", both}}),
              ElementsAre("c has 1.056x the throughput and 0.80x the memory"));
}

/// Rows of the real policy that have to hold.
TEST(SimulatedBounds, ThrottledKeepsThemOnRowsOfOneProducer) {
  for (const char* name : {"steady-0.1ms", "steady-2ms", "steady-50ms", "bursts", "log-normal",
                           "kinds-1:10", "new-kinds", "slow-loader", "fast-loader", "copies-ahead",
                           "retained", "host-bound", "collectives", "hints-x10", "hints-x0.1"}) {
    const RunOptions options{.batches = 2000, .jitter = assumed_jitter()};
    const Workload& of = workload(name);
    const Needs needs = needs_of(of, options.batches, options.seed);
    const RunResult unbounded = run(of, "unbounded", 1, options);
    for (const double least : {1.0, 1.5, 2.0, 4.0, 16.0}) {
      const RunResult filling = run(of, "backstop", least, options);
      const Bytes budget{static_cast<std::uint64_t>(least * static_cast<double>(needs.one.count))};
      EXPECT_THAT(missed_bounds(run(of, "throttled", least, options),
                                {of, needs, budget, unbounded, filling}),
                  IsEmpty())
          << name << " at " << least;
    }
  }
}

}  // namespace
}  // namespace weir::simulate
