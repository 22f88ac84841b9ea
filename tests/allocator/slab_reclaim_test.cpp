// Slabs that the slab allocator returns to the pool when the pool has no room left.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <vector>

#include "allocator/pool_fixture.hpp"
#include "allocator/slab_allocator.hpp"
#include "support/gate.hpp"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::expect_statistics_agree;
using testing::Gate;
using testing::give_others_a_chance;
using ::testing::IsEmpty;
using testing::options_of;

struct SlabReclaim : testing::PoolFixture {
  Pool pool{memory(), options_of(mib(1))};
  SlabAllocator slabs{pool, progress};

  SlabAllocator::Slot take(StreamId stream, Bytes bytes = {4}) {
    Attempt attempt;
    Bytes grown;
    return slabs.try_allocate(bytes, stream, attempt, grown);
  }
  std::vector<SlabAllocator::Slot> two_full_slabs() {
    std::vector<SlabAllocator::Slot> slots;
    while (slots.size() < 2 * SlabAllocator::kSlab.count / 1024) slots.push_back(take(a, {1024}));
    return slots;
  }
  /// As of now.
  bool reclaim(bool may_wait) { return reclaim(may_wait, slabs.given_back()); }
  bool reclaim(bool may_wait, std::uint64_t looked) {
    Attempt attempt;
    return slabs.reclaim(may_wait, looked, attempt);
  }
};

TEST_F(SlabReclaim, GivesTheSlabBackThatWasKept) {
  slabs.deallocate(take(a), {});
  slabs.deallocate(take(b), {});
  ASSERT_EQ(pool.statistics().allocated.current, SlabAllocator::kSlab * 2);
  EXPECT_TRUE(reclaim(false));
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{0});
  EXPECT_FALSE(reclaim(true)) << "nothing is left";
  expect_statistics_agree(pool, upstream);
  EXPECT_NE(take(a).pointer, nullptr);
}

TEST_F(SlabReclaim, LeavesASlabWithASlotInUse) {
  const auto kept = take(a);
  slabs.deallocate(take(a), {});
  EXPECT_FALSE(reclaim(true));
  EXPECT_THAT(progress.waits(), IsEmpty());
  slabs.deallocate(kept, {});
  EXPECT_TRUE(reclaim(false));
}

TEST_F(SlabReclaim, WaitsForAUseOnlyWhenItMay) {
  slabs.deallocate(take(a), {});
  ASSERT_TRUE(reclaim(false));
  ASSERT_NE(slabs.given_back(), 0U) << "that something came back before is no leave to wait";
  slabs.deallocate(take(a), std::array{b});
  const Point use{b, progress.tail(b)};
  EXPECT_FALSE(reclaim(false));
  EXPECT_THAT(progress.waits(), IsEmpty());
  EXPECT_TRUE(reclaim(true));
  EXPECT_THAT(progress.waits(), ElementsAre(use));
  EXPECT_TRUE(reclaim(true));
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{0});
}

TEST_F(SlabReclaim, CountsAWaitAsOneOfTheAttempt) {
  slabs.deallocate(take(a), {});
  Attempt attempt;
  ASSERT_TRUE(slabs.reclaim(true, slabs.given_back(), attempt));
  EXPECT_EQ(attempt.waits, 0U) << "the slab that was kept";
  slabs.deallocate(take(a), std::array{b});
  ASSERT_TRUE(slabs.reclaim(true, slabs.given_back(), attempt));
  EXPECT_EQ(attempt.waits, 1U);
}

TEST_F(SlabReclaim, WaitsForWhatTheDeviceHasNotPassed) {
  slabs.deallocate(take(a), std::array{b, c});
  progress.pass_all(b);
  const Point use{c, progress.tail(c)};
  EXPECT_TRUE(reclaim(true));
  EXPECT_THAT(progress.waits(), ElementsAre(use)) << "a wait that is over helps nobody";
  EXPECT_TRUE(reclaim(true));
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{0});
}

TEST_F(SlabReclaim, WaitsForTheUseThatWasSubmittedFirst) {
  std::vector<SlabAllocator::Slot> slots;
  std::vector<StreamId> streams;
  for (int i = 0; i < 6; ++i) {
    slots.push_back(take(a));
    streams.push_back(StreamId::next());
  }
  for (std::size_t i = 0; i < 6; ++i) slabs.deallocate(slots.at(i), std::array{streams.at(i)});
  progress.pass_all(streams.at(0));
  progress.pass_all(streams.at(2));
  EXPECT_TRUE(reclaim(true));
  EXPECT_THAT(progress.waits(), ElementsAre(Point{streams.at(1), 1}));
}

TEST_F(SlabReclaim, SeesASlotThatAnotherThreadsPollLooksAt) {
  slabs.deallocate(take(a), std::array{b});
  Gate gate;
  std::atomic<bool> held = false;
  progress.after_query = [&](StreamId) {
    if (!held.exchange(true)) gate.pass();
  };
  // Of another size, so it checks for returned slots.
  auto polling = std::async(std::launch::async, [&] { (void)take(a, {1024}); });
  gate.await_arrival();
  EXPECT_TRUE(reclaim(true));
  gate.open();
  polling.get();
  progress.after_query = nullptr;
}

TEST_F(SlabReclaim, AwaitsASlabThatAnotherThreadIsGivingBack) {
  auto slots = two_full_slabs();
  const auto last = slots.back();
  slots.pop_back();
  for (const auto& slot : slots) slabs.deallocate(slot, {});
  Gate gate;
  std::atomic<bool> held = false;
  progress.after_record = [&](Point) {
    if (!held.exchange(true)) gate.pass();
  };
  auto freeing = std::async(std::launch::async, [&] { slabs.deallocate(last, {}); });
  gate.await_arrival();
  EXPECT_TRUE(reclaim(false)) << "the slab that was kept";
  const std::uint64_t looked = slabs.given_back();
  Gate called;
  called.open();
  auto reclaiming = std::async(std::launch::async, [&] {
    called.pass();
    return reclaim(false, looked);
  });
  called.await_arrival();
  give_others_a_chance();  // so that it falls asleep: a slab that then comes back must wake it
  gate.open();
  freeing.get();
  EXPECT_TRUE(reclaiming.get());
  progress.after_record = nullptr;
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{0});
}

TEST_F(SlabReclaim, SaysSoWhenASlabWasGivenBackSinceTheCallersLook) {
  auto slots = two_full_slabs();
  const std::uint64_t looked = slabs.given_back();
  for (const auto& slot : slots) slabs.deallocate(slot, {});
  EXPECT_EQ(slabs.given_back(), looked + 1);
  EXPECT_TRUE(reclaim(false)) << "the slab that was kept";
  EXPECT_TRUE(reclaim(false, looked));
  EXPECT_FALSE(reclaim(false, slabs.given_back()));
}

TEST_F(SlabReclaim, DoesNotWaitForWhatCannotBeRecorded) {
  const auto slot = take(a);
  progress.fail_records(testing::Fault::always());
  slabs.deallocate(slot, std::array{b});
  EXPECT_FALSE(reclaim(true));
  EXPECT_THAT(progress.waits(), IsEmpty());
}

}  // namespace
}  // namespace weir
