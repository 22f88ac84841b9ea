// The two stages that hold something up: handover (the device waits) and the wait on the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "allocator/error.hpp"
#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::expect_books;
using testing::Fault;
using ::testing::IsEmpty;
using testing::ManualProgress;
using testing::options_of;
using Dependency = ManualProgress::Dependency;

struct PoolWaiting : testing::PoolFixture {
  Pool pool{memory(), options_of(kib(16))};

  /// A block of `size`, freed again on `stream`; the point of the free is that stream's tail.
  void* freed(Bytes size, StreamId stream) {
    void* pointer = pool.allocate(size, stream);
    progress.enqueue(stream);
    pool.deallocate(pointer, stream);
    return pointer;
  }
  [[nodiscard]] Point tail(StreamId stream) const { return {stream, progress.tail(stream)}; }
};

TEST_F(PoolWaiting, HandoverMakesTheDeviceWaitAndNotTheHost) {
  void* pointer = freed(kib(16), a);
  const Point point = tail(a);
  EXPECT_EQ(pool.allocate(kib(16), b), pointer);
  EXPECT_THAT(progress.dependencies(), ElementsAre(Dependency{b, point}));
  EXPECT_THAT(progress.waits(), IsEmpty());
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.handovers, 1U);
  EXPECT_EQ(s.hits, 0U);
  EXPECT_EQ(s.releases, 0U);
  expect_books(pool, upstream);
}

TEST_F(PoolWaiting, HandoverTakesTheBlockThatWasFreedFirst) {
  std::vector<void*> blocks;
  for (const StreamId stream : {a, b, b, a}) blocks.push_back(pool.allocate(kib(4), stream));
  pool.deallocate(blocks.at(2), b);
  pool.deallocate(blocks.at(0), a);
  EXPECT_EQ(pool.allocate(kib(4), c), blocks.at(2));
  EXPECT_EQ(pool.allocate(kib(4), c), blocks.at(0));
}

TEST_F(PoolWaiting, WhatWasHandedOverIsTheNewStreamsWhenItIsFreed) {
  void* pointer = freed(kib(16), a);
  ASSERT_EQ(pool.allocate(kib(16), b), pointer);
  pool.deallocate(pointer, b);
  EXPECT_EQ(pool.allocate(kib(16), b), pointer);
  EXPECT_EQ(pool.statistics().hits, 1U);
}

TEST_F(PoolWaiting, HandoverLeavesBlocksThatAwaitASecondStream) {
  void* pointer = pool.allocate(kib(16), a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  pool.set_limits(kib(16), {.wait = false});
  EXPECT_THROW((void)pool.allocate(kib(16), c), OutOfMemory);
  EXPECT_THAT(progress.dependencies(), IsEmpty());
}

TEST_F(PoolWaiting, APolicyCanLeaveHandoverOut) {
  pool.set_limits(kib(16), {.hand_over = false});
  void* pointer = freed(kib(16), a);
  const Point point = tail(a);
  EXPECT_EQ(pool.allocate(kib(16), b), pointer);
  EXPECT_THAT(progress.dependencies(), IsEmpty());
  EXPECT_THAT(progress.waits(), ElementsAre(point));
  EXPECT_EQ(pool.statistics().handovers, 0U);
}

TEST_F(PoolWaiting, AHandoverThatTheDeviceRefusesKeepsTheBlockBehindItsPoint) {
  void* pointer = freed(kib(16), a);
  const Point point = tail(a);
  progress.fail_make_waits(Fault::at(1));
  EXPECT_THROW((void)pool.allocate(kib(16), b), std::runtime_error);
  expect_books(pool, upstream);
  EXPECT_EQ(pool.statistics().handovers, 0U);
  // The stream that asked was not made to wait, so the block is not its to have.
  EXPECT_EQ(pool.allocate(kib(16), b), pointer);
  EXPECT_THAT(progress.dependencies(), ElementsAre(Dependency{b, point}));
}

TEST_F(PoolWaiting, TheHostWaitsForTheOldestFreeFirst) {
  const StreamId d = StreamId::next();
  void* first = pool.allocate(kib(4), a);
  void* third = pool.allocate(kib(4), a);
  pool.record_use(first, b);
  pool.record_use(third, d);
  pool.deallocate(first, a);
  const Point first_use = tail(b);
  const Point first_free = tail(a);
  (void)freed(kib(4), c);
  const Point second_free = tail(c);
  pool.deallocate(third, a);
  EXPECT_NE(pool.allocate(kib(16), a), nullptr);
  EXPECT_THAT(progress.waits(), ElementsAre(first_use, first_free, second_free, tail(d), tail(a)));
  EXPECT_EQ(pool.statistics().waits, 5U);
}

TEST_F(PoolWaiting, TheHostWaitsUntilThereIsRoom) {
  std::vector<Point> points;
  for (const StreamId stream : {b, a, c}) {
    (void)freed(kib(4), stream);
    points.push_back(tail(stream));
  }
  EXPECT_NE(pool.allocate(kib(8), a), nullptr) << "4 KiB are unused, 4 KiB more are needed";
  EXPECT_THAT(progress.waits(), ElementsAre(points.at(0)));
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.waits, 1U);
  EXPECT_EQ(s.releases, 1U);
  EXPECT_EQ(s.retries, 1U);
  EXPECT_GE(s.waited.count(), 0);
  expect_books(pool, upstream);
}

