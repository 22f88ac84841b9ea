// Where the reserved bytes of a pool are: by hand, against a count byte by byte, and for a real
// trace.

#include "tools/replay/measure/breakdown.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/random_seed.hpp"
#include "tools/replay/measure/engine.hpp"
#include "tools/replay/measure/pools.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using replay::AddressRange;
using replay::break_down;
using replay::Breakdown;
using replay::Holdings;
using Ranges = std::vector<AddressRange>;

/// Of pages of 100 bytes, as many as are held.
Holdings holdings(Ranges live, Ranges held, std::uint64_t rounding = 0) {
  Holdings now{.live = std::move(live),
               .held = std::move(held),
               .page = {100},
               .reserved = {},
               .requested = {}};
  for (const AddressRange range : now.live) now.requested += {range.end - range.begin};
  for (const AddressRange range : now.held) now.reserved += {range.end - range.begin};
  now.requested -= {rounding};
  return now;
}

Bytes sum_of(const Breakdown& parts) {
  return parts.requested + parts.rounding + parts.page_ends + parts.holes + parts.whole_pages;
}

/// All parts but the requested one, which is the rest of the reserved bytes.
void expect_parts(const Holdings& now, Bytes rounding, Bytes page_ends, Bytes holes,
                  Bytes whole_pages) {
  const Breakdown parts = break_down(now);
  EXPECT_EQ(parts.page, now.page);
  EXPECT_EQ(parts.reserved, now.reserved);
  EXPECT_EQ(parts.requested, now.requested);
  EXPECT_EQ(parts.rounding, rounding);
  EXPECT_EQ(parts.page_ends, page_ends);
  EXPECT_EQ(parts.holes, holes);
  EXPECT_EQ(parts.whole_pages, whole_pages);
  EXPECT_EQ(sum_of(parts), now.reserved);
}

TEST(ReplayBreakdown, WhatIsHandedOutBeyondTheRequestIsRounding) {
  expect_parts(holdings({{100, 200}}, {{100, 200}}, 12), {12}, {0}, {0}, {0});
}

TEST(ReplayBreakdown, FreeBytesUpToWhereNothingLivesAreAPagesEnds) {
  // Nothing before it is held, and the page after it has nothing live.
  expect_parts(holdings({{110, 130}}, {{100, 200}, {200, 300}}), {0}, {80}, {0}, {100});
  // A block on two pages: the end of each, and none where they meet.
  expect_parts(holdings({{150, 230}}, {{100, 200}, {200, 300}}), {0}, {120}, {0}, {0});
}

TEST(ReplayBreakdown, FreeBytesBetweenTwoBlocksAreAHole) {
  expect_parts(holdings({{100, 120}, {130, 200}}, {{100, 200}}), {0}, {0}, {10}, {0});
  // Also where it is on two pages that follow each other.
  expect_parts(holdings({{100, 150}, {270, 300}}, {{100, 200}, {200, 300}}), {0}, {0}, {120}, {0});
}

TEST(ReplayBreakdown, BetweenTwoBlocksWithAPageOrNoMemoryBetweenThemAreTwoEnds) {
  expect_parts(holdings({{100, 150}, {370, 400}}, {{100, 200}, {200, 300}, {300, 400}}), {0}, {120},
               {0}, {100});
  expect_parts(holdings({{100, 150}, {370, 400}}, {{100, 200}, {300, 400}}), {0}, {120}, {0}, {0});
}

TEST(ReplayBreakdown, APageThatIsMappedTwiceOrNowhereCountsOnce) {
  Holdings now = holdings({{100, 150}}, {{100, 200}, {300, 400}});
  now.reserved = {100};  // both addresses are of one page
  expect_parts(now, {0}, {50}, {0}, {0});
  now.reserved = {400};  // two are spare
  expect_parts(now, {0}, {50}, {0}, {300});
}

TEST(ReplayBreakdown, OfMoreThanAPageThePagesCountFromItsBegin) {
  // The last page, of 30 bytes, is empty; the middle one ends where a page would.
  expect_parts(holdings({{160, 180}}, {{50, 280}}), {0}, {80}, {0}, {130});
  expect_parts(holdings({{270, 280}}, {{50, 280}}), {0}, {20}, {0}, {200});
}

