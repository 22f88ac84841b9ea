// The stages of a request one by one: what each does, and that it is not reached if an earlier one
// serves. Stages that block the device or the host are in pool_waiting_test.cpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::expect_statistics_agree;
using ::testing::IsEmpty;
using testing::options_of;

struct PoolRunningOut : testing::UnitFixture {
  Pool pool{memory(), options(8)};
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolRunningOut, ::testing::ValuesIn(testing::kKeepingUnits),
                         testing::unit_name);

TEST_P(PoolRunningOut, FirstItsOwnStreamsBlockWithoutAskingTheDevice) {
  void* own = pool.allocate(unit, a);
  (void)pool.allocate(unit, a);
  void* passed = pool.allocate(unit, b);
  pool.deallocate(own, a);
  pool.deallocate(passed, b);
  progress.pass_all(b);
  EXPECT_EQ(pool.allocate(unit, a), own);
  EXPECT_EQ(progress.queries(), 0U);
  EXPECT_EQ(pool.statistics().hits, 1U);
  EXPECT_EQ(pool.statistics().misses, 3U);
}

TEST_P(PoolRunningOut, ThenABlockThatTheDeviceHasPassedRatherThanGrowth) {
  void* pointer = pool.allocate(unit, a);
  pool.deallocate(pointer, a);
  progress.pass_all(a);
  const auto before = growths();
  EXPECT_EQ(pool.allocate(unit, b), pointer);
  EXPECT_EQ(growths(), before);
  EXPECT_EQ(pool.statistics().hits, 1U);
}

TEST_P(PoolRunningOut, ThenGrowthRatherThanReleaseOrHandover) {
  // As much was held before, so that cached memory does not count as unneeded.
  pool.deallocate(pool.allocate(unit * 8, a), a);
  progress.pass_all(a);
  (void)pool.trim();
  const auto releases = pool.statistics().releases;
  void* passed = pool.allocate(unit, a);
  void* unpassed = pool.allocate(unit, a);
  pool.deallocate(passed, a);
  progress.pass_all(a);
  pool.deallocate(unpassed, a);
  watch_returns();
  EXPECT_NE(pool.allocate(unit * 2, b), nullptr);
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.misses, 4U);
  EXPECT_THAT(taken_from, IsEmpty());
  EXPECT_EQ(s.releases, releases);
  EXPECT_EQ(s.handovers, 0U);
  EXPECT_EQ(s.waits, 0U);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolRunningOut, GrowthThatTheBudgetForbidsNeverReachesTheUpstream) {
  (void)pool.allocate(unit * 8, a);
  const auto before = growths();
  EXPECT_THROW((void)pool.allocate({1}, a), OutOfMemory);
  EXPECT_EQ(growths(), before);
}

TEST_P(PoolRunningOut, ThenReleaseOfTheLeastRecentlyFreedAndOnlyWhatIsNeeded) {
  const auto blocks = take_apart(pool, 4, unit, a);
  for (const std::size_t i : {2U, 0U, 3U, 1U}) pool.deallocate(blocks.at(i), a);
  progress.pass_all(a);
  watch_returns();
  EXPECT_NE(pool.allocate(unit * 2, a), nullptr);
  EXPECT_THAT(taken_from, ElementsAre(blocks.at(2), blocks.at(0)));
  const Statistics s = pool.statistics();
  EXPECT_EQ(is_paged() ? s.unmapped_pages : s.releases, 2U);
  EXPECT_EQ(s.cached.current, unit * 2);
  EXPECT_EQ(s.handovers + s.waits, 0U);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolRunningOut, ReuseMakesABlockRecentAgain) {
  auto blocks = take_apart(pool, 4, unit, a);
  for (void* block : blocks) pool.deallocate(block, a);
  void* reused = pool.allocate(unit, a);
  ASSERT_EQ(std::erase(blocks, reused), 1U);
  pool.deallocate(reused, a);
  progress.pass_all(a);
  watch_returns();
  (void)pool.allocate(unit * 2, a);
  EXPECT_THAT(taken_from, ElementsAre(blocks.at(0), blocks.at(1)));
}

TEST_P(PoolRunningOut, ReleaseLeavesWhatTheDeviceHasNotPassed) {
  const auto unpassed = take_apart(pool, 2, unit, b);
  const auto passed = take_apart(pool, 2, unit, a);
  for (void* block : unpassed) pool.deallocate(block, b);
  for (void* block : passed) pool.deallocate(block, a);
  progress.pass_all(a);
  watch_returns();
  EXPECT_NE(pool.allocate(unit * 2, a), nullptr);
  EXPECT_THAT(taken_from, ElementsAre(passed.at(0), passed.at(1)));
  EXPECT_EQ(pool.statistics().waits, 0U);
}

TEST_P(PoolRunningOut, ReleaseLeavesTheCacheAloneWhenThatWouldNotMakeRoom) {
  const auto blocks = take_apart(pool, 4, unit, a);
  pool.deallocate(blocks.at(0), a);
  progress.pass_all(a);
  watch_returns();
  EXPECT_THROW((void)pool.allocate(unit * 2, a), OutOfMemory);
  EXPECT_THROW((void)pool.allocate(unit * 16, a), OutOfMemory);
  EXPECT_THAT(taken_from, IsEmpty());
  EXPECT_EQ(pool.statistics().releases, 0U);
  EXPECT_EQ(pool.statistics().cached.current, unit);
  EXPECT_EQ(pool.allocate(unit, b), blocks.at(0));
}

TEST_P(PoolRunningOut, ReleaseComesBeforeHandover) {
  const auto others = take_apart(pool, 2, unit, a);
  void* fitting = pool.allocate(unit * 2, b);
  (void)pool.allocate(unit * 2, b);
  for (void* block : others) pool.deallocate(block, a);
  pool.deallocate(fitting, b);
  progress.pass_all(a);
  watch_returns();
  EXPECT_NE(pool.allocate(unit * 2, c), fitting);
  EXPECT_THAT(taken_from, ElementsAre(others.at(0), others.at(1)));
  EXPECT_EQ(progress.dependencies().size(), 0U);
}

struct UnpooledRunningOut : testing::PoolFixture {
  Pool pool{memory(), options_of(kib(8), PoolKind::kUnpooled)};
};

TEST_F(UnpooledRunningOut, ReleasesWhatIsPassedBeforeItGrows) {
  void* pointer = pool.allocate(kib(8), a);
  pool.deallocate(pointer, a);
  EXPECT_EQ(pool.statistics().awaiting.current, kib(8));
  progress.pass_all(a);
  EXPECT_NE(pool.allocate(kib(8), b), nullptr);
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.hits, 0U);
  EXPECT_EQ(s.misses, 2U);
  EXPECT_EQ(s.waits, 0U);
}

TEST_F(UnpooledRunningOut, WaitsForItsFrees) {
  void* pointer = pool.allocate(kib(8), a);
  pool.deallocate(pointer, a);
  EXPECT_NE(pool.allocate(kib(8), a), nullptr);
  EXPECT_EQ(pool.statistics().waits, 1U);
  EXPECT_EQ(pool.statistics().handovers, 0U);
}

}  // namespace
}  // namespace weir
