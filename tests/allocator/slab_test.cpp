#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/pool_fixture.hpp"
#include "allocator/slab_allocator.hpp"

namespace weir {
namespace {

using testing::expect_statistics_agree;
using testing::Fault;
using testing::options_of;

struct SlabTest : testing::PoolFixture {
  Pool pool{memory(), options_of(mib(64))};
  SlabAllocator slabs{pool, progress};

  SlabAllocator::Slot take(Bytes bytes, StreamId stream) {
    Attempt attempt;
    Bytes grown;
    return slabs.try_allocate(bytes, stream, attempt, grown);
  }
  void free(SlabAllocator::Slot slot, std::vector<StreamId> others = {}) {
    slabs.deallocate(slot, others);
  }
  /// Takes slots until the pool must give one slab more. Returns all of them.
  std::vector<SlabAllocator::Slot> fill(Bytes bytes, StreamId stream) {
    std::vector<SlabAllocator::Slot> slots;
    Attempt attempt;
    Bytes grown;
    for (std::uint64_t i = 0; i < SlabAllocator::kSlab.count / bytes.count; ++i) {
      slots.push_back(slabs.try_allocate(bytes, stream, attempt, grown));
    }
    return slots;
  }
};

TEST_F(SlabTest, AHundredThousandScalarsStayUnder8MiB) {
  std::vector<SlabAllocator::Slot> slots;
  std::set<std::uintptr_t> addresses;
  for (int i = 0; i < 100'000; ++i) {
    slots.push_back(take({4}, a));
    const auto address = reinterpret_cast<std::uintptr_t>(slots.back().pointer);
    ASSERT_EQ(address % 64, 0U);
    addresses.insert(address / 64);
  }
  EXPECT_EQ(addresses.size(), slots.size()) << "no slot is given twice";
  EXPECT_LT(pool.statistics().reserved.current, mib(8));
  for (const SlabAllocator::Slot slot : slots) free(slot);
  EXPECT_EQ(pool.statistics().allocated.current, SlabAllocator::kSlab) << "one slab is kept";
  progress.pass_all(a);
  pool.trim();
  EXPECT_EQ(pool.statistics().reserved.current, SlabAllocator::kSlab);
  expect_statistics_agree(pool, upstream);
}

TEST_F(SlabTest, EachSizeHasRoomForTheRequest) {
  for (const std::uint64_t size : {1U, 64U, 65U, 256U, 257U, 1024U}) {
    const auto first = take({size}, a);
    const auto second = take({size}, a);
    const auto distance =
        static_cast<std::byte*>(second.pointer) - static_cast<std::byte*>(first.pointer);
    EXPECT_GE(static_cast<std::uint64_t>(distance < 0 ? -distance : distance), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.pointer) % 64, 0U);
  }
}

TEST_F(SlabTest, RefusesWhatNoSlotHolds) {
  EXPECT_THROW((void)take({0}, a), UsageError);
  EXPECT_THROW((void)take({1025}, a), UsageError);
}

TEST_F(SlabTest, ASlotIsReusedOnItsOwnStreamAtOnce) {
  const auto slot = take({4}, a);
  free(slot);
  EXPECT_EQ(take({4}, a).pointer, slot.pointer);
  EXPECT_EQ(progress.records(), 0U);
}

TEST_F(SlabTest, StreamsAndSizesShareNoSlab) {
  const auto one = take({4}, a);
  EXPECT_NE(take({4}, b).slab, one.slab);
  EXPECT_NE(take({100}, a).slab, one.slab);
  EXPECT_EQ(take({64}, a).slab, one.slab);
}

TEST_F(SlabTest, TellsWhatThePoolGave) {
  Attempt attempt;
  Bytes grown;
  (void)slabs.try_allocate({4}, a, attempt, grown);
  EXPECT_EQ(grown, kib(64));
  (void)slabs.try_allocate({4}, a, attempt, grown);
  EXPECT_EQ(grown, Bytes{0});
}

TEST_F(SlabTest, ASlotUsedOnASecondStreamIsNotReusedBeforeThatStreamsPoint) {
  auto slots = fill({1024}, a);
  free(slots.back(), {b});
  EXPECT_NE(take({1024}, a).slab, slots.back().slab) << "a new slab";
  progress.pass_all(a);
  slots = fill({1024}, a);  // the rest of the new slab, and the first slot of a third
  for (const auto& slot : slots) EXPECT_NE(slot.slab, nullptr);
  progress.pass_all(b);
  const auto used = pool.statistics().allocated.current;
  std::set<void*> next;
  for (const auto& slot : fill({1024}, a)) next.insert(slot.pointer);
  EXPECT_EQ(pool.statistics().allocated.current, used) << "64 slots were free without a new slab";
}

TEST_F(SlabTest, TheSlotOfASecondStreamComesBackWhenItHasPassed) {
  const auto slots = fill({1024}, a);
  free(slots.at(7), {b, c});
  progress.pass_all(b);
  const auto before = pool.statistics().allocated.current;
  progress.pass_all(c);
  EXPECT_EQ(take({1024}, a).pointer, slots.at(7).pointer);
  EXPECT_EQ(pool.statistics().allocated.current, before);
}

TEST_F(SlabTest, PointsAreRecordedOnEveryStreamWhenTheSlotIsFreed) {
  const auto slots = fill({1024}, a);
  progress.enqueue(b);
  progress.enqueue(c);
  free(slots.at(0), {b, c});
  EXPECT_EQ(progress.records(), 2U);
  // Later work must not hold the slot back.
  const std::array points{Point{b, progress.tail(b)}, Point{c, progress.tail(c)}};
  progress.enqueue(b);
  progress.enqueue(c);
  for (const Point point : points) progress.pass(point);
  EXPECT_EQ(take({1024}, a).pointer, slots.at(0).pointer);
}

TEST_F(SlabTest, AUseThatCannotBeRecordedKeepsTheSlotBack) {
  const auto slots = fill({1024}, a);
  progress.fail_records(Fault::at(1, 2));
  free(slots.at(0), {b});
  progress.pass_all(b);
  const auto other = take({1024}, a);  // tries to record again, in vain
  EXPECT_NE(other.pointer, slots.at(0).pointer);
  for (int i = 1; i < 64; ++i) (void)take({1024}, a);
  const auto still = take({1024}, a);  // recorded by now, not passed
  EXPECT_NE(still.pointer, slots.at(0).pointer);
  progress.pass_all(b);
  bool found = false;
  for (int i = 0; i < 64 && !found; ++i) found = take({1024}, a).pointer == slots.at(0).pointer;
  EXPECT_TRUE(found);
}

TEST_F(SlabTest, APointRecordedLateIsNotForWhatWasFreedMeanwhile) {
  const auto slots = fill({1024}, a);
  progress.fail_records(Fault::at(1));
  free(slots.at(0), {b});
  // While its point is recorded after all, another slot is freed behind later work, and its own
  // point fails as well.
  Point late{};
  Point later{};
  progress.after_record = [&](Point point) {
    if (later.sequence != 0) return;
    late = point;
    later = progress.enqueue(b);
    progress.fail_records(Fault::at(1));
    free(slots.at(1), {b});
  };
  (void)take({1024}, a);  // no slot is free, so the slab polls
  progress.after_record = nullptr;
  ASSERT_LT(late.sequence, later.sequence);
  progress.pass(late);
  std::set<const void*> given;
  for (const auto& slot : fill({1024}, a)) given.insert(slot.pointer);
  EXPECT_TRUE(given.contains(slots.at(0).pointer));
  EXPECT_FALSE(given.contains(slots.at(1).pointer)) << "the later work still uses it";
}

TEST_F(SlabTest, ASlotIsBookedThoughTheDeviceCannotSayHowFarItIs) {
  const auto slots = fill({1024}, a);
  progress.after_query = [](StreamId) { throw std::runtime_error("the device is lost"); };
  EXPECT_NO_THROW(free(slots.at(0), {b}));
  progress.after_query = nullptr;
  progress.pass_all(b);
  EXPECT_EQ(take({1024}, a).pointer, slots.at(0).pointer);
}

TEST_F(SlabTest, RefusesMoreStreamsThanItKeeps) {
  const auto slot = take({4}, a);
  std::vector<StreamId> streams;
  for (std::size_t i = 0; i < SlabAllocator::kMostOtherStreams; ++i)
    streams.push_back(StreamId::next());
  streams.push_back(StreamId::next());
  EXPECT_THROW(free(slot, streams), UsageError);
  streams.pop_back();
  EXPECT_NO_THROW(free(slot, streams));
}

TEST_F(SlabTest, SlabsReturnToThePoolButForOne) {
  const auto first = fill({1024}, a);
  const auto second = fill({1024}, a);
  EXPECT_EQ(pool.statistics().allocated.current, SlabAllocator::kSlab * 2);
  for (const auto& slot : first) free(slot);
  EXPECT_EQ(pool.statistics().allocated.current, SlabAllocator::kSlab * 2)
      << "the only one with room";
  for (const auto& slot : second) free(slot);
  EXPECT_EQ(pool.statistics().allocated.current, SlabAllocator::kSlab);
  for (const auto& slot : fill({1024}, a)) free(slot);
  EXPECT_EQ(pool.statistics().misses, 2U);
}

TEST_F(SlabTest, GivesEverySlabBackWhenItEndsAndSecondStreamsHoldThemUntilTheyPass) {
  {
    SlabAllocator inner(pool, progress);
    Attempt attempt;
    Bytes grown;
    const auto slot = inner.try_allocate({4}, a, attempt, grown);
    (void)inner.try_allocate({4}, b, attempt, grown);
    inner.deallocate(slot, std::array{b});
  }
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.allocated.current, Bytes{0});
  EXPECT_EQ(s.awaiting.current, SlabAllocator::kSlab);
  EXPECT_EQ(s.cached.current, SlabAllocator::kSlab);
}

