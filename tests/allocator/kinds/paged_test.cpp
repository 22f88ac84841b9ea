// paged in small hand-made cases: where a request goes, which pages move for it and when, and the
// state after a move that fails half way. Sizes are in pages. One long file, because all cases
// share one fixture and one notation of where pages are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/pool_fixture.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::expect_all_back;
using testing::expect_statistics_agree;
using testing::Fault;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::options_of;

struct Paged : testing::PoolFixture {
  /// At most so many pages, and nobody waits. Notes which pages are unmapped.
  void open(std::size_t pages) {
    pool = std::make_unique<Pool>(memory(), options_of(in_pages(pages), PoolKind::kPaged));
    pool->set_limits(in_pages(pages), {.hand_over = false, .wait = false});
    source().before_unmap = [this](std::span<const Mapping> mappings) {
      for (const Mapping& each : mappings) unmapped.push_back(each.address);
    };
  }
  [[nodiscard]] static Bytes in_pages(std::size_t pages) { return testing::kPage * pages; }
  [[nodiscard]] testing::FaultyPageSource& source() { return *upstream.pages(); }
  void* take(std::size_t pages, StreamId stream) { return pool->allocate(in_pages(pages), stream); }
  /// Blocks of one page each, side by side.
  std::vector<void*> take_singly(std::size_t count, StreamId stream) {
    std::vector<void*> blocks(count);
    for (void*& block : blocks) block = take(1, stream);
    return blocks;
  }
  /// The same, of which the device has passed the free of every second one.
  std::vector<void*> leave_holes(std::size_t count) {
    std::vector<void*> blocks = take_singly(count, a);
    for (std::size_t i = 0; i < count; i += 2) free(blocks.at(i), a);
    pass(a);
    return blocks;
  }
  /// Null if it does not fit.
  void* try_take(std::size_t pages, StreamId stream) {
    Attempt attempt;
    return pool->try_allocate(in_pages(pages), stream, {}, attempt);
  }
  void free(void* pointer, StreamId stream) { pool->deallocate(pointer, stream); }
  /// The device passes the work on `stream`, and the pool is told.
  void pass(StreamId stream) {
    progress.pass_all(stream);
    pool->poll();
  }
  [[nodiscard]] static void* page_of(void* block, std::size_t n) {
    return static_cast<std::byte*>(block) + in_pages(n).count;
  }
  [[nodiscard]] std::uint64_t mapped() const { return pool->statistics().mapped_pages; }

  std::vector<void*> unmapped;
  std::unique_ptr<Pool> pool;
};

TEST_F(Paged, TakesAsManyPagesAsABlockTouches) {
  open(16);
  (void)pool->allocate({testing::kPage.count * 3 + 1}, a);
  EXPECT_EQ(pool->statistics().reserved.current, in_pages(4));
  EXPECT_EQ(pool->statistics().cached.current, testing::kPage - Bytes{512});
  EXPECT_EQ(upstream.calls(), 0U) << "no segment is asked for";
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, TheRestOfAPageIsTheNextBlocksBeginning) {
  open(4);
  void* first = pool->allocate(kib(3), a);
  void* second = pool->allocate(kib(5), b);
  EXPECT_EQ(second, static_cast<std::byte*>(first) + kib(3).count);
  EXPECT_EQ(pool->statistics().reserved.current, in_pages(2));
  EXPECT_EQ(mapped(), 2U);
}

TEST_F(Paged, APlaceThatNeedsFewerNewPagesIsTaken) {
  open(32);
  void* hole = take(4, a);
  (void)take(1, a);
  void* larger_hole = take(6, a);
  (void)take(1, a);
  void* last = take(5, a);
  for (void* block : {hole, larger_hole, last}) free(block, a);
  pass(a);
  // The last one and three pages behind it, rather than eight elsewhere.
  EXPECT_EQ(take(8, a), last);
  EXPECT_EQ(mapped(), 4U + 1 + 6 + 1 + 5 + 3);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, AHoleGivesItsPagesToWhoeverNeedsThem) {
  open(8);
  (void)leave_holes(8);
  EXPECT_NE(try_take(4, b), nullptr);
  EXPECT_EQ(pool->statistics().reserved.peak, in_pages(8));
  EXPECT_EQ(pool->statistics().unmapped_pages, 4U);
  EXPECT_EQ(mapped(), 8U + 4);
  EXPECT_EQ(source().map_calls(), 8U + 1) << "all of a request in one call";
  EXPECT_EQ(source().unmap_calls(), 8U + 1) << "each request's may be empty";
  expect_statistics_agree(*pool, upstream);
  EXPECT_EQ(try_take(1, b), nullptr);
}

