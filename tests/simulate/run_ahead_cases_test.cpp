// The run-ahead that adapts, on cases with two compute streams, several producers and reads.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "bench/run_ahead/run.hpp"

namespace weir::run_ahead {
namespace {

constexpr RunAhead kFree{.batches = std::nullopt};
constexpr std::uint64_t kBatches = 1000;

TEST(RunAheadCases, WhatTheRulesMeasureAsLostIsTheTimeLostAgainstFreeRunAhead) {
  Time most{};
  for (const Case* of : cases(false)) {
    if (of->producers > 1) continue;  // whose batch is next depends on the limit
    const auto drawn = draw(*of, kBatches, 2);
    const CaseRun free = simulate_case(drawn, kFree, 2);
    EXPECT_EQ(free.lost, Time{}) << of->name;
    for (const RunAhead& limit : {RunAhead{}, RunAhead{.batches = 3, .time = Time{}}}) {
      const CaseRun run = simulate_case(drawn, limit, 2);
      const Time lost = run.duration - free.duration;
      // Batches that alternate between streams share their copies' stream, and wake-ups differ.
      EXPECT_LE(abs(run.lost - lost), free.duration / 50) << of->name;
      most = std::max(most, lost);
    }
  }
  EXPECT_GT(most, std::chrono::milliseconds(500));
}

TEST(RunAheadCases, SteadyBatchesEndWithTheMemoryOfTwo) {
  for (const Case* of : cases(false)) {
    if (of->name != "steady" && of->name != "second-is-slower") continue;
    const CaseRun run = simulate_case(draw(*of, 2000, 1), {}, 1);
    EXPECT_LE(run.held, kib(1536) * 2) << of->name;
    EXPECT_LE(run.peak, kib(1536) * RunAheadLimit::kFirstBatches) << of->name;
  }
}

TEST(RunAheadCases, TheSameSeedGivesTheSameRun) {
  for (const Case* of : cases(false)) {
    const auto drawn = draw(*of, 200, 3);
    const CaseRun run = simulate_case(drawn, {}, 3);
    EXPECT_EQ(simulate_case(draw(*of, 200, 3), {}, 3).duration, run.duration) << of->name;
    EXPECT_GT(run.held, Bytes{}) << of->name;
    EXPECT_LE(run.held, run.peak) << of->name;
  }
}

}  // namespace
}  // namespace weir::run_ahead
