// The stages of a request one by one: what each does, and that it is not reached when an earlier
// one serves. Those that hold the device or the host up are in pool_waiting_test.cpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "allocator/error.hpp"
#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::expect_books;
using testing::options_of;

struct PoolRunningOut : testing::PoolFixture {
  Pool pool{memory(), options_of(kib(16))};

  /// `count` blocks of 4 KiB of `stream`.
  std::vector<void*> take(std::size_t count, StreamId stream) {
    std::vector<void*> taken(count);
    for (void*& pointer : taken) pointer = pool.allocate(kib(4), stream);
    return taken;
  }
  [[nodiscard]] std::vector<void*> returned() const {
    std::vector<void*> pointers;
    for (const auto& segment : upstream.returned()) pointers.push_back(segment.pointer);
    return pointers;
  }
};

TEST_F(PoolRunningOut, FirstItsOwnStreamsBlockWithoutAskingTheDevice) {
  const auto blocks = take(2, a);
  void* passed = pool.allocate(kib(4), b);
  pool.deallocate(blocks.at(0), a);
  pool.deallocate(passed, b);
  progress.pass_all(b);
  EXPECT_EQ(pool.allocate(kib(4), a), blocks.at(0));
  EXPECT_EQ(progress.queries(), 0U);
  EXPECT_EQ(pool.statistics().hits, 1U);
  EXPECT_EQ(pool.statistics().misses, 3U);
}

TEST_F(PoolRunningOut, ThenABlockThatTheDeviceHasPassedRatherThanGrowth) {
  void* pointer = pool.allocate(kib(4), a);
  pool.deallocate(pointer, a);
  progress.pass_all(a);
  EXPECT_EQ(pool.allocate(kib(4), b), pointer);
  EXPECT_EQ(upstream.calls(), 1U);
  EXPECT_EQ(pool.statistics().hits, 1U);
}

TEST_F(PoolRunningOut, ThenGrowthRatherThanReleaseOrHandover) {
  const auto blocks = take(2, a);
  pool.deallocate(blocks.at(0), a);
  progress.pass_all(a);
  pool.deallocate(blocks.at(1), a);
  void* grown = pool.allocate(kib(8), b);
  EXPECT_NE(grown, nullptr);
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.misses, 3U);
  EXPECT_EQ(s.releases, 0U);
  EXPECT_EQ(s.handovers, 0U);
  EXPECT_EQ(s.waits, 0U);
  expect_books(pool, upstream);
}

TEST_F(PoolRunningOut, GrowthThatTheBudgetForbidsNeverReachesTheUpstream) {
  (void)pool.allocate(kib(16), a);
  const auto calls = upstream.calls();
  EXPECT_THROW((void)pool.allocate({1}, a), OutOfMemory);
  EXPECT_EQ(upstream.calls(), calls);
}

TEST_F(PoolRunningOut, ThenReleaseOfTheLeastRecentlyFreedAndOnlyWhatIsNeeded) {
  const auto blocks = take(4, a);
  for (const std::size_t i : {2U, 0U, 3U, 1U}) pool.deallocate(blocks.at(i), a);
  progress.pass_all(a);
  EXPECT_NE(pool.allocate(kib(8), a), nullptr);
  EXPECT_THAT(returned(), ElementsAre(blocks.at(2), blocks.at(0)));
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.releases, 2U);
  EXPECT_EQ(s.cached.current, kib(8));
  EXPECT_EQ(s.handovers + s.waits, 0U);
  expect_books(pool, upstream);
}

TEST_F(PoolRunningOut, ReuseMakesABlockRecentAgain) {
  const auto blocks = take(4, a);
  for (void* block : blocks) pool.deallocate(block, a);
  void* last = pool.allocate(kib(4), a);
  ASSERT_EQ(last, blocks.at(3));
  pool.deallocate(last, a);
  progress.pass_all(a);
  (void)pool.allocate(kib(8), a);
  EXPECT_THAT(returned(), ElementsAre(blocks.at(0), blocks.at(1)));
}

TEST_F(PoolRunningOut, ReleaseLeavesWhatTheDeviceHasNotPassed) {
  const auto unpassed = take(2, b);
  const auto passed = take(2, a);
  for (void* block : unpassed) pool.deallocate(block, b);
  for (void* block : passed) pool.deallocate(block, a);
  progress.pass_all(a);
  EXPECT_NE(pool.allocate(kib(8), a), nullptr);
  EXPECT_THAT(returned(), ElementsAre(passed.at(0), passed.at(1)));
  EXPECT_EQ(pool.statistics().waits, 0U);
}

TEST_F(PoolRunningOut, ReleaseLeavesTheCacheAloneWhenThatWouldNotMakeRoom) {
  const auto blocks = take(4, a);
  pool.deallocate(blocks.at(0), a);
  progress.pass_all(a);
  EXPECT_THROW((void)pool.allocate(kib(8), a), OutOfMemory);
  EXPECT_THROW((void)pool.allocate(kib(32), a), OutOfMemory);
  EXPECT_EQ(pool.statistics().releases, 0U);
  EXPECT_EQ(pool.statistics().cached.current, kib(4));
  EXPECT_EQ(pool.allocate(kib(4), b), blocks.at(0));
}

TEST_F(PoolRunningOut, ReleaseComesBeforeHandover) {
  void* other_size = pool.allocate(kib(8), a);
  void* same_size = pool.allocate(kib(4), b);
  void* live = pool.allocate(kib(4), b);
  pool.deallocate(other_size, a);
  pool.deallocate(same_size, b);
  progress.pass_all(a);
  void* pointer = pool.allocate(kib(4), c);
  EXPECT_NE(pointer, same_size);
  EXPECT_THAT(returned(), ElementsAre(other_size));
  EXPECT_EQ(progress.dependencies().size(), 0U);
  pool.deallocate(live, b);
}

TEST_F(PoolRunningOut, AnUnpooledPoolReleasesWhatIsPassedBeforeItGrows) {
  Pool unpooled(memory(), options_of(kib(8), PoolKind::kUnpooled));
  void* pointer = unpooled.allocate(kib(8), a);
  unpooled.deallocate(pointer, a);
  EXPECT_EQ(unpooled.statistics().awaiting.current, kib(8));
  progress.pass_all(a);
  EXPECT_NE(unpooled.allocate(kib(8), b), nullptr);
  const Statistics s = unpooled.statistics();
  EXPECT_EQ(s.hits, 0U);
  EXPECT_EQ(s.misses, 2U);
  EXPECT_EQ(s.waits, 0U);
}

TEST_F(PoolRunningOut, AnUnpooledPoolWaitsForItsFrees) {
  Pool unpooled(memory(), options_of(kib(8), PoolKind::kUnpooled));
  void* pointer = unpooled.allocate(kib(8), a);
  unpooled.deallocate(pointer, a);
  EXPECT_NE(unpooled.allocate(kib(8), a), nullptr);
  EXPECT_EQ(unpooled.statistics().waits, 1U);
  EXPECT_EQ(unpooled.statistics().handovers, 0U);
}

}  // namespace
}  // namespace weir
