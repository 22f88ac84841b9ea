// The two stages that wait: handover (the device waits) and the wait on the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::expect_statistics_agree;
using testing::Fault;
using ::testing::IsEmpty;
using testing::ManualProgress;
using testing::options_of;
using Dependency = ManualProgress::Dependency;

struct PoolWaiting : testing::UnitFixture {
  Pool pool{memory(), options(4)};

  /// Allocates a block of `size` and frees it on `stream`, at that stream's tail.
  void* freed(Bytes size, StreamId stream) {
    void* pointer = pool.allocate(size, stream);
    progress.enqueue(stream);
    pool.deallocate(pointer, stream);
    return pointer;
  }
  [[nodiscard]] Point tail(StreamId stream) const { return {stream, progress.tail(stream)}; }
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolWaiting, ::testing::ValuesIn(testing::kKeepingUnits),
                         testing::unit_name);

TEST_P(PoolWaiting, HandoverMakesTheDeviceWaitAndNotTheHost) {
  void* pointer = freed(unit * 4, a);
  const Point point = tail(a);
  EXPECT_EQ(pool.allocate(unit * 4, b), pointer);
  EXPECT_THAT(progress.dependencies(), ElementsAre(Dependency{b, point}));
  EXPECT_THAT(progress.waits(), IsEmpty());
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.handovers, 1U);
  EXPECT_EQ(s.hits, 0U);
  EXPECT_EQ(s.releases, 0U);
  expect_statistics_agree(pool, upstream);
}

// Each stream of many would have memory of its own.
TEST_P(PoolWaiting, HandoverComesBeforeGrowthThatLiveMemoryDoesNotExplainIfThePolicySaysSo) {
  Pool large{memory(), options(64)};
  const auto take_and_free = [&](StreamId stream) {
    progress.enqueue(stream);
    large.deallocate(large.allocate(unit * 2, stream), stream);
  };
  large.set_limits(large.budget(), {.before_growth = true});
  for (int i = 0; i < 8; ++i) take_and_free(StreamId::next());
  EXPECT_EQ(large.statistics().reserved.peak, unit * 2 * kMostUnexplained);
  EXPECT_EQ(large.statistics().handovers, 8 - kMostUnexplained);
  EXPECT_THAT(progress.waits(), IsEmpty());
  large.set_limits(large.budget(), {});
  for (int i = 0; i < 8; ++i) take_and_free(StreamId::next());
  EXPECT_EQ(large.statistics().reserved.peak, unit * 2 * (kMostUnexplained + 8));
  expect_statistics_agree(large, upstream);
}

TEST_P(PoolWaiting, AtOnceItFailsBeforeEitherStageAndGoesOnThereIfResumed) {
  void* pointer = freed(unit * 4, a);
  Attempt attempt{.at_once = true};
  EXPECT_EQ(pool.try_allocate(unit * 4, b, {}, attempt), nullptr);
  EXPECT_THAT(progress.dependencies(), IsEmpty());
  EXPECT_THAT(progress.waits(), IsEmpty());
  attempt.at_once = false;
  attempt.resumed = true;
  const auto queries = progress.queries();
  EXPECT_EQ(pool.try_allocate(unit * 4, b, {}, attempt), pointer);
  EXPECT_EQ(progress.queries(), queries) << "no stage twice";
}

TEST_P(PoolWaiting, WhatIsForAllStreamsIsNotHandedOverButWaitedFor) {
  void* pointer = freed(unit * 4, a);
  Attempt attempt{.for_all = true};
  EXPECT_EQ(pool.try_allocate(unit * 4, b, {}, attempt), pointer);
  EXPECT_THAT(progress.dependencies(), IsEmpty());
  EXPECT_THAT(progress.waits(), ElementsAre(tail(a)));
}

