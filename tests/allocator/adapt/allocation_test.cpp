#include "allocator/adapt/allocation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "allocator/pool_fixture.hpp"
#include "support/log_capture.hpp"

namespace weir {
namespace {

static_assert(!std::is_copy_constructible_v<Allocation> && !std::is_copy_assignable_v<Allocation>);
static_assert(std::is_nothrow_move_constructible_v<Allocation>);
static_assert(std::is_nothrow_move_assignable_v<Allocation>);

struct AllocationTest : testing::PoolFixture {
  [[nodiscard]] Bytes allocated() const { return pool.statistics().allocated.current; }

  Pool pool{memory(), testing::options_of(kib(64))};
};

TEST_F(AllocationTest, FreesInTheOrderOfItsStreamWithoutWaiting) {
  void* data = nullptr;
  {
    const Allocation block{pool, kib(4), a, "scratch"};
    data = block.data();
    EXPECT_TRUE(block);
    EXPECT_EQ(block.size(), kib(4));
    EXPECT_EQ(block.stream(), a);
    EXPECT_EQ(allocated(), kib(4));
    EXPECT_THAT(pool.holders(1), ::testing::HasSubstr("scratch"));
    progress.enqueue(a);
  }
  EXPECT_EQ(allocated(), Bytes{});
  EXPECT_EQ(progress.waits().size(), 0U);
  EXPECT_NE(Allocation(pool, kib(4), b).data(), data) << "a has not passed it";
  EXPECT_EQ(Allocation(pool, kib(4), a).data(), data) << "the same stream reuses it at once";
}

TEST_F(AllocationTest, FreeWaitsForARecordedUse) {
  Allocation block{pool, kib(4), a};
  void* const data = block.data();
  block.record_use(b);
  block.reset();
  progress.pass_all(a);
  EXPECT_NE(Allocation(pool, kib(4), c).data(), data) << "b has not passed it";
  progress.pass_all(b);
  pool.poll();
  Allocation again{pool, kib(4), a};
  EXPECT_EQ(again.data(), data);
}

TEST_F(AllocationTest, AnotherStreamThatFreesItCountsAsAUse) {
  Allocation block{pool, kib(4), a};
  block.set_stream(b);
  EXPECT_EQ(block.stream(), b);
  block.reset();
  progress.pass_all(a);
  pool.poll();
  EXPECT_EQ(pool.statistics().awaiting.current, kib(4)) << "b is not done";
  progress.pass_all(b);
  pool.poll();
  EXPECT_EQ(pool.statistics().awaiting.current, Bytes{});
}

TEST_F(AllocationTest, MovesTakeTheBlockAlong) {
  Allocation first{pool, kib(4), a};
  void* const data = first.data();
  Allocation second{std::move(first)};
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): empty by contract
  EXPECT_EQ(second.data(), data);
  Allocation third{pool, kib(8), b};
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), kib(4));
  EXPECT_EQ(third.stream(), a);
  EXPECT_EQ(allocated(), kib(4)) << "its own block was freed";
  Allocation& itself = third;
  third = std::move(itself);
  EXPECT_EQ(third.data(), data);
}

TEST_F(AllocationTest, ReleasedBlockIsTheCallers) {
  Allocation block{pool, kib(4), a};
  void* const data = block.release();
  EXPECT_FALSE(block);
  EXPECT_EQ(block.size(), Bytes{});
  EXPECT_EQ(block.release(), nullptr);
  block.reset();
  EXPECT_EQ(allocated(), kib(4));
  pool.deallocate(data, a);
}

TEST_F(AllocationTest, OfNothingIsEmpty) {
  Allocation none;
  EXPECT_FALSE(none);
  none.record_use(a);
  none.reset();
  EXPECT_FALSE(Allocation(pool, {}, a));
  EXPECT_EQ(pool.statistics().allocated.peak, Bytes{});
}

TEST_F(AllocationTest, ThrowsIfThereIsNoMemory) {
  EXPECT_THROW((void)Allocation(pool, kib(65), a), OutOfMemory);
}

TEST_F(AllocationTest, ABlockThatThePoolDoesNotTakeBackIsReported) {
  const testing::LogCapture log;
  Allocation block{pool, kib(4), a};
  pool.deallocate(block.data(), a);
  block.reset();
  EXPECT_EQ(log.containing("a block of 4 KiB is not freed: deallocate").size(), 1U);
  EXPECT_FALSE(block);
}

}  // namespace
}  // namespace weir
