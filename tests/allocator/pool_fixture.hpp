#pragma once

// What the tests of Pool start from: a device that the test moves, an upstream that counts,
// streams.

#include <gtest/gtest.h>

#include <array>

#include "allocator/pool.hpp"
#include "support/faulty_upstream.hpp"
#include "support/manual_progress.hpp"
#include "support/print.hpp"

namespace weir::testing {

inline constexpr std::array kAllKinds{PoolKind::kUnpooled, PoolKind::kNaive, PoolKind::kRound,
                                      PoolKind::kBestFit};

[[nodiscard]] inline PoolOptions options_of(Bytes budget, PoolKind kind = PoolKind::kRound) {
  PoolOptions options;
  options.kind = kind;
  options.budget = BudgetRequest{.bytes = budget};
  return options;
}

/// The books add up, and what is reserved is what the upstream has given and within the budget.
inline void expect_books(const Pool& pool, const FaultyUpstream& upstream) {
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.allocated.current + s.awaiting.current + s.cached.current, s.reserved.current);
  EXPECT_EQ(s.allocated.current + s.awaiting.current, s.held.current);
  EXPECT_LE(s.requested.current, s.allocated.current);
  EXPECT_EQ(s.reserved.current, upstream.used());
  EXPECT_LE(s.reserved.peak, s.budget);
  EXPECT_LE(upstream.peak(), s.budget);
  EXPECT_EQ(s.misses - s.releases, upstream.segments());
  for (const Gauge& gauge : {s.requested, s.allocated, s.awaiting, s.cached, s.reserved, s.held}) {
    EXPECT_LE(gauge.current, gauge.peak);
  }
}

struct PoolFixture : ::testing::Test {
  [[nodiscard]] DeviceMemory memory() { return {upstream, progress}; }

  SimulatedUpstream raw{gib(1)};
  FaultyUpstream upstream{raw};
  ManualProgress progress;
  const StreamId a = StreamId::next();
  const StreamId b = StreamId::next();
  const StreamId c = StreamId::next();
};

}  // namespace weir::testing