TEST_P(PoolWaiting, AWaitEndsWithTheRequestsTime) {
  (void)freed(unit * 4, a);
  std::atomic<std::uint64_t> changes{1};
  for (const WaitLimit& limit : {WaitLimit{.until = std::chrono::steady_clock::time_point::min()},
                                 WaitLimit{.watched = &changes, .seen = 0}}) {
    Attempt attempt{.limit = limit, .for_all = true};
    EXPECT_EQ(pool.try_allocate(unit * 4, b, {}, attempt), nullptr);
  }
  EXPECT_NE(pool.allocate(unit * 4, b), nullptr);
}

TEST_P(PoolWaiting, HandoverTakesTheBlockThatWasFreedFirst) {
  std::vector<void*> blocks;
  for (const StreamId stream : {a, b, b, a}) blocks.push_back(pool.allocate(unit, stream));
  pool.deallocate(blocks.at(2), b);
  pool.deallocate(blocks.at(0), a);
  EXPECT_EQ(pool.allocate(unit, c), blocks.at(2));
  EXPECT_EQ(pool.allocate(unit, c), blocks.at(0));
}

TEST_P(PoolWaiting, WhatWasHandedOverIsTheNewStreamsWhenItIsFreed) {
  void* pointer = freed(unit * 4, a);
  ASSERT_EQ(pool.allocate(unit * 4, b), pointer);
  pool.deallocate(pointer, b);
  EXPECT_EQ(pool.allocate(unit * 4, b), pointer);
  EXPECT_EQ(pool.statistics().hits, 1U);
}

