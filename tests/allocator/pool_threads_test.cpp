// Requests that meet another one half way. Gates hold the threads at the seams, so each meeting is
// certain.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/pool_fixture.hpp"
#include "support/gate.hpp"
#include "support/sanitized.hpp"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::expect_statistics_agree;
using testing::Fault;
using testing::Gate;
using testing::give_others_a_chance;
using ::testing::IsEmpty;
using testing::options_of;

struct PoolThreads : testing::UnitFixture {
  Gate gate;  // before the pool, whose end still calls the seams that lead here
  Pool pool{memory(), options(4)};

  /// Starts a request on its own thread; null if it runs out of memory.
  std::future<void*> request(Bytes size, StreamId stream) {
    auto started = std::make_shared<std::promise<void>>();
    auto result = std::async(std::launch::async, [this, size, stream, started]() -> void* {
      started->set_value();
      Attempt attempt;
      return pool.try_allocate(size, stream, {}, attempt);
    });
    started->get_future().wait();
    return result;
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolThreads, ::testing::ValuesIn(testing::kKeepingUnits),
                         testing::unit_name);

TEST_P(PoolThreads, ARequestAwaitsAGrowthThatIsInItsWayAndThenGrowsItself) {
  void* other = pool.allocate(unit, a);
  pool.deallocate(other, a);  // could be handed over if there were no growth to wait for
  before_growth([&](Bytes size) {
    if (size == unit * 2) gate.pass();
  });
  void* live = pool.allocate(unit, c);
  pool.set_limits(unit * 4, {.wait = false});
  refuse_growth(Fault::at(1));
  auto growing = request(unit * 2, b);
  gate.await_arrival();
  auto waiting = request(unit, b);
  give_others_a_chance();
  gate.open();
  EXPECT_EQ(growing.get(), nullptr) << "refused";
  EXPECT_NE(waiting.get(), other);
  EXPECT_EQ(pool.statistics().handovers, 0U);
  EXPECT_THAT(progress.dependencies(), IsEmpty());
  expect_statistics_agree(pool, upstream);
  pool.deallocate(live, c);
}

TEST_P(PoolThreads, ARequestThatMeetsAGrowthWhichSucceedsGoesOnToTheNextStage) {
  before_growth([&](Bytes) { gate.pass(); });
  auto growing = request(unit * 4, a);
  gate.await_arrival();
  auto waiting = request(unit * 2, b);
  give_others_a_chance();
  gate.open();
  EXPECT_NE(growing.get(), nullptr);
  EXPECT_EQ(waiting.get(), nullptr);
  EXPECT_EQ(growths(), 1U);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolThreads, ARequestAwaitsAFreeThatIsUnderWay) {
  void* pointer = pool.allocate(unit * 4, a);
  progress.after_record = [&](Point) { gate.pass(); };
  std::thread freeing([&] { pool.deallocate(pointer, a); });
  gate.await_arrival();
  auto waiting = request(unit * 4, a);
  give_others_a_chance();
  gate.open();
  freeing.join();
  EXPECT_EQ(waiting.get(), pointer);
}

TEST_P(PoolThreads, ARequestAwaitsTheFreeOnAnotherStreamThatIsUnderWay) {
  void* pointer = pool.allocate(unit * 4, a);
  progress.after_record = [&](Point point) {
    if (point.stream == a) gate.pass();  // the second of two, within the free
  };
  std::thread freeing([&] { pool.deallocate(pointer, b); });
  gate.await_arrival();
  auto waiting = request(unit * 4, c);
  give_others_a_chance();
  progress.pass_all(a);
  progress.pass_all(b);
  gate.open();
  freeing.join();
  EXPECT_EQ(waiting.get(), pointer);
}

/// A point costs calls of the driver sooner or later, and pools are asked for memory of others.
TEST_P(PoolThreads, AFreeOfWhatIsNotAllocatedRecordsNothingAndKeepsNoRequestWaiting) {
  void* pointer = pool.allocate(unit * 4, a);
  progress.after_record = [](Point) { ADD_FAILURE(); };
  EXPECT_FALSE(pool.try_deallocate(&pointer, b));
  progress.after_record = nullptr;
  EXPECT_EQ(request(unit * 4, b).get(), nullptr);
  pool.deallocate(pointer, a);
  EXPECT_FALSE(pool.try_deallocate(pointer, a));
  pool.set_limits(unit * 4, {.wait = false});
  EXPECT_EQ(request(unit * 8, b).get(), nullptr);
  expect_statistics_agree(pool, upstream);
}

TEST_P(PoolThreads, ARequestAwaitsATrimThatIsUnderWay) {
  void* pointer = pool.allocate(unit * 4, a);
  pool.deallocate(pointer, a);
  progress.pass_all(a);
  upstream.after_deallocate = [&](Bytes) { gate.pass(); };
  upstream.pages()->before_unmap = [&](std::span<const Mapping>) { gate.pass(); };
  std::thread trimming([&] { EXPECT_EQ(pool.trim(), unit * 4); });
  gate.await_arrival();
  auto waiting = request(unit * 2, b);
  give_others_a_chance();
  gate.open();
  trimming.join();
  EXPECT_NE(waiting.get(), nullptr);
  EXPECT_EQ(pool.statistics().waits, 0U);
  expect_statistics_agree(pool, upstream);
}

/// Requests that meet a free between two stages, where no seam is: left to chance, many times.
struct BetweenTwoStages : testing::UnitFixture {};

INSTANTIATE_TEST_SUITE_P(Kinds, BetweenTwoStages, ::testing::ValuesIn(testing::kAllUnits),
                         testing::unit_name);

TEST_P(BetweenTwoStages, WhatAnotherThreadMakesFreeIsNotMissed) {
  constexpr int kRounds = WEIR_TEST_SANITIZED != 0 ? 3'000 : 15'000;
  Pool small(memory(), options(4));
  std::atomic<int> asked = -1;
  std::atomic<int> passed = -1;
  std::thread passing([&] {
    for (int round = 0; round < kRounds; ++round) {
      while (asked < round) std::this_thread::yield();
      for (int i = round % 64; i > 0; --i) (void)progress.tail(a);  // a little later each time
      progress.pass_all(a);
      if (GetParam().kind == PoolKind::kUnpooled || round % 2 == 0) {
        (void)small.trim();
      } else {
        small.poll();
      }
      passed = round;
    }
  });
  int missed = 0;
  for (int round = 0; round < kRounds; ++round) {
    small.deallocate(small.allocate(unit * 2, a), a);
    asked = round;
    Attempt attempt;
    void* all = small.try_allocate(unit * 4, b, {}, attempt);
    while (passed < round) std::this_thread::yield();
    missed += all == nullptr ? 1 : 0;
    small.deallocate(all, b);
    progress.pass_all(b);
    (void)small.trim();
  }
  passing.join();
  EXPECT_EQ(missed, 0) << "nobody held anything";
}

/// Has one address, and hands it out again at once after it is returned, as drivers and malloc do.
class OneAddressUpstream final : public Upstream {
 public:
  explicit OneAddressUpstream(Bytes capacity) : capacity_(capacity) {}
  [[nodiscard]] void* allocate(Bytes) override { return std::exchange(free_, nullptr); }
  void deallocate(void* pointer, Bytes) noexcept override { free_ = pointer; }
  [[nodiscard]] Bytes capacity() const override { return capacity_; }

