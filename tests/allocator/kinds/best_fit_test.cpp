// best_fit in small hand-made cases: what is split and joined, for whom, and what is returned.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/index/segment_index.hpp"
#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

using testing::expect_statistics_agree;
using testing::options_of;

/// The least budget in which runs of small blocks have their full size.
constexpr Bytes kRun = SegmentIndex::kSmallRun;
constexpr Bytes kBudget = kRun * SegmentIndex::kRunShare;
constexpr RunningOut kNoWaiting{.hand_over = false, .wait = false};

struct BestFit : testing::PoolFixture {
  /// Segments are as large as the budget or `segment`, and nobody waits.
  void open(Bytes budget, Bytes segment = gib(1)) {
    PoolOptions options = options_of(budget, PoolKind::kBestFit);
    options.segment = segment;
    pool = std::make_unique<Pool>(memory(), options);
    pool->set_limits(budget, kNoWaiting);
  }
  void* take(Bytes size, StreamId stream) { return pool->allocate(size, stream); }
  void free(void* pointer, StreamId stream) { pool->deallocate(pointer, stream); }
  /// Null if it does not fit.
  void* try_take(Bytes size, StreamId stream) {
    Attempt attempt;
    return pool->try_allocate(size, stream, {}, attempt);
  }
  /// The device passes the work on `stream`, and the pool is told.
  void pass(StreamId stream) {
    progress.pass_all(stream);
    pool->poll();
  }
  [[nodiscard]] static std::uint64_t distance(const void* from, const void* to) {
    return reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  }

  std::unique_ptr<Pool> pool;
};

TEST_F(BestFit, CutsBlocksFromOneSegmentSideBySide) {
  open(kib(64));
  void* first = take({1}, a);
  EXPECT_EQ(distance(first, take({513}, a)), 512U);
  EXPECT_EQ(distance(first, take(kib(4), a)), 512U + 1024U);
  EXPECT_EQ(upstream.calls(), 1U);
  EXPECT_EQ(pool->statistics().allocated.current, kib(4) + Bytes{512 + 1024});
  EXPECT_EQ(pool->statistics().reserved.current, kib(64));
  expect_statistics_agree(*pool, upstream);
}

TEST_F(BestFit, JoinsWhatIsFreeOnBothSides) {
  open(kib(64));
  std::vector<void*> blocks(16);
  for (void*& block : blocks) block = take(kib(4), a);
  for (const std::size_t i : {3U, 5U, 4U, 6U}) free(blocks.at(i), a);
  EXPECT_EQ(pool->largest_cached(), kib(16));
  EXPECT_EQ(take(kib(16), a), blocks.at(3));
  expect_statistics_agree(*pool, upstream);
}

TEST_F(BestFit, TakesThePieceWithTheLeastToSpare) {
  open(kib(64));
  void* large = take(kib(16), a);
  (void)take({512}, a);
  void* fitting = take(kib(5), a);
  (void)take({512}, a);
  void* small = take(kib(4), a);
  (void)take({512}, a);
  for (void* block : {large, fitting, small}) free(block, a);
  EXPECT_EQ(take({4097}, a), fitting);
}

TEST_F(BestFit, TakesItsOwnStreamsPieceBeforeOneThatIsEverybodys) {
  open(kib(64));
  void* everybodys = take(kib(4), b);
  (void)take({512}, c);
  void* own = take(kib(4), a);
  (void)take({512}, c);
  free(everybodys, b);
  pass(b);
  free(own, a);
  EXPECT_EQ(take(kib(4), a), own);
  EXPECT_EQ(take(kib(4), a), everybodys);
}

TEST_F(BestFit, WhatTwoStreamsFreedIsJoinedOnceTheDeviceHasPassedBoth) {
  open(kib(16));
  void* of_a = take(kib(8), a);
  void* of_b = take(kib(8), b);
  free(of_a, a);
  free(of_b, b);
  for (const StreamId stream : {a, b, c}) EXPECT_EQ(try_take(kib(16), stream), nullptr);
  pass(a);
  EXPECT_EQ(try_take(kib(16), c), nullptr);
  EXPECT_EQ(pool->largest_cached(), kib(8)) << "b's part is not everybody's";
  pass(b);
  EXPECT_EQ(try_take(kib(16), c), of_a);
}

TEST_F(BestFit, AStreamGetsItsOwnTogetherWithWhatIsEverybodysNextToIt) {
  open(kib(16));
  std::vector<void*> blocks;
  for (const StreamId stream : {b, a, b, c}) blocks.push_back(take(kib(4), stream));
  free(blocks.at(0), b);
  free(blocks.at(2), b);
  pass(b);
  free(blocks.at(1), a);
  EXPECT_EQ(try_take(kib(12), b), nullptr) << "a's part is still a's";
  EXPECT_EQ(try_take(kib(12), a), blocks.at(0));
  expect_statistics_agree(*pool, upstream);
}