TEST_F(PoolWaiting, TheHostWaitsForASecondStreamsUse) {
  void* pointer = pool.allocate(kib(16), a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  const Point use = tail(b);
  EXPECT_EQ(pool.allocate(kib(16), a), pointer);
  EXPECT_THAT(progress.waits(), ElementsAre(use));
}

TEST_F(PoolWaiting, APolicyCanLeaveTheWaitOut) {
  pool.set_limits(kib(16), {.wait = false});
  void* pointer = pool.allocate(kib(16), a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  EXPECT_THROW((void)pool.allocate(kib(16), a), OutOfMemory);
  EXPECT_THAT(progress.waits(), IsEmpty());
  EXPECT_EQ(pool.statistics().waits, 0U);
}

TEST_F(PoolWaiting, UnboundedRunAheadFailsAtOnce) {
  pool.set_limits(kib(16), {.hand_over = false, .wait = false});
  (void)freed(kib(16), a);
  EXPECT_THROW((void)pool.allocate(kib(16), b), OutOfMemory);
  EXPECT_THAT(progress.waits(), IsEmpty());
  EXPECT_THAT(progress.dependencies(), IsEmpty());
}

TEST_F(PoolWaiting, NothingIsWaitedForWhenNothingIsOutstanding) {
  (void)pool.allocate(kib(16), a);
  progress.enqueue(a);
  EXPECT_THROW((void)pool.allocate(kib(4), b), OutOfMemory);
  EXPECT_THAT(progress.waits(), IsEmpty());
}

TEST(Invariant3, WhatCannotFitAtAllFailsAtTheAllocationWithoutWaiting) {
  SimulatedUpstream upstream(gib(1));
  ManualProgress progress;
  Pool pool({upstream, progress}, options_of(kib(16)));
  const StreamId stream = StreamId::next();
  void* pointer = pool.allocate(kib(16), stream);
  pool.record_use(pointer, StreamId::next());
  pool.deallocate(pointer, stream);
  EXPECT_THROW((void)pool.allocate(kib(32), stream), OutOfMemory);
  EXPECT_THAT(progress.waits(), IsEmpty());
  EXPECT_EQ(pool.statistics().awaiting.current, kib(16));
}

TEST_F(PoolWaiting, AWaitThatThrowsLeavesThePoolUsable) {
  void* pointer = pool.allocate(kib(16), a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  progress.fail_waits(Fault::at(1));
  EXPECT_THROW((void)pool.allocate(kib(16), a), std::runtime_error);
  expect_books(pool, upstream);
  EXPECT_EQ(pool.allocate(kib(16), a), pointer) << "the line has moved on";
}

TEST_F(PoolWaiting, ABlockWhosePointIsRecordedLateCanStillBeWaitedFor) {
  void* pointer = pool.allocate(kib(16), a);
  progress.fail_records(Fault::at(1));
  pool.deallocate(pointer, a);
  EXPECT_EQ(pool.allocate(kib(16), b), pointer);
  EXPECT_EQ(pool.statistics().awaiting.current, Bytes{0});
  expect_books(pool, upstream);
}

TEST_F(PoolWaiting, ABlockThatNobodyCanRecordEndsInAFailureAndNotInAWait) {
  void* pointer = pool.allocate(kib(16), a);
  progress.fail_records(Fault::always());
  pool.deallocate(pointer, a);
  EXPECT_THROW((void)pool.allocate(kib(16), b), OutOfMemory);
  EXPECT_THAT(progress.waits(), IsEmpty());
  progress.fail_records(Fault::never());
  EXPECT_EQ(pool.allocate(kib(16), b), pointer);
}

}  // namespace
}  // namespace weir