TEST(ReplayBreakdown, WithNothingLiveAllOfItIsWholePages) {
  expect_parts(holdings({}, {{100, 200}, {300, 400}}), {0}, {0}, {0}, {200});
  expect_parts(holdings({}, {}), {0}, {0}, {0}, {0});
}

/// The state of each byte of a few pages, from the first byte of the first page.
struct Count {
  std::uint64_t page_ends = 0, holes = 0, whole_pages = 0;

  Count(const std::vector<bool>& live, const std::vector<bool>& held, std::size_t page) {
    const auto occupied = [&](std::size_t byte) {
      const auto begin = live.begin() + static_cast<std::ptrdiff_t>(byte / page * page);
      return std::find(begin, begin + static_cast<std::ptrdiff_t>(page), true) !=
             begin + static_cast<std::ptrdiff_t>(page);
    };
    /// Whether a live byte precedes a page without live bytes.
    const auto meets_block = [&](std::size_t byte, int step) {
      for (; byte < live.size() && occupied(byte); byte += static_cast<std::size_t>(step)) {
        if (live[byte]) return true;
      }
      return false;
    };
    for (std::size_t byte = 0; byte < live.size(); ++byte) {
      if (live[byte] || !held[byte]) continue;
      if (!occupied(byte)) {
        ++whole_pages;
      } else if (meets_block(byte, 1) && meets_block(byte, -1)) {
        ++holes;
      } else {
        ++page_ends;
      }
    }
  }
};

TEST(ReplayBreakdown, AgreesWithACountByteByByte) {
  constexpr std::size_t kPage = 8;
  constexpr std::size_t kPages = 6;
  SCOPED_TRACE(seed_message(random_seed()));
  std::mt19937_64 random(random_seed());
  std::uint64_t holes = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<bool> live(kPages * kPage);
    std::vector<bool> held(kPages * kPage);
    Holdings now = holdings({}, {});
    now.page = {kPage};
    for (std::size_t begin = 0; begin < held.size(); begin += kPage) {
      if (random() % 4 == 0) continue;
      now.held.push_back({kPage + begin, kPage + begin + kPage});
      std::fill_n(held.begin() + static_cast<std::ptrdiff_t>(begin), kPage, true);
    }
    for (std::size_t at = random() % kPage; at < live.size(); at += random() % (2 * kPage)) {
      const std::size_t begin = at;
      const std::size_t most = 1 + random() % (2 * kPage);
      while (at < live.size() && held[at] && at - begin < most) live[at++] = true;
      if (at > begin) now.live.push_back({kPage + begin, kPage + at});
    }
    now.requested = {static_cast<std::uint64_t>(std::ranges::count(live, true))};
    now.reserved = {static_cast<std::uint64_t>(std::ranges::count(held, true))};
    const Count count(live, held, kPage);
    holes += count.holes;
    expect_parts(now, {0}, {count.page_ends}, {count.holes}, {count.whole_pages});
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(holes, 1000U);
}

replay::Candidate candidate(const char* pool, std::uint64_t lag) {
  PoolOptions base;
  base.budget = BudgetRequest{.percent = 100};
  return replay::candidate_of(
      replay::parse_pool_choice("t", pool, base),
      [](Bytes capacity) { return std::make_unique<SimulatedUpstream>(capacity); }, lag);
}

TEST(ReplayBreakdown, IsOfTheFirstOperationAfterWhichTheMostWasReserved) {
  const auto parts = replay::break_down_peak(
      trace_of({allocate(0, 5 << 20), release(0, 5 << 20), allocate(1, (1 << 20) - 12),
                allocate(2, 1 << 20), allocate(3, 6 << 20), release(3, 6 << 20)},
               4),
      candidate("naive", 0).make, gib(1));
  ASSERT_TRUE(parts);
  // 6 MiB are cached. Blocks of 1 MiB do not have their size, nor does the last one, of 6 MiB,
  // which comes from the driver.
  EXPECT_EQ(parts->operation, 4U);
  EXPECT_EQ(parts->page, mib(2));
  EXPECT_EQ(parts->reserved, mib(8));
  EXPECT_EQ(parts->requested, mib(2) - Bytes{12});
  EXPECT_EQ(parts->rounding, Bytes{12});
  EXPECT_EQ(parts->whole_pages, mib(6));
}