 private:
  const Bytes capacity_;
  int memory_ = 0;
  void* free_ = &memory_;
};

struct OneAddress : testing::UnitFixture {};

INSTANTIATE_TEST_SUITE_P(Kinds, OneAddress, ::testing::ValuesIn(testing::kSegmentUnits),
                         testing::unit_name);

TEST_P(OneAddress, ThatTheUpstreamGivesAgainDuringAReleaseIsANewBlock) {
  OneAddressUpstream one(unit * 4);
  testing::FaultyUpstream watched(one);
  void* again = nullptr;  // the pool's end asks for it
  Pool small({watched, progress}, options(4));
  void* before = small.allocate(unit, a);
  small.deallocate(before, a);
  progress.pass_all(a);
  watched.after_deallocate = [&](Bytes) {
    if (again != nullptr) return;
    std::thread([&] { again = small.allocate(unit * 2, b); }).join();
  };
  EXPECT_EQ(small.trim(), unit);
  ASSERT_EQ(again, before);
  EXPECT_EQ(small.statistics().allocated.current, unit * 2);
  expect_statistics_agree(small, watched);
  EXPECT_EQ(small.deallocate(again, b), Freed::kCached);
  EXPECT_EQ(small.allocate(unit * 2, b), again);
}

TEST_P(PoolThreads, AFreeIsNotHeldUpByARequestThatWaits) {
  void* awaiting = pool.allocate(unit * 2, a);
  void* live = pool.allocate(unit * 2, c);
  pool.record_use(awaiting, b);
  pool.deallocate(awaiting, a);
  progress.before_wait = [&](Point) { gate.pass(); };
  auto waiting = request(unit * 2, a);
  gate.await_arrival();
  pool.deallocate(live, c);
  pool.poll();
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{0});
  gate.open();
  EXPECT_NE(waiting.get(), nullptr);
}