TEST_P(PoolWaiting, HandoverLeavesBlocksThatAwaitASecondStream) {
  void* pointer = pool.allocate(unit * 4, a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  pool.set_limits(unit * 4, {.wait = false});
  EXPECT_THROW((void)pool.allocate(unit * 4, c), OutOfMemory);
  EXPECT_THAT(progress.dependencies(), IsEmpty());
}

TEST_P(PoolWaiting, APolicyCanLeaveHandoverOut) {
  pool.set_limits(unit * 4, {.hand_over = false});
  void* pointer = freed(unit * 4, a);
  const Point point = tail(a);
  EXPECT_EQ(pool.allocate(unit * 4, b), pointer);
  EXPECT_THAT(progress.dependencies(), IsEmpty());
  EXPECT_THAT(progress.waits(), ElementsAre(point));
  EXPECT_EQ(pool.statistics().handovers, 0U);
}

TEST_P(PoolWaiting, AHandoverThatTheDeviceRefusesKeepsTheBlockBehindItsPoint) {
  void* pointer = freed(unit * 4, a);
  const Point point = tail(a);
  progress.fail_make_waits(Fault::at(1));
  EXPECT_THROW((void)pool.allocate(unit * 4, b), std::runtime_error);
  expect_statistics_agree(pool, upstream);
  EXPECT_EQ(pool.statistics().handovers, 0U);
  // The requesting stream was not made to wait, so it may not have the block.
  EXPECT_EQ(pool.allocate(unit * 4, b), pointer);
  EXPECT_THAT(progress.dependencies(), ElementsAre(Dependency{b, point}));
}

/// The copy stream's inputs of one batch and the working set of the next one: what a pool holds
/// that is full of queued batches.
struct PoolWaitingFirst : PoolWaiting {
  PoolWaitingFirst() { pool.set_limits(unit * 4, {.wait_first = true}); }

  /// Frees inputs of `size` behind the compute stream's first work, and returns their point.
  Point free_inputs(Bytes size) {
    void* inputs = pool.allocate(size, a);
    work = pool.allocate(unit * 2, b);
    pool.record_use(inputs, b);
    progress.enqueue(b);
    pool.deallocate(inputs, a);
    return tail(b);
  }
  /// Frees the working set behind the compute stream's second work, and returns its point.
  Point free_work() {
    progress.enqueue(b);
    pool.deallocate(work, b);
    return tail(b);
  }
  void* work = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolWaitingFirst, ::testing::ValuesIn(testing::kKeepingUnits),
                         testing::unit_name);

TEST_P(PoolWaitingFirst, TheHostWaitsForEnoughThatComesFreeEarlier) {
  const Point inputs = free_inputs(unit * 2);
  (void)free_work();
  EXPECT_NE(pool.allocate(unit * 2, a), work);
  EXPECT_THAT(progress.waits(), ElementsAre(inputs));
  EXPECT_THAT(progress.dependencies(), IsEmpty());
  EXPECT_EQ(pool.statistics().waits, 1U);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolWaitingFirst, WhatIsNotEnoughIsNotWaitedFor) {
  (void)free_inputs(unit);
  (void)pool.allocate(unit, c);
  const Point last = free_work();
  EXPECT_EQ(pool.allocate(unit * 2, a), work);
  EXPECT_THAT(progress.waits(), IsEmpty());
  EXPECT_THAT(progress.dependencies(), ElementsAre(Dependency{a, last}));
}

TEST_P(PoolWaitingFirst, WithNothingElseOutstandingTheBlockIsHandedOver) {
  (void)pool.allocate(unit * 2, c);
  work = pool.allocate(unit * 2, b);
  const Point last = free_work();
  EXPECT_EQ(pool.allocate(unit * 2, a), work);
  EXPECT_THAT(progress.dependencies(), ElementsAre(Dependency{a, last}));
}

TEST_P(PoolWaitingFirst, ItWaitsOnceIfWhatCameFreeDoesNotFit) {
  pool.set_limits(unit * 6, {.wait_first = true});
  const auto pieces = take_apart(pool, 2, unit, a);  // not side by side
  work = pool.allocate(unit * 2, b);
  for (void* piece : pieces) {
    pool.record_use(piece, b);
    progress.enqueue(b);
    pool.deallocate(piece, a);
  }
  const Point enough = tail(b);
  (void)free_work();
  EXPECT_NE(pool.allocate(unit * 2, a), nullptr);
  EXPECT_THAT(progress.waits(), ElementsAre(enough));
  EXPECT_LE(progress.dependencies().size(), 1U);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolWaitingFirst, ARequestThatMayNotWaitIsHandedTheBlock) {
  pool.set_limits(unit * 4, {.wait = false, .wait_first = true});
  (void)free_inputs(unit * 2);
  (void)free_work();
  EXPECT_EQ(pool.allocate(unit * 2, a), work);
  EXPECT_THAT(progress.waits(), IsEmpty());
}

TEST_P(PoolWaiting, TheHostWaitsForTheOldestFreeFirst) {
  const StreamId d = StreamId::next();
  void* first = pool.allocate(unit, a);
  void* third = pool.allocate(unit, a);
  pool.record_use(first, b);
  pool.record_use(third, d);
  pool.deallocate(first, a);
  const Point first_use = tail(b);
  const Point first_free = tail(a);
  (void)freed(unit, c);
  const Point second_free = tail(c);
  pool.deallocate(third, a);
  EXPECT_NE(pool.allocate(unit * 4, a), nullptr);
  std::vector<Point> expected{first_use, first_free, second_free, tail(d)};
  // A stream may use its own pages next to shared ones before they are passed.
  if (!is_paged()) expected.push_back(tail(a));
  EXPECT_EQ(progress.waits(), expected);
  EXPECT_EQ(pool.statistics().waits, expected.size());
}

TEST_P(PoolWaiting, TheHostWaitsUntilThereIsRoom) {
  std::vector<Point> points;
  for (const StreamId stream : {b, a, c}) {
    (void)freed(unit, stream);
    points.push_back(tail(stream));
  }
  // On a stream without free memory: its own pages would serve it without a wait.
  EXPECT_NE(pool.allocate(unit * 2, StreamId::next()), nullptr)
      << "one unit is unused, one more is needed";
  EXPECT_THAT(progress.waits(), ElementsAre(points.at(0)));
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.waits, 1U);
  EXPECT_EQ(s.releases, is_paged() ? 0U : 1U) << "pages are moved";
  EXPECT_EQ(s.retries, 1U);
  EXPECT_GE(s.waited.count(), 0);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolWaiting, TheHostWaitsForASecondStreamsUse) {
  void* pointer = pool.allocate(unit * 4, a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  const Point use = tail(b);
  EXPECT_EQ(pool.allocate(unit * 4, a), pointer);
  EXPECT_THAT(progress.waits(), ElementsAre(use));
}

TEST_P(PoolWaiting, APolicyCanLeaveTheWaitOut) {
  pool.set_limits(unit * 4, {.wait = false});
  void* pointer = pool.allocate(unit * 4, a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  EXPECT_THROW((void)pool.allocate(unit * 4, a), OutOfMemory);
  EXPECT_THAT(progress.waits(), IsEmpty());
  EXPECT_EQ(pool.statistics().waits, 0U);
}

TEST_P(PoolWaiting, UnboundedRunAheadFailsAtOnce) {
  pool.set_limits(unit * 4, {.hand_over = false, .wait = false});
  (void)freed(unit * 4, a);
  EXPECT_THROW((void)pool.allocate(unit * 4, b), OutOfMemory);
  EXPECT_THAT(progress.waits(), IsEmpty());
  EXPECT_THAT(progress.dependencies(), IsEmpty());
}

TEST_P(PoolWaiting, NothingIsWaitedForWhenNothingIsOutstanding) {
  (void)pool.allocate(unit * 4, a);
  progress.enqueue(a);
  EXPECT_THROW((void)pool.allocate(unit, b), OutOfMemory);
  EXPECT_THAT(progress.waits(), IsEmpty());
}

TEST(Invariant3, WhatCannotFitAtAllFailsAtTheAllocationWithoutWaiting) {
  for (const PoolKind kind : testing::kAllKinds) {
    SCOPED_TRACE(to_string(kind));
    SimulatedUpstream upstream(gib(1), testing::kPage);
    ManualProgress progress;
    Pool pool({upstream, progress}, options_of(kib(16), kind));
    const StreamId stream = StreamId::next();
    void* pointer = pool.allocate(kib(16), stream);
    pool.record_use(pointer, StreamId::next());
    pool.deallocate(pointer, stream);
    EXPECT_THROW((void)pool.allocate(kib(32), stream), OutOfMemory);
    EXPECT_THAT(progress.waits(), IsEmpty());
    EXPECT_EQ(pool.statistics().awaiting.current, kib(16));
  }
}

TEST_P(PoolWaiting, AWaitThatThrowsLeavesThePoolUsable) {
  void* pointer = pool.allocate(unit * 4, a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  progress.fail_waits(Fault::at(1));
  EXPECT_THROW((void)pool.allocate(unit * 4, a), std::runtime_error);
  expect_statistics_agree(pool, upstream);
  EXPECT_EQ(pool.allocate(unit * 4, a), pointer) << "the line has moved on";
}

TEST_P(PoolWaiting, ABlockWhosePointIsRecordedLateCanStillBeWaitedFor) {
  void* pointer = pool.allocate(unit * 4, a);
  progress.fail_records(Fault::at(1));
  pool.deallocate(pointer, a);
  EXPECT_EQ(pool.allocate(unit * 4, b), pointer);
  EXPECT_EQ(pool.statistics().awaiting.current, Bytes{0});
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolWaiting, ABlockThatNobodyCanRecordEndsInAFailureAndNotInAWait) {
  void* pointer = pool.allocate(unit * 4, a);
  progress.fail_records(Fault::always());
  pool.deallocate(pointer, a);
  EXPECT_THROW((void)pool.allocate(unit * 4, b), OutOfMemory);
  EXPECT_THAT(progress.waits(), IsEmpty());
  progress.fail_records(Fault::never());
  EXPECT_EQ(pool.allocate(unit * 4, b), pointer);
}

}  // namespace
}  // namespace weir
