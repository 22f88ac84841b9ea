// A pool over an upstream that refuses although the budget has room, or fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::expect_statistics_agree;
using testing::Fault;
using testing::FaultyUpstream;
using testing::ManualProgress;
using testing::options_of;

struct PoolUpstreamFaults : testing::UnitFixture {
  PoolUpstreamFaults() {
    // As much was held before, so that cached memory does not count as unneeded.
    pool.deallocate(pool.allocate(unit * 16, a), a);
    progress.pass_all(a);
    (void)pool.trim();
  }
  Pool pool{memory(), options(16)};
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolUpstreamFaults, ::testing::ValuesIn(testing::kKeepingUnits),
                         testing::unit_name);

/// Cases with returned segments. Pages move instead: paged_test.cpp.
struct SegmentFaults : PoolUpstreamFaults {};

INSTANTIATE_TEST_SUITE_P(Kinds, SegmentFaults, ::testing::ValuesIn(testing::kSegmentUnits),
                         testing::unit_name);

TEST_P(PoolUpstreamFaults, ARefusalTakesWhatIsPassedFromUnderFreeBlocksAndAsksAgain) {
  const auto cached = take_apart(pool, 2, unit, a);
  for (void* block : cached) pool.deallocate(block, a);
  progress.pass_all(a);
  watch_returns();
  refuse_growth(Fault::at(1));
  EXPECT_NE(pool.allocate(unit * 2, b), nullptr);
  EXPECT_THAT(taken_from, ElementsAre(cached.at(0), cached.at(1)));
  EXPECT_EQ(pool.statistics().waits, 0U);
  expect_statistics_agree(pool, upstream);
}

TEST_P(SegmentFaults, ARefusalDoesNotStopWhileThereIsMoreToRelease) {
  // As on a driver whose free memory is in pieces: the first released ones are not neighbours.
  std::vector<void*> cached(4);
  for (void*& pointer : cached) pointer = pool.allocate(unit * 2, a);
  for (void* pointer : cached) pool.deallocate(pointer, a);
  progress.pass_all(a);
  watch_returns();
  upstream.refuse_calls(Fault::at(1, 2));
  EXPECT_NE(pool.allocate(unit * 4, b), nullptr);
  EXPECT_EQ(taken_from.size(), 4U);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolUpstreamFaults, ARefusalIsWaitedOutWhenTheDeviceWillFreeSomething) {
  void* awaiting = pool.allocate(unit * 4, a);
  pool.record_use(awaiting, b);
  pool.deallocate(awaiting, a);
  refuse_growth(Fault::at(1));
  EXPECT_NE(pool.allocate(unit * 2, a), nullptr);
  EXPECT_EQ(pool.statistics().waits, 1U);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolUpstreamFaults, ARefusedRequestAsksAgainForWhatATrimGaveBackMeanwhile) {
  pool.deallocate(take_apart(pool, 1, unit * 2, a).front(), a);
  progress.pass_all(a);
  // What another thread does between the upstream's refusal and the request's look at the cache.
  bool trimmed = false;
  before_growth([&](Bytes) {
    if (!std::exchange(trimmed, true)) (void)pool.trim();
  });
  refuse_growth(Fault::at(1));
  EXPECT_NE(pool.allocate(unit * 4, b), nullptr);
  EXPECT_EQ(pool.statistics().waits, 0U);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolUpstreamFaults, OneReturnLastsUntilAllThatATrimTookIsBack) {
  const auto cached = take_apart(pool, 3, unit, a);
  for (void* block : cached) pool.deallocate(block, a);
  progress.pass_all(a);
  std::vector<int> under_way;
  const auto look = [&] { under_way.push_back(upstream.returns()); };
  upstream.before_deallocate = [&](void*, Bytes) { look(); };
  upstream.after_deallocate = [&](Bytes) { look(); };
  upstream.pages()->before_unmap = [&](std::span<const Mapping>) { look(); };
  const int begun = upstream.returns_begun();
  EXPECT_EQ(pool.trim(), unit * 3);
  EXPECT_EQ(upstream.returns_begun(), begun + 1);
  EXPECT_EQ(upstream.returns(), 0);
  EXPECT_FALSE(under_way.empty());
  EXPECT_THAT(under_way, ::testing::Each(1));
  EXPECT_EQ(pool.trim(), Bytes{0});
  EXPECT_EQ(upstream.returns_begun(), begun + 1) << "nothing was on its way back";
  upstream.before_deallocate = nullptr;
  upstream.after_deallocate = nullptr;
  upstream.pages()->before_unmap = nullptr;
}