TEST_P(PoolThreads, WhatIsFreedServesTheFirstInLine) {
  void* pointer = pool.allocate(unit * 4, a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  const Point use{b, progress.tail(b)};
  progress.before_wait = [&](Point) { gate.pass(); };
  auto first = request(unit * 4, a);
  gate.await_arrival();
  // The device has passed, and the first in line does not know yet: a chance to pass it.
  progress.pass(use);
  auto second = request(unit * 4, a);
  while (pool.statistics().waits < 2) std::this_thread::yield();  // it counts in the line, too
  EXPECT_EQ(pool.statistics().hits, 0U);
  gate.open();
  EXPECT_EQ(first.get(), pointer);
  EXPECT_EQ(second.get(), nullptr);
  EXPECT_EQ(pool.statistics().hits, 1U);
}

TEST_P(PoolThreads, TheLineMovesOnWhenItsFirstFails) {
  void* awaiting = pool.allocate(unit, a);
  (void)pool.allocate(unit * 2, a);
  pool.record_use(awaiting, b);
  pool.deallocate(awaiting, a);
  progress.before_wait = [&](Point) { gate.pass(); };
  auto large = request(unit * 4, c);
  gate.await_arrival();
  auto small = request(unit, a);
  auto also_small = request(unit, a);
  gate.open();
  EXPECT_EQ(large.get(), nullptr);
  EXPECT_NE(small.get(), nullptr);
  EXPECT_NE(also_small.get(), nullptr);
}

TEST(Invariant4, ARequestWaitsWithoutALockAndOnlyForSubmittedWork) {
  for (const PoolKind kind : testing::kAllKinds) {
    SCOPED_TRACE(to_string(kind));
    // The fakes check at each call that no lock is held and that the point was recorded.
    SimulatedUpstream raw(gib(1), testing::kPage);
    testing::FaultyUpstream upstream(raw);
    testing::ManualProgress progress;
    Pool pool({upstream, progress}, options_of(kib(16), kind));
    const StreamId a = StreamId::next();
    const StreamId b = StreamId::next();
    void* pointer = pool.allocate(kib(16), a);
    pool.record_use(pointer, b);
    progress.enqueue(b);
    pool.deallocate(pointer, a);
    std::uint64_t through_while_waiting = 0;
    progress.before_wait = [&](Point) {
      // Another thread gets through: no lock is held.
      std::thread([&] { through_while_waiting = pool.statistics().waits; }).join();
    };
    void* again = pool.allocate(kib(16), a);
    if (kind == PoolKind::kUnpooled) {
      EXPECT_THAT(progress.waits(), ElementsAre(Point{a, 1}, Point{b, 2}));
    } else {
      EXPECT_EQ(again, pointer);
      EXPECT_THAT(progress.waits(), ElementsAre(Point{b, 2}));
    }
    EXPECT_EQ(through_while_waiting, progress.waits().size());
    progress.before_wait = nullptr;
  }
}

}  // namespace
}  // namespace weir
