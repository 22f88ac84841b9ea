// A pool over an upstream that refuses although the budget has room, or breaks.

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "allocator/error.hpp"
#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

using testing::expect_books;
using testing::Fault;
using testing::FaultyUpstream;
using testing::ManualProgress;
using testing::options_of;

struct PoolUpstreamFaults : testing::PoolFixture {
  Pool pool{memory(), options_of(kib(64))};
};

TEST_F(PoolUpstreamFaults, ARefusalReleasesPassedSegmentsAndAsksAgain) {
  void* cached = pool.allocate(kib(16), a);
  pool.deallocate(cached, a);
  progress.pass_all(a);
  upstream.refuse_calls(Fault::at(1));
  EXPECT_NE(pool.allocate(kib(8), b), nullptr);
  EXPECT_EQ(pool.statistics().releases, 1U);
  EXPECT_EQ(pool.statistics().waits, 0U);
  expect_books(pool, upstream);
}

TEST_F(PoolUpstreamFaults, ARefusalDoesNotStopWhileThereIsMoreToRelease) {
  // As on a driver whose free memory is in pieces: what was released first does not join up.
  std::vector<void*> cached(4);
  for (void*& pointer : cached) pointer = pool.allocate(kib(8), a);
  for (void* pointer : cached) pool.deallocate(pointer, a);
  progress.pass_all(a);
  upstream.refuse_calls(Fault::at(1, 2));
  EXPECT_NE(pool.allocate(kib(16), b), nullptr);
  expect_books(pool, upstream);
}

TEST_F(PoolUpstreamFaults, ARefusalIsWaitedOutWhenTheDeviceWillFreeSomething) {
  void* awaiting = pool.allocate(kib(16), a);
  pool.record_use(awaiting, b);
  pool.deallocate(awaiting, a);
  upstream.refuse_calls(Fault::at(1));
  EXPECT_NE(pool.allocate(kib(8), a), nullptr);
  EXPECT_EQ(pool.statistics().waits, 1U);
  expect_books(pool, upstream);
}

TEST_F(PoolUpstreamFaults, ALastingRefusalIsAFailureThatChangesNothing) {
  void* held = pool.allocate(kib(16), a);
  upstream.refuse_calls(Fault::always());
  EXPECT_THROW((void)pool.allocate(kib(8), a), OutOfMemory);
  expect_books(pool, upstream);
  upstream.refuse_calls(Fault::never());
  EXPECT_NE(pool.allocate(kib(8), a), nullptr);
  EXPECT_NE(pool.allocate(kib(32), a), nullptr) << "no claim on the budget was left behind";
  pool.deallocate(held, a);
}

TEST_F(PoolUpstreamFaults, AThrowPassesThroughAndTheBooksStayRight) {
  void* held = pool.allocate(kib(16), a);
  upstream.throw_calls(Fault::at(1));
  EXPECT_THROW((void)pool.allocate(kib(32), a), std::runtime_error);
  expect_books(pool, upstream);
  EXPECT_EQ(pool.statistics().allocated.current, kib(16));
  EXPECT_NE(pool.allocate(kib(32), a), nullptr) << "no claim on the budget was left behind";
  pool.deallocate(held, a);
}

TEST_F(PoolUpstreamFaults, AThrowAfterAReleaseLeavesTheBooksRightToo) {
  void* cached = pool.allocate(kib(64), a);
  pool.deallocate(cached, a);
  progress.pass_all(a);
  upstream.throw_calls(Fault::at(1));
  EXPECT_THROW((void)pool.allocate(kib(32), a), std::runtime_error);
  expect_books(pool, upstream);
  EXPECT_EQ(pool.statistics().reserved.current, Bytes{0});
  EXPECT_NE(pool.allocate(kib(64), a), nullptr);
}

TEST(Invariant1, ARefusalNeverMakesThePoolGrowPastALoweredBudget) {
  SimulatedUpstream raw(gib(1));
  FaultyUpstream upstream(raw);
  ManualProgress progress;
  Pool pool({upstream, progress}, options_of(kib(64)));
  const StreamId stream = StreamId::next();
  void* cached = pool.allocate(kib(4), stream);
  void* held = pool.allocate(kib(16), stream);
  pool.deallocate(cached, stream);
  progress.pass_all(stream);
  upstream.refuse_calls(Fault::at(1));
  upstream.before_allocate = [&](Bytes) { pool.set_limits(kib(20), {}); };
  EXPECT_THROW((void)pool.allocate(kib(8), stream), OutOfMemory);
  EXPECT_LE(pool.statistics().reserved.peak, kib(20));
  pool.deallocate(held, stream);
}

}  // namespace
}  // namespace weir