TEST_P(PoolUpstreamFaults, ALastingRefusalIsAFailureThatChangesNothing) {
  void* held = pool.allocate(unit * 4, a);
  refuse_growth(Fault::always());
  EXPECT_THROW((void)pool.allocate(unit * 2, a), OutOfMemory);
  expect_statistics_agree(pool, upstream);
  refuse_growth(Fault::never());
  EXPECT_NE(pool.allocate(unit * 2, a), nullptr);
  EXPECT_NE(pool.allocate(unit * 8, a), nullptr) << "no claim on the budget was left behind";
  pool.deallocate(held, a);
}

TEST_P(PoolUpstreamFaults, AThrowPassesThroughAndTheStatisticsStayRight) {
  void* held = pool.allocate(unit * 4, a);
  throw_growth(Fault::at(1));
  EXPECT_THROW((void)pool.allocate(unit * 8, a), std::runtime_error);
  expect_statistics_agree(pool, upstream);
  EXPECT_EQ(pool.statistics().allocated.current, unit * 4);
  EXPECT_NE(pool.allocate(unit * 8, a), nullptr) << "no claim on the budget was left behind";
  pool.deallocate(held, a);
}

TEST_P(SegmentFaults, AThrowAfterAReleaseLeavesTheStatisticsRightToo) {
  std::vector<void*> cached(2);
  for (void*& pointer : cached) pointer = pool.allocate(unit * 8, a);
  for (void* pointer : cached) pool.deallocate(pointer, a);
  progress.pass_all(a);
  upstream.throw_calls(Fault::at(1));
  EXPECT_THROW((void)pool.allocate(unit * 16, a), std::runtime_error);
  expect_statistics_agree(pool, upstream);
  EXPECT_EQ(pool.statistics().reserved.current, Bytes{0});
  EXPECT_NE(pool.allocate(unit * 16, a), nullptr);
}

TEST(RefusedPool, ARequestTakesAPieceThatIsFreedAfterItsLastLook) {
  SimulatedUpstream raw(gib(1), testing::kPage);
  FaultyUpstream upstream(raw);
  ManualProgress progress;
  Pool pool({upstream, progress}, options_of(mib(64), PoolKind::kBestFit));
  const StreamId a = StreamId::next();
  const StreamId b = StreamId::next();
  // As much was held before, so that nothing is released before the upstream is asked.
  pool.deallocate(pool.allocate(mib(64), a), a);
  progress.pass_all(a);
  (void)pool.trim();
  pool.deallocate(pool.allocate(mib(8), a), a);
  void* const half = pool.allocate(mib(4), a);
  void* const other_half = pool.allocate(mib(4), a);
  ASSERT_EQ(pool.statistics().reserved.current, mib(8));
  void* const small = pool.allocate(mib(2), a);
  pool.deallocate(small, a);
  progress.pass_all(a);
  upstream.refuse_calls(Fault::always());
  // Another thread frees a piece while the request releases the cache. Another piece of the same
  // segment is in use, so the segment cannot be released.
  upstream.before_deallocate = [&](void* pointer, Bytes) {
    if (pointer != small) return;
    pool.deallocate(other_half, a);
    progress.pass_all(a);
    pool.poll();
  };
  EXPECT_EQ(pool.allocate(mib(4), b), other_half);
  EXPECT_EQ(pool.statistics().waits, 0U);
  upstream.before_deallocate = nullptr;
  pool.deallocate(half, a);
  pool.deallocate(other_half, b);
}

TEST(Invariant1, ARefusalNeverMakesThePoolGrowPastALoweredBudget) {
  for (const auto& [kind, unit] : testing::kAllUnits) {
    SCOPED_TRACE(to_string(kind));
    SimulatedUpstream raw(gib(1), testing::kPage);
    FaultyUpstream upstream(raw);
    ManualProgress progress;
    Pool pool({upstream, progress}, options_of(unit * 16, kind));
    const StreamId stream = StreamId::next();
    void* cached = pool.allocate(unit, stream);
    void* held = pool.allocate(unit * 4, stream);
    pool.deallocate(cached, stream);
    progress.pass_all(stream);
    upstream.refuse_calls(Fault::at(1));
    upstream.pages()->refuse_create(Fault::at(1));
    const auto lower = [&, lowered = unit * 5] { pool.set_limits(lowered, {}); };
    upstream.before_allocate = [&](Bytes) { lower(); };
    upstream.pages()->before_create = [&](std::size_t) { lower(); };
    EXPECT_THROW((void)pool.allocate(unit * 2, stream), OutOfMemory);
    EXPECT_EQ(pool.budget(), unit * 5) << "the upstream was not asked";
    EXPECT_LE(pool.statistics().reserved.peak, unit * 5);
    pool.deallocate(held, stream);
  }
}

}  // namespace
}  // namespace weir
