// Several threads on one pool, in enough memory and in too little.

#include <gtest/gtest.h>

#include <memory>

#include "bench/stress/patterns.hpp"
#include "bench/stress/running_out.hpp"
#include "tools/replay/measure/pools.hpp"

namespace weir::bench {
namespace {

constexpr PatternOptions kShared{.most = kLeastPattern, .seed = 5};

std::vector<replay::Candidate> all_pools() {
  PoolOptions base;
  base.budget = {{.percent = 100}, "test"};
  std::vector<replay::Candidate> pools;
  for (const replay::PoolChoice& choice : replay::parse_pool_choices("--pool", "all", base)) {
    pools.push_back(replay::candidate_of(
        choice, [](Bytes capacity) { return std::make_unique<SimulatedUpstream>(capacity); }, 0));
  }
  return pools;
}

TEST(StressThreads, AreServedWhereThereIsRoomForAll) {
  const std::vector<replay::Trace> traces = thread_patterns(kShared, 3);
  for (const replay::Candidate& pool : all_pools()) {
    const auto subject = pool.make(gib(64));
    const ThreadsFigures figures = replay_threads(traces, *subject);
    EXPECT_EQ(figures.refused, 0U) << pool.name;
    EXPECT_LE(figures.peak_requested, kShared.most);
    EXPECT_GE(figures.peak_requested.count, kShared.most.count / 4);
    EXPECT_EQ(subject->footprint().allocated, Bytes{}) << pool.name;
  }
}

TEST(StressThreads, LeaveTheStatisticsInOrderWhereThereIsNot) {
  const std::vector<replay::Trace> traces = thread_patterns(kShared, 3);
  for (const replay::Candidate& pool : all_pools()) {
    const RunningOut result = run_out_threads(traces, pool.make, {kShared.most.count / 4});
    EXPECT_EQ(result.ending, Ending::kClean) << pool.name << ": " << result.wrong;
    EXPECT_GT(result.refused_at, 0U);
  }
}

}  // namespace
}  // namespace weir::bench
