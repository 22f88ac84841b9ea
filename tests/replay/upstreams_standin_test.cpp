// Replays on the memory of a GPU, on the stand-in for its driver.

#include <gtest/gtest.h>

#include "scheduler/device/standin_fixture.hpp"
#include "tools/replay/measure/engine.hpp"
#include "tools/replay/measure/pools.hpp"
#include "tools/replay/subject/upstreams.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using replay::UpstreamKind;

class ReplayStandin : public StandinTest {};

TEST_F(ReplayStandin, EveryPoolReplaysOnTheMemoryOfTheDeviceAndGivesItBack) {
  const replay::Trace trace =
      trace_of({allocate(0, 3 << 20), allocate(1, 5000), use(1, 5000, 1), release(0, 3 << 20),
                allocate(2, 2 << 20), release(1, 5000), release(2, 2 << 20)},
               3);
  PoolOptions base;
  base.budget = BudgetRequest{.percent = 100};
  const replay::MakeUpstream upstream = replay::upstreams_of(UpstreamKind::kCuda);
  EXPECT_GT(replay::default_capacity(UpstreamKind::kCuda, {}), mib(64));
  for (const replay::PoolChoice& choice : replay::parse_pool_choices("t", "all", base)) {
    SCOPED_TRACE(choice.name);
    const auto subject = replay::candidate_of(choice, upstream, 2).make(mib(64));
    const replay::Figures figures = replay::replay(trace, *subject);
    EXPECT_FALSE(figures.refusal);
    EXPECT_GE(figures.peak_reserved, figures.peak_requested);
    EXPECT_GT(figures.driver_calls, 0U);
  }
}

}  // namespace
}  // namespace weir::testing