TEST_F(BestFit, AStreamGetsItsOwnTogetherWithWhatBecameEverybodysAfterwards) {
  open(kib(16));
  void* of_a = take(kib(8), a);
  void* of_b = take(kib(8), b);
  free(of_a, a);
  free(of_b, b);
  EXPECT_EQ(try_take(kib(16), a), nullptr) << "b's part is still b's";
  pass(b);
  EXPECT_EQ(try_take(kib(16), a), of_a);
}

TEST_F(BestFit, WhatAStreamJoinedIsEverybodysWhenItIsPassed) {
  open(kib(16));
  void* of_a = take(kib(4), a);
  void* of_b = take(kib(12), b);
  free(of_b, b);
  pass(b);
  free(of_a, a);
  void* all = take(kib(16), a);
  free(all, a);
  EXPECT_EQ(try_take(kib(4), b), nullptr);
  pass(a);
  EXPECT_EQ(try_take(kib(16), b), all);
}

TEST_F(BestFit, AStreamJoinsAllItsPiecesThatTouchWhatIsEverybodys) {
  open(kib(40));
  void* first = take(kib(4), a);
  void* between = take(kib(4), b);
  void* second = take(kib(4), a);  // the first one covers this one too
  (void)take(kib(4), c);
  void* third = take(kib(4), a);
  void* large = take(kib(20), b);
  free(between, b);
  free(large, b);
  pass(b);
  for (void* block : {first, second, third}) free(block, a);
  EXPECT_EQ(try_take(kib(24), a), third);
  EXPECT_EQ(try_take(kib(12), a), first);
}

