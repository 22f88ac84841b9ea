#include "bench/simulate/simulation.hpp"

#include <gtest/gtest.h>

#include "simulate/run.hpp"

namespace weir::simulate {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::string figures(const RunResult& run) {
  const auto text = [](auto... values) { return ((std::to_string(values) + " ") + ...); };
  return text(run.batches, run.failed, run.duration.count(), run.peak.count, run.warm_peak.count,
              run.idle.sum().count(), run.idle.host.count(), run.caused_idle.count(), run.jain,
              run.stalls.p50.count(), run.stalls.most.count());
}

TEST(Simulation, MemoryReturnsToNothingUnderEachPolicyAndWorkload) {
  for (const Workload& of : workloads()) {
    for (const PolicyChoice& policy : policies()) {
      const RunResult run =
          simulate::run(of, policy.name, 2, {.batches = 200, .jitter = assumed_jitter()});
      EXPECT_EQ(run.left, Bytes{}) << of.name << " " << policy.name;
      EXPECT_EQ(run.batches + run.failed, 200U) << of.name << " " << policy.name;
      EXPECT_EQ(run.stalls.batches, 200U) << of.name << " " << policy.name;
    }
  }
}

TEST(Simulation, NoPolicyWithABudgetExceedsIt) {
  for (const Workload& of : workloads()) {
    const Bytes least = needs_of(of, 200, 1).one;
    for (const PolicyChoice& policy : policies()) {
      if (!policy.has_budget || policy.may_exceed) continue;
      const RunResult run = simulate::run(of, policy.name, 1, {.batches = 200});
      EXPECT_LE(run.peak, least) << of.name << " " << policy.name;
      EXPECT_GT(run.peak, Bytes{});
    }
  }
}

TEST(Simulation, TheTimeOfTheDeviceIsComputedOrIdle) {
  for (const Workload& of : workloads()) {
    for (const char* policy : {"throttled", "backstop", "barrier", "batches-2"}) {
      const RunResult run =
          simulate::run(of, policy, 2, {.batches = 500, .jitter = assumed_jitter()});
      const Time tail = of.collective > 0 ? of.compute : Time{};  // the last collective
      EXPECT_LE(run.computed + run.idle.sum(), run.duration) << of.name << " " << policy;
      EXPECT_GE(run.computed + run.idle.sum() + tail, run.duration) << of.name << " " << policy;
    }
  }
}

TEST(Simulation, TheSameSeedGivesTheSameRunAndAnotherOneDoesNot) {
  const RunOptions first{.batches = 500, .seed = 3, .jitter = assumed_jitter()};
  RunOptions other = first;
  other.seed = 4;
  for (const char* policy : {"throttled", "bql"}) {
    const std::string once = figures(run("log-normal", policy, 2, first));
    EXPECT_EQ(once, figures(run("log-normal", policy, 2, first))) << policy;
    EXPECT_NE(once, figures(run("log-normal", policy, 2, other))) << policy;
  }
}

TEST(Simulation, TheHostHasTheSameDelaysUnderEachPolicy) {
  const RunOptions options{.batches = 300, .jitter = assumed_jitter(), .keep_flights = true};
  const auto loads = [&](std::string_view policy) {
    std::vector<Time> times;
    const RunResult result = run("bursts", policy, 2, options);
    for (const Flight& flight : result.flights) times.push_back(flight.delays.host);
    return times;
  };
  const std::vector<Time> unbounded = loads("unbounded");  // it never waits, so it never wakes up
  EXPECT_EQ(loads("throttled"), unbounded);
  EXPECT_EQ(loads("barrier"), unbounded);
}

TEST(Simulation, UnboundedTakesAsLongAsTheBusiestOfHostCopyAndCompute) {
  // Host, copy and compute of a batch, in ms; the busiest decides, the others only at the ends.
  struct Case {
    double load, copy, submit;
    double busiest;
  };
  for (const Case& c : {Case{0.1, 0.2, 0.01, 1}, Case{1.5, 0.2, 0.5, 2}, Case{0.1, 3, 0.01, 3}}) {
    const Workload of{.name = "",
                      .about = "",
                      .compute = milliseconds(1),
                      .load = c.load,
                      .copy = c.copy,
                      .submit = c.submit};
    const RunResult run = simulate::run(of, "unbounded", 1, {.batches = 1000});
    const double ends = c.load + c.copy + c.submit + 1;
    const double took = std::chrono::duration<double, std::milli>(run.duration).count();
    EXPECT_GE(took, 1000 * c.busiest);
    EXPECT_LE(took, 999 * c.busiest + ends);
  }
}

TEST(Simulation, BarrierAddsLoadCopyAndComputeOfEachBatch) {
  const Workload of{.name = "",
                    .about = "",
                    .compute = milliseconds(10),
                    .load = 0.5,
                    .copy = 0.2,
                    .submit = 0.1};
  const RunResult run = simulate::run(of, "barrier", 4, {.batches = 100});
  // The copy is enqueued half way through the submission, and takes longer than the other half.
  EXPECT_EQ(run.duration, 100 * std::chrono::microseconds(17'500));
  EXPECT_EQ(run.peak, of.inputs + of.work);
}

TEST(Simulation, StallsAreSummedUpByTheMedianTwoPercentilesAndTheMost) {
  // The host takes no time, so under barrier each batch stands for its copy and its compute.
  const Workload of{.name = "",
                    .about = "",
                    .compute = milliseconds(10),
                    .load = 0,
                    .copy = 0.2,
                    .submit = 0,
                    .burst = 50,
                    .pause = milliseconds(100)};
  const RunResult run = simulate::run(of, "barrier", 4, {.batches = 200});
  EXPECT_EQ(run.stalls.batches, 200U);
  EXPECT_EQ(run.stalls.p50, milliseconds(12));
  EXPECT_EQ(run.stalls.most, milliseconds(12));
  const RunResult queued = simulate::run(of, "batches-2", 16, {.batches = 200});
  // A batch stands for a compute. The third one also stands for the first copy.
  EXPECT_EQ(queued.stalls.p50, milliseconds(10));
  EXPECT_LE(queued.stalls.p95, queued.stalls.p99);
  EXPECT_LE(queued.stalls.p99, queued.stalls.most);
  EXPECT_EQ(queued.stalls.most, milliseconds(12));
}

TEST(Simulation, AtMostSoManyBatchesAreSubmitted) {
  for (std::uint64_t limit = 1; limit <= 4; ++limit) {
    RunOptions options{.batches = 200, .keep_series = true};
    const RunResult run =
        simulate::run("fast-loader", "batches-" + std::to_string(limit), 16, options);
    const auto most = std::ranges::max_element(run.series, {}, &Sample::submitted);
    EXPECT_EQ(most->submitted, limit);
  }
}

TEST(Simulation, MlxsLimitOnBytesHoldsBackAndMayBeExceeded) {
  const Bytes least = needs_of(workload("steady-2ms"), 1000, 1).one;
  const RunResult tight = run("steady-2ms", "tasks-10", 1);
  const RunResult wide = run("steady-2ms", "tasks-10", 16);
  EXPECT_GT(tight.peak, least);
  EXPECT_LT(tight.peak, wide.peak);
}

TEST(Simulation, ThrottlesOwnCountOfCausedIdleIsTheTables) {
  Time sum{};
  for (const Workload& of : workloads()) {
    if (of.collective > 0) continue;  // their gaps are the device's in the table
    for (const double least : {1.5, 4.0}) {
      const RunResult run =
          simulate::run(of, "throttled", least, {.batches = 2000, .jitter = assumed_jitter()});
      ASSERT_TRUE(run.control);
      EXPECT_EQ(run.control->caused_idle, run.caused_idle) << of.name << " at " << least;
      sum += run.caused_idle;
    }
  }
  EXPECT_GT(sum, milliseconds(5));
}

TEST(Simulation, CausedIdleIsTheTimeLostAgainstUnbounded) {
  // With memory for everything, all that the device idles longer is due to holding back.
  const auto expect_equal = [](const Workload& of, std::string_view policy,
                               const RunOptions& options) {
    const RunResult held_back = run(of, policy, 1000, options);
    const RunResult unbounded = run(of, "unbounded", 1000, options);
    const Time lost = held_back.duration - unbounded.duration;
    // The next batch waits for a collective, of which FreeRun knows nothing: then it is a bound.
    EXPECT_GE(held_back.caused_idle, lost) << of.name << " " << policy;
    if (of.collective == 0) {
      EXPECT_EQ(held_back.caused_idle, lost) << of.name << " " << policy;
    }
    return held_back.caused_idle;
  };
  Time sum{};
  for (const Workload& of : workloads()) {
    // With several producers, whose batch is next depends on the policy. A batch that fails leaves
    // a gap under unbounded too.
    if (of.producers.size() > 1 || of.too_large > 1) continue;
    sum += expect_equal(of, "throttled", {.batches = 2000, .jitter = assumed_jitter()});
    sum += expect_equal(of, "throttled", {.batches = 2000});
  }
  EXPECT_GT(sum, milliseconds(5));
  for (const char* policy : {"batches-2", "barrier"}) {
    EXPECT_GT(expect_equal(workload("bursts"), policy, {.batches = 2000}), milliseconds(1000));
  }
}

TEST(Simulation, WhatTheDeviceTakesFromOneTaskToTheNextRaisesNoTarget) {
  RunOptions options{.batches = 2000};
  options.jitter.device = Distribution({{microseconds(5), microseconds(6), 1}});
  const RunResult unsteady = run("steady-2ms", "throttled", 4, options);
  const RunResult steady = run("steady-2ms", "throttled", 4, {.batches = 2000});
  EXPECT_GT(unsteady.duration, steady.duration + 1500 * microseconds(5)) << "the delays were drawn";
  EXPECT_EQ(unsteady.control->most, steady.control->most);
  EXPECT_EQ(unsteady.peak, steady.peak);
  EXPECT_EQ(unsteady.caused_idle, steady.caused_idle);
}

TEST(Simulation, ALargeRequestForMemoryIsServedBeforeSmallOnesThatComeLater) {
  const RunResult result =
      run("producers-1:10", "backstop", 1.5, {.batches = 500, .keep_flights = true});
  const auto large =
      std::ranges::count(result.flights, 1U, [](const Flight& flight) { return flight.producer; });
  EXPECT_GT(large, 50);
}

TEST(Simulation, RecordedDelaysComeBatchByBatch) {
  const RunOptions options{.batches = 4};
  RunOptions delayed = options;
  delayed.recorded = {{{},
                       {.host = milliseconds(1), .copy = milliseconds(2)},
                       {.wake_up = milliseconds(4), .device = milliseconds(8)}}};
  const Time without = run("steady-2ms", "barrier", 4, options).duration;
  EXPECT_EQ(run("steady-2ms", "barrier", 4, delayed).duration, without + milliseconds(15));
}

TEST(Simulation, TheFreeOfAKeptOutputWaitsForAllThatIsEnqueued) {
  const Workload& of = workload("retained");
  // Four are kept, a new one is taken, and one that was freed waits for the running batch.
  EXPECT_EQ(run(of, "throttled-2", 4).peak, of.inputs * 2 + of.work + of.retained * 6);
}

TEST(Simulation, HandingMemoryOverKeepsACopyBehindTheComputeBefore) {
  // A full budget: without it the host waits for one batch's inputs, and the next copy overlaps.
  const RunResult with =
      run("steady-2ms", "backstop", 4, {.batches = 1000, .hand_over = HandOver::kAlways});
  const RunResult without =
      run("steady-2ms", "backstop", 4, {.batches = 1000, .hand_over = HandOver::kNever});
  EXPECT_NEAR(with.throughput(), 1 / 1.2, 0.01) << "copies take a fifth of the computes";
  EXPECT_GT(without.throughput(), 0.998);
}

TEST(Simulation, HandingOverOnlyToTheLastBatchIsAsFastAsTheFasterOfBoth) {
  for (const char* policy : {"throttled", "backstop"}) {
    for (const Workload& of : workloads()) {
      for (const double least : {1.0, 1.5, 2.0, 4.0}) {
        RunOptions options{.batches = 2000, .jitter = assumed_jitter()};
        const auto throughput = [&](HandOver hand_over) {
          options.hand_over = hand_over;
          return run(of, policy, least, options).throughput();
        };
        const double last = throughput(HandOver::kLast);
        const double other = std::max(throughput(HandOver::kNever), throughput(HandOver::kAlways));
        EXPECT_GE(last, other * 0.9995) << of.name << " " << policy << " at " << least;
      }
    }
  }
}

TEST(Simulation, StartingInPartialRoomBesideOpenBatchesGainsNothingThatIsFair) {
  for (const char* of : {"producers-1:1", "producers-1:10"}) {
    for (const double least : {1.0, 1.25, 1.5, 2.0, 4.0}) {
      // Who begins the last batches of a short run is chance.
      const RunOptions options{.batches = 5000, .jitter = assumed_jitter()};
      const RunResult throttled = run(of, "throttled", least, options);
      const RunResult beside = run(of, "beside-open", least, options);
      EXPECT_GE(throttled.jain, 0.99) << of << " at " << least;
      EXPECT_LE(beside.throughput(), throttled.throughput() * 1.0005) << of << " at " << least;
    }
  }
}

TEST(Simulation, ABatchThatNoBudgetHoldsFailsAndTheOthersGoOn) {
  for (const char* policy : {"throttled", "backstop", "barrier"}) {
    EXPECT_EQ(run("too-large-1.1", policy, 2).failed, 100U) << policy;
    EXPECT_EQ(run("too-large-0.9", policy, 2).failed, 0U) << policy;
  }
}

TEST(Simulation, ThrottledNeverRunsOutWithSeveralProducers) {
  for (const char* of : {"producers-1:1", "producers-1:10"}) {
    for (const double least : {1.0, 1.2, 1.5, 2.0, 4.0}) {
      const RunResult run =
          simulate::run(of, "throttled", least, {.batches = 10'000, .jitter = assumed_jitter()});
      EXPECT_EQ(run.failed, 0U) << of << " " << least;
    }
  }
}

TEST(Simulation, WrongHintsAreOvercomeWithin16Batches) {
  constexpr std::size_t kKind = 200;  // a new kind, with the wrong hint, after so many
  constexpr std::size_t kToRecover = 16;
  for (const char* name : {"hints-x10", "hints-x0.1"}) {
    ASSERT_EQ(workload(name).new_kind, kKind);
    for (const double least : {1.5, 2.0, 4.0, 16.0}) {
      const RunResult result =
          run(name, "throttled", least,
              {.batches = 10 * kKind, .jitter = assumed_jitter(), .keep_flights = true});
      ASSERT_EQ(result.flights.size(), 10 * kKind);
      Time idle{};
      Time computed{};
      for (std::size_t i = kKind; i < result.flights.size(); ++i) {  // the first kind warms up
        if (i % kKind < kToRecover) continue;
        idle += result.flights[i].gap;
        computed += result.flights[i].computing;
      }
      EXPECT_LE(idle, computed / 1000) << name << " at " << least;
      EXPECT_EQ(result.failed, 0U) << name << " at " << least;
    }
  }
}

}  // namespace
}  // namespace weir::simulate
