// Who may have a freed block, and when: the pools that keep blocks.

#include <gtest/gtest.h>

#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

using testing::expect_books;
using testing::Fault;
using testing::options_of;

struct PoolReuse : testing::PoolFixture, ::testing::WithParamInterface<PoolKind> {
  Pool pool{memory(), options_of(mib(16), GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolReuse, ::testing::Values(PoolKind::kNaive, PoolKind::kRound),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST_P(PoolReuse, ReusesOnItsOwnStreamWithoutWaiting) {
  void* pointer = pool.allocate(kib(4), a);
  EXPECT_EQ(pool.deallocate(pointer, a), Freed::kCached);
  EXPECT_EQ(pool.allocate(kib(4), a), pointer);
  EXPECT_EQ(pool.statistics().hits, 1U);
  EXPECT_EQ(progress.waits().size(), 0U);
  EXPECT_EQ(progress.dependencies().size(), 0U);
}

TEST_P(PoolReuse, TheLastFreedIsTheFirstReused) {
  void* one = pool.allocate(kib(4), a);
  void* two = pool.allocate(kib(4), a);
  pool.deallocate(two, a);
  pool.deallocate(one, a);
  EXPECT_EQ(pool.allocate(kib(4), a), one);
  EXPECT_EQ(pool.allocate(kib(4), a), two);
}

TEST_P(PoolReuse, AnotherStreamReusesOnlyBehindThePointOfTheFree) {
  void* pointer = pool.allocate(kib(4), a);
  pool.deallocate(pointer, a);
  void* other = pool.allocate(kib(4), b);
  EXPECT_NE(other, pointer);
  progress.pass_all(a);
  EXPECT_EQ(pool.allocate(kib(4), b), pointer);
  EXPECT_EQ(progress.dependencies().size(), 0U);
  EXPECT_EQ(pool.statistics().hits, 1U);
  EXPECT_EQ(pool.statistics().misses, 2U);
}

TEST_P(PoolReuse, ABlockThatChangedStreamsIsItsNewStreamsOwn) {
  void* pointer = pool.allocate(kib(4), a);
  pool.deallocate(pointer, a);
  progress.pass_all(a);
  ASSERT_EQ(pool.allocate(kib(4), b), pointer);
  pool.deallocate(pointer, b);
  EXPECT_NE(pool.allocate(kib(4), a), pointer);
  EXPECT_EQ(pool.allocate(kib(4), b), pointer);
}

TEST_P(PoolReuse, AUseOfOneLifeIsForgottenInTheNext) {
  void* pointer = pool.allocate(kib(4), a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  progress.pass_all(b);
  ASSERT_EQ(pool.allocate(kib(4), a), pointer);
  EXPECT_EQ(pool.deallocate(pointer, a), Freed::kCached);
}

TEST_P(PoolReuse, EverySecondStreamMustHavePassed) {
  void* pointer = pool.allocate(kib(4), a);
  pool.record_use(pointer, b);
  pool.record_use(pointer, c);
  pool.deallocate(pointer, a);
  progress.pass_all(c);
  EXPECT_NE(pool.allocate(kib(4), a), pointer);
  progress.pass_all(b);
  EXPECT_EQ(pool.allocate(kib(4), a), pointer);
}

TEST_P(PoolReuse, ABlockAwaitsASecondStreamAlsoForOthersThanItsOwn) {
  void* pointer = pool.allocate(kib(4), a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  progress.pass_all(b);
  // The second stream is done, the own one is not: only the own stream may have it.
  EXPECT_NE(pool.allocate(kib(4), c), pointer);
  EXPECT_EQ(pool.allocate(kib(4), a), pointer);
}

TEST_P(PoolReuse, OnlyBlocksOfTheSameSizeAreReused) {
  void* large = pool.allocate(kib(8), a);
  pool.deallocate(large, a);
  EXPECT_NE(pool.allocate(kib(4), a), large);
  EXPECT_EQ(pool.largest_cached(), kib(8));
}

TEST_P(PoolReuse, AFreeThatCannotBeRecordedKeepsTheBlockFromEveryone) {
  void* pointer = pool.allocate(kib(4), a);
  progress.fail_records(Fault::always());
  EXPECT_EQ(pool.deallocate(pointer, a), Freed::kAwaiting);
  progress.pass_all(a);
  pool.poll();
  for (const StreamId stream : {a, b}) EXPECT_NE(pool.allocate(kib(4), stream), pointer);
  EXPECT_EQ(pool.statistics().awaiting.current, kib(4));
  expect_books(pool, upstream);

  progress.fail_records(Fault::never());
  pool.poll();
  progress.pass_all(a);
  pool.poll();
  EXPECT_EQ(pool.statistics().awaiting.current, Bytes{0});
  EXPECT_EQ(pool.allocate(kib(4), b), pointer);
  expect_books(pool, upstream);
}

TEST_P(PoolReuse, AUseThatCannotBeRecordedKeepsTheBlockFromEveryone) {
  void* pointer = pool.allocate(kib(4), a);
  pool.record_use(pointer, b);
  progress.fail_records(Fault::at(2));  // the first is the own stream's
  EXPECT_EQ(pool.deallocate(pointer, a), Freed::kAwaiting);
  progress.pass_all(a);
  progress.pass_all(b);
  EXPECT_NE(pool.allocate(kib(4), a), pointer);  // its poll records the point late
  const Point late = {b, progress.tail(b)};
  EXPECT_NE(pool.allocate(kib(4), a), pointer);
  progress.pass(late);
  EXPECT_EQ(pool.allocate(kib(4), a), pointer);
}

TEST_P(PoolReuse, APointRecordedLateThatIsPassedAlreadyLetsTheBlockGo) {
  // On a device whose points are not entries the late point can be one that is known to be passed.
  progress.record_without_entries();
  void* parked = pool.allocate(kib(4), a);
  void* plain = pool.allocate(kib(8), a);
  progress.enqueue(a);
  progress.fail_records(Fault::at(1));
  pool.deallocate(parked, a);
  pool.deallocate(plain, a);
  progress.pass_all(a);
  progress.fail_records(Fault::at(1));
  pool.poll();  // learns how far the stream is, and cannot record yet
  pool.poll();
  EXPECT_EQ(pool.statistics().awaiting.current, Bytes{0});
  expect_books(pool, upstream);
  EXPECT_EQ(pool.allocate(kib(4), b), parked);
}

TEST_P(PoolReuse, APointRecordedLateIsOnlyForWhatWasFreedBefore) {
  void* first = pool.allocate(kib(4), a);
  void* second = pool.allocate(kib(4), a);
  progress.fail_records(Fault::at(1));
  pool.deallocate(first, a);
  Point use{};
  Point late{};
  progress.after_record = [&](Point point) {
    if (use.sequence != 0) return;
    late = point;
    // Another thread, between that and the pool's taking note of it.
    use = progress.enqueue(a);
    progress.fail_records(Fault::at(1));
    pool.deallocate(second, a);
  };
  pool.poll();
  progress.after_record = nullptr;
  ASSERT_NE(use.sequence, 0U);
  progress.pass(late);
  EXPECT_EQ(pool.allocate(kib(4), b), first);
  EXPECT_NE(pool.allocate(kib(4), b), second) << "it is still used";
  progress.pass_all(a);
  EXPECT_EQ(pool.allocate(kib(4), b), second);
}

/// MXNet's own cases for its pool: round with a cutoff of 20.
struct MxnetStorage : testing::PoolFixture {
  static PoolOptions options() {
    PoolOptions options = options_of(gib(1));
    options.cutoff = 20U;
    return options;
  }
  Pool pool{memory(), options()};
};

TEST_F(MxnetStorage, SmallRequestsShareAPage) {
  void* pointer = pool.allocate({32}, a);
  pool.deallocate(pointer, a);
  EXPECT_EQ(pool.allocate({4095}, a), pointer);
}

TEST_F(MxnetStorage, LargeRequestsShareALinearBucket) {
  void* pointer = pool.allocate({2097153}, a);
  pool.deallocate(pointer, a);
  EXPECT_EQ(pool.allocate({3145728}, a), pointer);
}

}  // namespace
}  // namespace weir