TEST_F(Paged, PagesMoveFromTheLeastRecentlyFreedFirstAndNoMoreThanNeeded) {
  open(10);
  const auto blocks = take_singly(10, a);
  for (const std::size_t i : {6U, 2U, 8U, 4U}) free(blocks.at(i), a);
  pass(a);
  EXPECT_NE(try_take(2, a), nullptr);
  EXPECT_THAT(unmapped, ElementsAre(blocks.at(6), blocks.at(2)));
  EXPECT_EQ(pool->statistics().cached.current, in_pages(2));
}

TEST_F(Paged, OfALargeHoleOnlyWhatIsNeededMoves) {
  open(10);
  void* hole = take(6, a);
  const auto rest = take_singly(4, a);
  free(rest.at(1), a);
  free(hole, a);
  pass(a);
  EXPECT_NE(try_take(7, a), nullptr);
  EXPECT_EQ(pool->statistics().unmapped_pages, 7U);
  free(rest.at(0), a);
  pass(a);
  EXPECT_NE(try_take(1, a), nullptr);
  EXPECT_EQ(pool->statistics().unmapped_pages, 7U);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, PagesAreMadeRatherThanMovedWhereTheyAreFew) {
  open(200);
  const auto blocks = leave_holes(100);
  EXPECT_NE(try_take(2, a), nullptr);
  EXPECT_THAT(unmapped, IsEmpty()) << "two are two percent of what was held";
  EXPECT_NE(try_take(2, a), nullptr);
  EXPECT_THAT(unmapped, ElementsAre(blocks.at(0), blocks.at(2)));
  EXPECT_EQ(pool->statistics().reserved.current, in_pages(102));
}

TEST_F(Paged, WhatTheUpstreamHasNotIsMovedInstead) {
  open(200);
  const auto blocks = leave_holes(100);
  source().refuse_create(Fault::always());
  EXPECT_NE(try_take(2, a), nullptr) << "fifty pages are under nothing";
  EXPECT_THAT(unmapped, ElementsAre(blocks.at(0), blocks.at(2)));
  EXPECT_EQ(pool->statistics().failures, 0U);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, ARefusalOfAnEarlierRoundIsOldNews) {
  open(4);
  pool->set_limits(in_pages(4), {});
  void* awaiting = take(1, a);
  pool->record_use(awaiting, b);
  free(awaiting, a);
  source().refuse_create(Fault::at(1));
  progress.before_wait = [this](Point) { pool->set_limits(in_pages(2), {}); };
  Attempt attempt;
  EXPECT_EQ(pool->try_allocate(in_pages(3), a, {}, attempt), nullptr);
  EXPECT_FALSE(attempt.upstream_refused) << "the budget is what is in the way now";
}

TEST_F(Paged, APageMovesOnlyWhenTheDeviceHasPassedEveryFreeOnIt) {
  open(2);
  void* half = pool->allocate(kib(2), a);
  void* other_half = pool->allocate(kib(2), b);
  void* live = take(1, c);
  pool->record_use(half, c);
  free(half, a);
  free(other_half, b);
  // The page that moves would serve each of them.
  const auto request = [&] {
    Attempt attempt;
    return pool->try_allocate(testing::kPage, c, {}, attempt);
  };
  EXPECT_EQ(request(), nullptr);
  pass(a);
  EXPECT_EQ(request(), nullptr) << "c uses one half, b has the other";
  pass(b);
  EXPECT_EQ(request(), nullptr) << "c has not passed its use";
  EXPECT_THAT(unmapped, IsEmpty());
  pass(c);
  EXPECT_EQ(request(), half);
  free(live, c);
}

