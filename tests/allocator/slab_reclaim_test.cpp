// What a slab gives back when the pool has run out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "allocator/pool_fixture.hpp"
#include "allocator/slab.hpp"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::expect_books;
using ::testing::IsEmpty;
using testing::options_of;

struct SlabReclaim : testing::PoolFixture {
  Pool pool{memory(), options_of(mib(1))};
  Slab slab{pool, progress};

  Slab::Slot take(StreamId stream) {
    Attempt attempt;
    Bytes grown;
    return slab.try_allocate({4}, stream, attempt, grown);
  }
};

TEST_F(SlabReclaim, GivesTheChunkBackThatWasKept) {
  slab.deallocate(take(a), {});
  slab.deallocate(take(b), {});
  ASSERT_EQ(pool.statistics().allocated.current, Slab::kChunk * 2);
  EXPECT_TRUE(slab.reclaim(false));
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{0});
  EXPECT_FALSE(slab.reclaim(true)) << "nothing is left";
  expect_books(pool, upstream);
  EXPECT_NE(take(a).pointer, nullptr);
}

TEST_F(SlabReclaim, LeavesAChunkWithASlotInUse) {
  const auto kept = take(a);
  slab.deallocate(take(a), {});
  EXPECT_FALSE(slab.reclaim(true));
  EXPECT_THAT(progress.waits(), IsEmpty());
  slab.deallocate(kept, {});
  EXPECT_TRUE(slab.reclaim(false));
}

TEST_F(SlabReclaim, WaitsForAUseOnlyWhenItMay) {
  slab.deallocate(take(a), std::array{b});
  const Point use{b, progress.tail(b)};
  EXPECT_FALSE(slab.reclaim(false));
  EXPECT_THAT(progress.waits(), IsEmpty());
  EXPECT_TRUE(slab.reclaim(true));
  EXPECT_THAT(progress.waits(), ElementsAre(use));
  EXPECT_TRUE(slab.reclaim(true));
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{0});
}

TEST_F(SlabReclaim, WaitsForWhatTheDeviceHasNotPassed) {
  slab.deallocate(take(a), std::array{b, c});
  progress.pass_all(b);
  const Point use{c, progress.tail(c)};
  EXPECT_TRUE(slab.reclaim(true));
  EXPECT_THAT(progress.waits(), ElementsAre(use)) << "a wait that is over helps nobody";
  EXPECT_TRUE(slab.reclaim(true));
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{0});
}

TEST_F(SlabReclaim, WaitsForTheUseThatWasSubmittedFirst) {
  std::vector<Slab::Slot> slots;
  std::vector<StreamId> streams;
  for (int i = 0; i < 6; ++i) {
    slots.push_back(take(a));
    streams.push_back(StreamId::next());
  }
  for (std::size_t i = 0; i < 6; ++i) slab.deallocate(slots.at(i), std::array{streams.at(i)});
  progress.pass_all(streams.at(0));
  progress.pass_all(streams.at(2));
  EXPECT_TRUE(slab.reclaim(true));
  EXPECT_THAT(progress.waits(), ElementsAre(Point{streams.at(1), 1}));
}

TEST_F(SlabReclaim, DoesNotWaitForWhatCannotBeRecorded) {
  const auto slot = take(a);
  progress.fail_records(testing::Fault::always());
  slab.deallocate(slot, std::array{b});
  EXPECT_FALSE(slab.reclaim(true));
  EXPECT_THAT(progress.waits(), IsEmpty());
}

}  // namespace
}  // namespace weir
