// Who may reuse a freed block, and when, in pools that keep blocks. Each block here is a whole
// segment, or pages.

#include <gtest/gtest.h>
#include <malloc.h>

#include <string>

#include "allocator/pool_fixture.hpp"
#include "support/sanitized.hpp"

namespace weir {
namespace {

using testing::expect_statistics_agree;
using testing::Fault;
using testing::options_of;

struct PoolReuse : testing::UnitFixture {
  Pool pool{memory(), options(16)};
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolReuse, ::testing::ValuesIn(testing::kKeepingUnits),
                         testing::unit_name);

TEST_P(PoolReuse, ReusesOnItsOwnStreamWithoutWaiting) {
  void* pointer = pool.allocate(unit, a);
  EXPECT_EQ(pool.deallocate(pointer, a), Freed::kCached);
  EXPECT_EQ(pool.allocate(unit, a), pointer);
  EXPECT_EQ(pool.statistics().hits, 1U);
  EXPECT_EQ(progress.waits().size(), 0U);
  EXPECT_EQ(progress.dependencies().size(), 0U);
}

TEST_P(PoolReuse, AnotherStreamReusesOnlyBehindThePointOfTheFree) {
  void* pointer = pool.allocate(unit, a);
  pool.deallocate(pointer, a);
  void* other = pool.allocate(unit, b);
  EXPECT_NE(other, pointer);
  progress.pass_all(a);
  EXPECT_EQ(pool.allocate(unit, b), pointer);
  EXPECT_EQ(progress.dependencies().size(), 0U);
  EXPECT_EQ(pool.statistics().hits, 1U);
  EXPECT_EQ(pool.statistics().misses, 2U);
}

TEST_P(PoolReuse, WhatAnotherStreamHasQueuedIsNeededWhereThePoolGrows) {
  pool.deallocate(pool.allocate(unit, a), a);
  (void)pool.allocate(unit, b);
  EXPECT_EQ(pool.statistics().queued_at_growth, unit);
  EXPECT_EQ(pool.statistics().needed_at_growth, unit * 2);
  progress.pass_all(a);
  (void)pool.allocate(unit * 2, b);
  EXPECT_EQ(pool.statistics().needed_at_growth, unit * 3) << "the device has passed the first";
}

TEST_P(PoolReuse, AHoleOfTheStreamItselfIsNotNeeded) {
  void* const hole = pool.allocate(unit, a);
  (void)pool.allocate(unit, a);
  pool.deallocate(hole, a);
  (void)pool.allocate(unit * 2, a);
  EXPECT_EQ(pool.statistics().queued_at_growth, Bytes{});
  EXPECT_EQ(pool.statistics().needed_at_growth, unit * 3);
}

TEST_P(PoolReuse, ABlockThatChangedStreamsIsItsNewStreamsOwn) {
  void* pointer = pool.allocate(unit, a);
  pool.deallocate(pointer, a);
  progress.pass_all(a);
  ASSERT_EQ(pool.allocate(unit, b), pointer);
  pool.deallocate(pointer, b);
  EXPECT_NE(pool.allocate(unit, a), pointer);
  EXPECT_EQ(pool.allocate(unit, b), pointer);
}

TEST_P(PoolReuse, AUseOfOneLifeIsForgottenInTheNext) {
  void* pointer = pool.allocate(unit, a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  progress.pass_all(b);
  ASSERT_EQ(pool.allocate(unit, a), pointer);
  EXPECT_EQ(pool.deallocate(pointer, a), Freed::kCached);
}

TEST_P(PoolReuse, EverySecondStreamMustHavePassed) {
  void* pointer = pool.allocate(unit, a);
  pool.record_use(pointer, b);
  pool.record_use(pointer, c);
  pool.deallocate(pointer, a);
  progress.pass_all(c);
  EXPECT_NE(pool.allocate(unit, a), pointer);
  progress.pass_all(b);
  EXPECT_EQ(pool.allocate(unit, a), pointer);
}

TEST_P(PoolReuse, ABlockAwaitsASecondStreamAlsoForOthersThanItsOwn) {
  void* pointer = pool.allocate(unit, a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  progress.pass_all(b);
  // The second stream has passed, the own one has not: only the own stream may have it.
  EXPECT_NE(pool.allocate(unit, c), pointer);
  EXPECT_EQ(pool.allocate(unit, a), pointer);
}

TEST_P(PoolReuse, AFreeThatCannotBeRecordedKeepsTheBlockFromEveryone) {
  void* pointer = pool.allocate(unit, a);
  progress.fail_records(Fault::always());
  EXPECT_EQ(pool.deallocate(pointer, a), Freed::kAwaiting);
  progress.pass_all(a);
  pool.poll();
  for (const StreamId stream : {a, b}) EXPECT_NE(pool.allocate(unit, stream), pointer);
  EXPECT_EQ(pool.statistics().awaiting.current, unit);
  expect_statistics_agree(pool, upstream);

  progress.fail_records(Fault::never());
  pool.poll();
  progress.pass_all(a);
  pool.poll();
  EXPECT_EQ(pool.statistics().awaiting.current, Bytes{0});
  EXPECT_EQ(pool.allocate(unit, b), pointer);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolReuse, AUseThatCannotBeRecordedKeepsTheBlockFromEveryone) {
  void* pointer = pool.allocate(unit, a);
  pool.record_use(pointer, b);
  progress.fail_records(Fault::at(2));  // the first is the own stream's
  EXPECT_EQ(pool.deallocate(pointer, a), Freed::kAwaiting);
  progress.pass_all(a);
  progress.pass_all(b);
  EXPECT_NE(pool.allocate(unit, a), pointer);  // its poll records the point late
  const Point late = {b, progress.tail(b)};
  EXPECT_NE(pool.allocate(unit, a), pointer);
  progress.pass(late);
  EXPECT_EQ(pool.allocate(unit, a), pointer);
}

TEST_P(PoolReuse, APointRecordedLateThatIsPassedAlreadyLetsTheBlockGo) {
  // On a device whose points are not entries, the late point may be one that is known to be passed.
  progress.record_without_entries();
  void* parked = pool.allocate(unit, a);
  void* plain = pool.allocate(unit * 2, a);
  progress.enqueue(a);
  progress.fail_records(Fault::at(1));
  pool.deallocate(parked, a);
  pool.deallocate(plain, a);
  progress.pass_all(a);
  progress.fail_records(Fault::at(1));
  pool.poll();  // sees how far the stream is, and cannot record yet
  pool.poll();
  EXPECT_EQ(pool.statistics().awaiting.current, Bytes{0});
  expect_statistics_agree(pool, upstream);
  EXPECT_EQ(pool.allocate(unit, b), parked);
}

TEST_P(PoolReuse, APointRecordedLateIsOnlyForWhatWasFreedBefore) {
  void* first = pool.allocate(unit, a);
  (void)pool.allocate(unit, c);  // otherwise they would be one piece, with one point
  void* second = pool.allocate(unit, a);
  progress.fail_records(Fault::at(1));
  pool.deallocate(first, a);
  Point use{};
  Point late{};
  progress.after_record = [&](Point point) {
    if (use.sequence != 0) return;
    late = point;
    // Another thread, before the pool takes note of it.
    use = progress.enqueue(a);
    progress.fail_records(Fault::at(1));
    pool.deallocate(second, a);
  };
  pool.poll();
  progress.after_record = nullptr;
  ASSERT_NE(use.sequence, 0U);
  progress.pass(late);
  EXPECT_EQ(pool.allocate(unit, b), first);
  EXPECT_NE(pool.allocate(unit, b), second) << "it is still used";
  progress.pass_all(a);
  EXPECT_EQ(pool.allocate(unit, b), second);
}

/// Tests that need blocks with a fixed size class: neither split nor joined.
struct PoolSizeClasses : testing::PoolFixture, ::testing::WithParamInterface<PoolKind> {
  Pool pool{memory(), options_of(mib(16), GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolSizeClasses,
                         ::testing::Values(PoolKind::kNaive, PoolKind::kRound), testing::kind_name);

TEST_P(PoolSizeClasses, TheLastFreedIsTheFirstReused) {
  void* one = pool.allocate(kib(4), a);
  void* two = pool.allocate(kib(4), a);
  pool.deallocate(two, a);
  pool.deallocate(one, a);
  EXPECT_EQ(pool.allocate(kib(4), a), one);
  EXPECT_EQ(pool.allocate(kib(4), a), two);
}

TEST_P(PoolSizeClasses, OnlyBlocksOfTheSameSizeAreReused) {
  void* large = pool.allocate(kib(8), a);
  pool.deallocate(large, a);
  EXPECT_NE(pool.allocate(kib(4), a), large);
  EXPECT_EQ(pool.largest_cached(), kib(8));
}

struct PoolHeapUse : testing::PoolFixture, ::testing::WithParamInterface<PoolKind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolHeapUse, ::testing::ValuesIn(testing::kAllKinds),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST_P(PoolHeapUse, BlocksThatGoBackLeaveNothingOfTheirSecondStreams) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitizer's heap does not say what is in use";
  progress.record_without_entries();
  Pool pool(memory(), options_of(mib(16), GetParam()));
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      void* pointer = pool.allocate(kib(4), a);
      pool.deallocate(pointer, b);
      progress.pass_all(a);
      progress.pass_all(b);
      (void)pool.trim();
      upstream.forget_returned();
    }
    const auto heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
  };
  const std::size_t warm = rounds(1000);
  EXPECT_LT(rounds(20'000), warm + kib(64).count);
}

// A point that was passed before its block became free is not reported again. Pools must know it
// all the same, those that join blocks among them.
struct PoolPassedPoint : testing::PoolFixture, ::testing::WithParamInterface<PoolKind> {
  Pool pool{memory(), options_of(mib(2), GetParam())};
};

TEST_P(PoolPassedPoint, MakesABlockEverybodysThatAwaitedAnotherStream) {
  void* const block = pool.allocate(mib(1), a);
  void* const rest = pool.allocate(mib(1), a);
  progress.enqueue(a);
  progress.enqueue(b);
  pool.record_use(block, b);
  EXPECT_EQ(pool.deallocate(block, a), Freed::kAwaiting);
  progress.pass_all(a);
  pool.poll();
  progress.pass_all(b);
  EXPECT_EQ(pool.allocate(mib(1), c), block);
  EXPECT_EQ(progress.dependencies().size(), 0U) << "there is nothing to wait for";
  pool.deallocate(block, c);
  pool.deallocate(rest, a);
}

TEST_P(PoolPassedPoint, LetsAllOfItGoBackToTheUpstream) {
  void* const block = pool.allocate(mib(2), a);
  pool.record_use(block, b);
  progress.enqueue(b);
  EXPECT_EQ(pool.deallocate(block, a), Freed::kAwaiting);
  progress.pass_all(a);
  pool.poll();
  progress.pass_all(b);
  EXPECT_EQ(pool.trim(), mib(2));
  EXPECT_EQ(upstream.used(), Bytes{});
}

INSTANTIATE_TEST_SUITE_P(Kinds, PoolPassedPoint, ::testing::ValuesIn(testing::kKeepingKinds),
                         testing::kind_name);

}  // namespace
}  // namespace weir