TEST_F(Paged, AStreamsOwnPagesStayWhereTheyAreForItsNextBlock) {
  open(8);
  void* own = take(2, a);
  free(own, a);
  EXPECT_EQ(try_take(4, a), own) << "two pages behind them are enough";
  EXPECT_EQ(mapped(), 4U);
  EXPECT_THAT(unmapped, IsEmpty());
}

TEST_F(Paged, ALoweredBudgetStillLetsPagesMove) {
  open(8);
  const auto blocks = take_singly(8, a);
  for (const std::size_t i : {1U, 4U}) free(blocks.at(i), a);
  pass(a);
  pool->set_limits(in_pages(4), {.hand_over = false, .wait = false});
  EXPECT_NE(try_take(2, a), nullptr);
  EXPECT_EQ(try_take(1, a), nullptr);
  EXPECT_EQ(pool->statistics().reserved.current, in_pages(8));
}

TEST_F(Paged, TrimTakesWholePagesFromUnderWhatIsPassed) {
  open(8);
  void* first = pool->allocate(kib(6), a);
  void* second = pool->allocate(kib(10), a);
  void* other = take(2, b);
  free(second, a);
  free(other, b);
  pass(a);
  EXPECT_EQ(pool->trim(), in_pages(2)) << "the page that the first block ends on stays";
  EXPECT_EQ(pool->statistics().reserved.current, in_pages(4));
  EXPECT_EQ(pool->statistics().releases, 2U);
  progress.pass_all(b);
  EXPECT_EQ(pool->trim(), in_pages(2));
  free(first, a);
  progress.pass_all(a);
  EXPECT_EQ(pool->trim(), in_pages(2));
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, TrimKeepsNoMoreThanItIsTold) {
  open(8);
  free(take(8, a), a);
  progress.pass_all(a);
  (void)pool->trim(in_pages(3) + Bytes{1});
  EXPECT_EQ(pool->statistics().reserved.current, in_pages(3));
}

TEST_F(Paged, APoolWithoutRoomForAPageServesNothing) {
  pool = std::make_unique<Pool>(memory(), options_of(testing::kPage - Bytes{1}, PoolKind::kPaged));
  EXPECT_THROW((void)pool->allocate({1}, a), OutOfMemory);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, AMapThatFailsHalfWayLeavesNothingBehindAndItsPagesServeTheNext) {
  open(8);
  void* live = take(1, a);
  for (const std::size_t mapped_then : {0U, 1U, 2U, 4U}) {
    // Pages that were mapped stay for the next request.
    source().refuse_map(Fault::at(mapped_then + 1 - (source().mapped() - 1)));
    EXPECT_EQ(try_take(5, a), nullptr);
    EXPECT_EQ(source().mapped(), 1U + mapped_then);
    EXPECT_EQ(source().created(), 6U);
    expect_statistics_agree(*pool, upstream);
  }
  EXPECT_NE(try_take(7, a), nullptr);
  EXPECT_EQ(source().created(), 8U);
  expect_statistics_agree(*pool, upstream);
  free(live, a);
}