TEST(ReplayBreakdown, OfARealTraceItAddsUpToWhatThePoolHas) {
  const auto trace =
      replay::read_traces(std::string(WEIR_TRACES) + "/small/small_kv_cache.csv.gz").front();
  for (const char* pool : {"paged", "best_fit:16MiB", "round", "naive", "unpooled"}) {
    for (const std::uint64_t lag : {0U, 200U}) {
      SCOPED_TRACE(std::string(pool) + ", " + std::to_string(lag) + " behind");
      const replay::Candidate made = candidate(pool, lag);
      const auto parts = replay::break_down_peak(trace, made.make, gib(1024));
      ASSERT_TRUE(parts);
      Bytes allocated;
      Bytes requested;
      const auto figures =
          replay::replay(trace, *made.make(gib(1024)), [&](const replay::Step& step) {
            if (step.operation + 1 != parts->operation) return;
            allocated = step.footprint.allocated;
            requested = step.requested;
          });
      EXPECT_EQ(parts->reserved, figures.peak_reserved);
      EXPECT_EQ(parts->requested, requested);
      EXPECT_EQ(parts->requested + parts->rounding, allocated);
      EXPECT_EQ(parts->page_ends + parts->holes + parts->whole_pages, figures.free_at_peak);
      EXPECT_EQ(sum_of(*parts), parts->reserved);
      EXPECT_LE(parts->whole_pages, parts->reserved) << "or more pages are in use than there are";
    }
  }
}

/// Has one live block at a time, whose end is always at the same address.
struct SameEndUpstream final : Upstream {
  [[nodiscard]] void* allocate(Bytes size) override {
    return reinterpret_cast<void*>(gib(1).count - size.count);  // NOLINT: an address only
  }
  void deallocate(void* /*pointer*/, Bytes /*size*/) noexcept override {}
  [[nodiscard]] Bytes capacity() const override { return gib(1); }
};

TEST(ReplayBreakdown, WhatWentBackToTheDriverIsNotHeldWhereAddressesComeAgain) {
  PoolOptions options;
  options.budget = BudgetRequest{.percent = 100};
  options.kind = {PoolKind::kUnpooled, "t"};
  const auto make = [&](Bytes /*capacity*/) {
    return std::make_unique<replay::PoolSubject>(std::make_unique<SameEndUpstream>(), options, 0);
  };
  const auto parts = replay::break_down_peak(
      trace_of({allocate(0, 4 << 20), release(0, 4 << 20), allocate(1, 5 << 20)}, 2), make, gib(1));
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->page, mib(2)) << "of an upstream without pages";
  EXPECT_EQ(parts->reserved, mib(5));
  EXPECT_EQ(parts->requested, mib(5));
  EXPECT_EQ(sum_of(*parts), parts->reserved);
  EXPECT_EQ(parts->rounding, Bytes{});
}

struct NoPool final : replay::Subject {
  [[nodiscard]] void* allocate(Bytes /*bytes*/, StreamId /*stream*/) override { return this; }
  void deallocate(void* /*pointer*/, Bytes /*bytes*/, StreamId /*stream*/) override {}
  void record_use(void* /*pointer*/, StreamId /*stream*/) override {}
  [[nodiscard]] replay::Footprint footprint() const override { return {}; }
};

TEST(ReplayBreakdown, OfWhatDoesNotTellWhatItHoldsThereIsNone) {
  EXPECT_FALSE(replay::break_down_peak(
      trace_of({allocate(0, 1)}, 1), [](Bytes /*capacity*/) { return std::make_unique<NoPool>(); },
      gib(1)));
}

}  // namespace
}  // namespace weir::testing