TEST_F(SlabTest, GivesNullAndSaysWhyWhenThePoolIsExhausted) {
  pool.set_limits(kib(64), {});
  void* all = pool.allocate(kib(64), b);
  Attempt attempt;
  Bytes grown{1};
  const auto slot = slabs.try_allocate({4}, a, attempt, grown);
  EXPECT_EQ(slot.pointer, nullptr);
  EXPECT_EQ(grown, Bytes{0});
  EXPECT_EQ(attempt.asked, SlabAllocator::kSlab);
  EXPECT_EQ(attempt.label, "small tensors");
  pool.deallocate(all, b);
  EXPECT_NE(take({4}, a).pointer, nullptr);
}

TEST_F(SlabTest, ServesManyThreads) {
  const auto work = [this] {
    const StreamId own = StreamId::next();
    std::vector<SlabAllocator::Slot> held;
    Attempt attempt;
    Bytes grown;
    for (int i = 0; i < 3000; ++i) {
      held.push_back(slabs.try_allocate({4}, own, attempt, grown));
      if (held.size() > 100) {
        // Each slot is held by one thread at a time: nobody else has written there.
        slabs.deallocate(held.at(held.size() / 2), i % 5 == 0 ? std::span<const StreamId>(&b, 1)
                                                              : std::span<const StreamId>());
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(held.size() / 2));
      }
      if (i % 100 == 0) progress.pass_all(b);
    }
    std::set<void*> distinct;
    for (const auto& slot : held) distinct.insert(slot.pointer);
    EXPECT_EQ(distinct.size(), held.size());
    for (const auto& slot : held) slabs.deallocate(slot, {});
  };
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  expect_statistics_agree(pool, upstream);
}

}  // namespace
}  // namespace weir
