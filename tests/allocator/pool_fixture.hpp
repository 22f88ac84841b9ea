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
                                      PoolKind::kBestFit, PoolKind::kPaged};
/// Those that hand freed blocks out again.
inline constexpr std::array kKeepingKinds{PoolKind::kNaive, PoolKind::kRound, PoolKind::kBestFit,
                                          PoolKind::kPaged};

/// Whether blocks are cut from what the upstream gave; otherwise each is all of it.
[[nodiscard]] inline bool splits_blocks(PoolKind kind) {
  return kind == PoolKind::kBestFit || kind == PoolKind::kPaged;
}

/// Pages of simulated memory: so small that budgets of KiB are many.
inline constexpr Bytes kPage = kib(4);

/// Segments of best_fit are as small as can be: a block of 2 MiB or more has one of its own.
[[nodiscard]] inline PoolOptions options_of(Bytes budget, PoolKind kind = PoolKind::kRound) {
  PoolOptions options;
  options.kind = kind;
  options.budget = BudgetRequest{.bytes = budget};
  options.segment = mib(2);
  return options;
}

/// Tests of what is alike for kinds, but for the size at which a block is all that it came with: a
/// segment, or pages.
struct KindAndUnit {
  PoolKind kind;
  Bytes unit;
};
inline constexpr KindAndUnit kRoundUnits{PoolKind::kRound, kib(4)};
inline constexpr KindAndUnit kBestFitUnits{PoolKind::kBestFit, mib(4)};
inline constexpr KindAndUnit kPagedUnits{PoolKind::kPaged, kPage};

/// What the upstream has given, segment by segment or page by page, is what is reserved.
inline void expect_given(const Pool& pool, FaultyUpstream& upstream) {
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.reserved.current, upstream.used());
  const FaultyPageSource* pages = upstream.pages();
  if (pool.options().kind.value == PoolKind::kPaged) {
    EXPECT_EQ(upstream.segments(), 0U);
    EXPECT_EQ(s.reserved.current, pages->page_size() * pages->created());
    EXPECT_EQ(s.mapped_pages - s.unmapped_pages, pages->mapped());
    EXPECT_LE(pages->mapped(), pages->created());
    return;
  }
  EXPECT_EQ(s.misses - s.releases, upstream.segments());
  EXPECT_EQ(s.mapped_pages + s.unmapped_pages, 0U);
  EXPECT_TRUE(pages == nullptr || pages->created() + pages->reserved().count == 0);
}

/// The books add up, and what is reserved is what the upstream has given and within the budget.
inline void expect_books(const Pool& pool, FaultyUpstream& upstream) {
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.allocated.current + s.awaiting.current + s.cached.current, s.reserved.current);
  EXPECT_EQ(s.allocated.current + s.awaiting.current, s.held.current);
  EXPECT_LE(s.requested.current, s.allocated.current);
  EXPECT_LE(s.reserved.peak, s.budget);
  EXPECT_LE(upstream.peak(), s.budget);
  expect_given(pool, upstream);
  for (const Gauge& gauge : {s.requested, s.allocated, s.awaiting, s.cached, s.reserved, s.held}) {
    EXPECT_LE(gauge.current, gauge.peak);
  }
}

/// The upstream has everything back: segments, pages and addresses.
inline void expect_all_back(FaultyUpstream& upstream) {
  EXPECT_EQ(upstream.used(), Bytes{0});
  EXPECT_EQ(upstream.segments(), 0U);
  EXPECT_EQ(upstream.pages()->created(), 0U);
  EXPECT_EQ(upstream.pages()->mapped(), 0U);
  EXPECT_EQ(upstream.pages()->reserved(), Bytes{0});
}

struct PoolFixture : ::testing::Test {
  [[nodiscard]] DeviceMemory memory() { return {upstream, progress}; }

  SimulatedUpstream raw{gib(1), kPage};
  FaultyUpstream upstream{raw};
  ManualProgress progress;
  const StreamId a = StreamId::next();
  const StreamId b = StreamId::next();
  const StreamId c = StreamId::next();
};

}  // namespace weir::testing