TEST_F(Paged, AMapThatFailsLeavesTheStreamsOwnPiecesItsOwn) {
  open(5);
  void* own = take(2, a);
  free(own, a);
  source().refuse_map(Fault::at(2));
  EXPECT_EQ(try_take(5, a), nullptr);
  EXPECT_EQ(source().mapped(), 3U);
  EXPECT_EQ(try_take(3, b), nullptr) << "two pages are spare, and three a's";
  EXPECT_EQ(try_take(3, a), own);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, AnUnmapThatFailsHalfWayLeavesTheRestWhereItWas) {
  open(8);
  (void)leave_holes(8);
  source().refuse_unmap(Fault::at(3));
  EXPECT_EQ(try_take(4, b), nullptr);
  EXPECT_EQ(source().mapped(), 6U);
  expect_statistics_agree(*pool, upstream);
  EXPECT_EQ(pool->largest_cached(), in_pages(1));
  EXPECT_NE(try_take(4, b), nullptr) << "two spare ones and two more";
  EXPECT_EQ(source().unmapped_pages(), 4U);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, WherePagesStayWhereTheyAreNewOnesServe) {
  open(12);
  (void)leave_holes(8);
  source().refuse_unmap(Fault::always());
  EXPECT_NE(try_take(4, b), nullptr);
  EXPECT_EQ(pool->statistics().reserved.current, in_pages(12));
  EXPECT_EQ(source().unmapped_pages(), 0U);
  expect_statistics_agree(*pool, upstream);
  EXPECT_EQ(try_take(2, b), nullptr) << "and no more than the budget has";
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, PagesThatCouldNotAllBeMadeServeTheNext) {
  open(8);
  source().refuse_create(Fault::at(3));
  EXPECT_EQ(try_take(5, a), nullptr);
  EXPECT_EQ(pool->statistics().reserved.current, in_pages(2));
  expect_statistics_agree(*pool, upstream);
  EXPECT_NE(try_take(8, a), nullptr);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, AFaultOfTheSourcePassesThroughAndWhatWasUnmappedServesTheNext) {
  open(10);
  (void)leave_holes(8);
  source().throw_create(Fault::at(1));
  EXPECT_THROW((void)try_take(6, b), std::runtime_error);
  expect_statistics_agree(*pool, upstream);
  EXPECT_EQ(source().mapped(), 4U);
  EXPECT_EQ(source().created(), 8U);
  EXPECT_NE(try_take(6, b), nullptr) << "no claim on the budget was left behind";
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, ATrimThatFailsHalfWayGivesBackWhatItCould) {
  open(8);
  free(take(6, a), a);
  progress.pass_all(a);
  source().refuse_unmap(Fault::at(3));
  EXPECT_EQ(pool->trim(), in_pages(2));
  expect_statistics_agree(*pool, upstream);
  EXPECT_EQ(pool->trim(), in_pages(4));
  expect_statistics_agree(*pool, upstream);
}

TEST_F(Paged, WhereThereAreNoAddressesARequestFailsAndTheNextTriesAgain) {
  open(8);
  source().refuse_reserve(Fault::always());
  EXPECT_EQ(try_take(1, a), nullptr);
  source().refuse_reserve(Fault::never());
  EXPECT_NE(try_take(1, a), nullptr);
}

TEST_F(Paged, WhereAddressesAreShortItTakesFewer) {
  open(8);
  source().refuse_reserve(Fault::at(1, 5));
  EXPECT_NE(try_take(8, a), nullptr);
  EXPECT_LT(source().reserved(), upstream.capacity());
}

TEST_F(Paged, WhatCannotBeUnmappedAtTheEndKeepsItsAddresses) {
  open(8);
  (void)take(4, a);
  source().refuse_unmap(Fault::at(2));
  pool.reset();
  EXPECT_EQ(source().mapped(), 1U);
  EXPECT_GT(source().reserved(), Bytes{0}) << "they still mean something";
}

TEST_F(Paged, GivesEverythingBackAtTheEnd) {
  open(64);
  const auto blocks = take_singly(20, a);
  (void)take(30, b);
  for (const std::size_t i : {3U, 5U, 7U}) free(blocks.at(i), a);
  pass(a);
  source().refuse_map(Fault::at(1));  // so that some are spare
  EXPECT_EQ(try_take(10, c), nullptr);
  pool.reset();
  expect_all_back(upstream);
}

/// Memory in one piece only, as on a device without virtual memory management.
class WithoutPages final : public Upstream {
 public:
  [[nodiscard]] void* allocate(Bytes) override { return nullptr; }
  void deallocate(void*, Bytes) noexcept override {}
  [[nodiscard]] Bytes capacity() const override { return gib(1); }
};

TEST_F(Paged, IsRefusedWhereThereAreNoPages) {
  WithoutPages whole;
  PoolOptions options = options_of(mib(1));
  options.kind = {PoolKind::kPaged, "WEIR_POOL"};
  EXPECT_THAT(testing::message_of<UsageError>([&] {
                const Pool refused({whole, progress}, options);
              }),
              AllOf(HasSubstr("WEIR_POOL"), HasSubstr("'paged'"), HasSubstr("best_fit")));
}

}  // namespace
}  // namespace weir