TEST_F(BestFit, OfAWidePieceLargeBlocksGetTheFrontAndOthersTheEnd) {
  open(mib(512));
  const void* large = take(mib(32), a);
  const void* other = take(SegmentIndex::kAtEnd, a);
  EXPECT_EQ(distance(large, other), (mib(512) - SegmentIndex::kAtEnd).count);
  const void* small = take(kib(4), a);
  EXPECT_EQ(distance(small, other), kRun.count) << "in a run of small ones";
  EXPECT_EQ(distance(large, take(mib(32), a)), mib(32).count);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(BestFit, ABlockThatFindsABetterPieceThanAWideOneIsItsFront) {
  open(mib(512));
  void* hole = take(mib(32), a);
  (void)take(mib(32), a);
  free(hole, a);
  EXPECT_EQ(take(mib(8), a), hole);
}

TEST_F(BestFit, OfLargePiecesOfOneSizeTheOneFreeForLongestIsFirst) {
  open(mib(64));
  std::vector<void*> blocks(8);
  for (void*& block : blocks) block = take(mib(2), a);
  for (const std::size_t i : {3U, 1U, 5U}) free(blocks.at(i), a);
  for (const std::size_t i : {3U, 1U, 5U}) EXPECT_EQ(take(mib(2), a), blocks.at(i));
}

TEST_F(BestFit, OfSmallPiecesOfOneSizeTheLastFreedIsFirst) {
  open(mib(64));
  std::vector<void*> blocks(8);
  for (void*& block : blocks) block = take(kib(4), a);
  for (const std::size_t i : {3U, 1U, 5U}) free(blocks.at(i), a);
  for (const std::size_t i : {5U, 1U, 3U}) EXPECT_EQ(take(kib(4), a), blocks.at(i));
}

TEST_F(BestFit, SmallBlocksAreApartFromLargeOnes) {
  open(kBudget);
  void* small = take(kib(1), a);
  void* large = take(mib(2), a);
  EXPECT_LT(distance(small, take(kib(1), a)), kRun.count);
  EXPECT_GE(distance(small, large), kRun.count);
  EXPECT_EQ(upstream.calls(), 1U);
}

TEST_F(BestFit, ARunIsASmallPartOfASmallBudget) {
  open(mib(32));
  void* small = take(kib(1), a);
  EXPECT_EQ(distance(small, take(mib(2), a)), SegmentIndex::run_size(mib(32)).count);
  EXPECT_EQ(SegmentIndex::run_size(mib(32)), kib(512));
  EXPECT_EQ(SegmentIndex::run_size(kBudget), kRun);
  EXPECT_EQ(SegmentIndex::run_size(gib(80)), kRun);
}

TEST_F(BestFit, ASmallBlockLeavesRoomForALargeOneInASmallBudget) {
  open(mib(4));
  EXPECT_NE(try_take(kib(1), a), nullptr);
  EXPECT_NE(try_take(mib(2), a), nullptr);
}

TEST_F(BestFit, WhatIsCutFromTheEndOfAnOddSegmentIsAligned) {
  open(gib(1), Bytes{322'122'547});  // 0.3 GiB
  (void)take(mib(32), a);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(take(mib(8), a)) % Upstream::kAlignment, 0U);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(BestFit, FindsAPieceThatFitsBehindAnyNumberThatAreHardlyTooSmall) {
  open(mib(64));
  const Bytes large = mib(2) + kib(16);  // in one bin with 2 MiB, and with no other size here
  std::vector<void*> blocks;
  for (int i = 0; i < 9; ++i) {
    blocks.push_back(take(i < 8 ? mib(2) : large, a));
    (void)take(kib(1100), a);  // so that they are not joined
  }
  while (try_take(mib(3), a) != nullptr) continue;
  while (try_take(kib(1100), a) != nullptr) continue;
  for (void* block : blocks) free(block, a);
  EXPECT_EQ(try_take(large, a), blocks.back());
}

TEST_F(BestFit, TheEndOfAWidePieceIsHandedOverAndTheRestStaysItsStreams) {
  open(mib(512));
  pool->set_limits(mib(512), {.hand_over = true, .wait = false});
  void* all = take(mib(512), a);
  free(all, a);
  EXPECT_EQ(distance(all, try_take(mib(8), b)), mib(504).count);
  EXPECT_EQ(pool->statistics().handovers, 1U);
  EXPECT_EQ(take(mib(500), a), all);
  EXPECT_EQ(pool->statistics().handovers, 1U) << "its own needs none";
  expect_statistics_agree(*pool, upstream);
}

TEST_F(BestFit, ASmallBlockThatIsFreedNextToALargePieceLeavesThatLarge) {
  open(kBudget);
  std::vector<void*> run;
  for (Bytes filled; filled < kRun; filled += mib(1)) run.push_back(take(mib(1), a));
  free(run.back(), a);  // what comes next is large
  EXPECT_NE(try_take(kBudget - kRun, a), nullptr);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(BestFit, RunsThatAreFreeAreOneLargePieceAgain) {
  open(kBudget);
  std::vector<void*> blocks;
  for (Bytes filled; filled < kBudget; filled += mib(1)) blocks.push_back(take(mib(1), a));
  const std::size_t each = blocks.size() / 4;
  for (std::size_t i = each; i < 3 * each; ++i) free(blocks.at(i), a);
  EXPECT_EQ(try_take({kBudget.count / 2}, a), blocks.at(each)) << "with others on both sides";
}

TEST_F(BestFit, ASmallBlockIsHandedOverAlsoWhereItsRunIsALargePieceAgain) {
  open(kib(64));
  pool->set_limits(kib(64), {.hand_over = true, .wait = false});
  void* block = take(kib(64), a);
  free(block, a);
  EXPECT_EQ(try_take(kib(4), b), block);
  EXPECT_EQ(pool->statistics().handovers, 1U);
  EXPECT_EQ(progress.dependencies().size(), 1U);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(BestFit, ASmallBlockIsCutFromALargePieceWhereThereIsNoRoomForARun) {
  open(mib(4));
  void* large = take(mib(3), a);
  EXPECT_NE(try_take(kib(512), a), nullptr);
  EXPECT_NE(try_take(kib(512), a), nullptr);
  EXPECT_EQ(try_take({1}, a), nullptr);
  free(large, a);
  EXPECT_NE(try_take(mib(1), a), nullptr);
}

TEST_F(BestFit, ASegmentOfWhichAPartIsInUseStays) {
  open(mib(8), mib(4));
  void* one = take(mib(2), a);
  void* two = take(mib(2), a);
  free(one, a);
  pass(a);
  EXPECT_EQ(pool->trim(), Bytes{0});
  EXPECT_EQ(try_take(mib(6), a), nullptr);
  free(two, a);
  pass(a);
  EXPECT_EQ(pool->trim(), mib(4));
  expect_statistics_agree(*pool, upstream);
}

TEST_F(BestFit, ASegmentOfWhichAnotherStreamsPartIsUnpassedStays) {
  open(mib(4));
  void* one = take(mib(2), a);
  void* two = take(mib(2), b);
  free(one, a);
  free(two, b);
  pass(a);
  EXPECT_EQ(pool->trim(), Bytes{0});
  progress.pass_all(b);
  EXPECT_EQ(pool->trim(), mib(4));
}

TEST_F(BestFit, OnlyAWholeSegmentCanBeGivenAway) {
  open(mib(8), mib(2));
  void* whole = take(mib(4), a);
  void* part = take(kib(4), a);
  EXPECT_FALSE(pool->disown(part).has_value());
  ASSERT_TRUE(pool->disown(whole).has_value());
  EXPECT_EQ(pool->find(whole), std::nullopt);
  EXPECT_EQ(pool->statistics().reserved.current, mib(2));
  upstream.deallocate(whole, mib(4));
  free(part, a);
}

TEST_F(BestFit, AsksForNoMoreThanThereIsRoomFor) {
  open(mib(5), mib(4));
  void* first = take(mib(3), a);
  EXPECT_EQ(pool->statistics().reserved.current, mib(4));
  EXPECT_NE(try_take({mib(1).count / 2 + 1}, a), nullptr);
  EXPECT_NE(try_take(mib(1), a), nullptr);
  EXPECT_EQ(pool->statistics().reserved.current, mib(5));
  free(first, a);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(BestFit, AsksForTheBlockAloneWhereTheUpstreamHasNoWholeSegment) {
  open(mib(64), mib(32));
  upstream.refuse_calls(testing::Fault::at(1));
  EXPECT_NE(try_take(mib(3), a), nullptr);
  EXPECT_EQ(pool->statistics().reserved.current, mib(3));
  expect_statistics_agree(*pool, upstream);
}

}  // namespace
}  // namespace weir
