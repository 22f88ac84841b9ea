// What a request does when it meets another one half way. Gates hold the threads at the seams, so
// each meeting is certain.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "allocator/error.hpp"
#include "allocator/pool_fixture.hpp"
#include "support/gate.hpp"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::expect_books;
using testing::Fault;
using testing::Gate;
using testing::give_others_a_chance;
using ::testing::IsEmpty;
using testing::options_of;

struct PoolThreads : testing::PoolFixture {
  Gate gate;  // before the pool, whose end still calls the seams that lead here
  Pool pool{memory(), options_of(kib(16))};

  /// A request on a thread of its own, which is running; null when it runs out of memory.
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

TEST_F(PoolThreads, ARequestAwaitsAGrowthThatIsInItsWayAndThenGrowsItself) {
  void* other = pool.allocate(kib(4), a);
  pool.deallocate(other, a);  // could be handed over, were there no growth to wait for
  upstream.before_allocate = [&](Bytes size) {
    if (size == kib(8)) gate.pass();
  };
  void* live = pool.allocate(kib(4), c);
  pool.set_limits(kib(16), {.wait = false});
  upstream.refuse_calls(Fault::at(1));
  auto growing = request(kib(8), b);
  gate.await_arrival();
  auto waiting = request(kib(4), b);
  give_others_a_chance();
  gate.open();
  EXPECT_EQ(growing.get(), nullptr) << "refused";
  EXPECT_NE(waiting.get(), other);
  EXPECT_EQ(pool.statistics().handovers, 0U);
  EXPECT_THAT(progress.dependencies(), IsEmpty());
  expect_books(pool, upstream);
  pool.deallocate(live, c);
}

TEST_F(PoolThreads, ARequestThatMeetsAGrowthWhichSucceedsGoesOnToTheNextStage) {
  upstream.before_allocate = [&](Bytes) { gate.pass(); };
  auto growing = request(kib(16), a);
  gate.await_arrival();
  auto waiting = request(kib(8), b);
  give_others_a_chance();
  gate.open();
  EXPECT_NE(growing.get(), nullptr);
  EXPECT_EQ(waiting.get(), nullptr);
  EXPECT_EQ(upstream.calls(), 1U);
  expect_books(pool, upstream);
}

TEST_F(PoolThreads, ARequestAwaitsAFreeThatIsUnderWay) {
  void* pointer = pool.allocate(kib(16), a);
  progress.after_record = [&](Point) { gate.pass(); };
  std::thread freeing([&] { pool.deallocate(pointer, a); });
  gate.await_arrival();
  auto waiting = request(kib(16), a);
  give_others_a_chance();
  gate.open();
  freeing.join();
  EXPECT_EQ(waiting.get(), pointer);
}

TEST_F(PoolThreads, ARequestAwaitsATrimThatIsUnderWay) {
  void* pointer = pool.allocate(kib(16), a);
  pool.deallocate(pointer, a);
  progress.pass_all(a);
  upstream.after_deallocate = [&](Bytes) { gate.pass(); };
  std::thread trimming([&] { EXPECT_EQ(pool.trim(), kib(16)); });
  gate.await_arrival();
  auto waiting = request(kib(8), b);
  give_others_a_chance();
  gate.open();
  trimming.join();
  EXPECT_NE(waiting.get(), nullptr);
  EXPECT_EQ(pool.statistics().waits, 0U);
  expect_books(pool, upstream);
}

TEST_F(PoolThreads, WhatAnotherThreadMakesFreeBetweenTwoStagesIsNotMissed) {
  // No seam lies between the stages, so the meeting is left to chance, many times over.
  constexpr int kRounds = 15'000;
  for (const PoolKind kind : {PoolKind::kRound, PoolKind::kUnpooled}) {
    Pool small(memory(), options_of(kib(16), kind));
    std::atomic<int> asked = -1;
    std::atomic<int> passed = -1;
    std::thread passing([&] {
      for (int round = 0; round < kRounds; ++round) {
        while (asked < round) std::this_thread::yield();
        for (int i = round % 64; i > 0; --i) (void)progress.tail(a);  // a little later each time
        progress.pass_all(a);
        if (kind == PoolKind::kUnpooled || round % 2 == 0) {
          (void)small.trim();
        } else {
          small.poll();
        }
        passed = round;
      }
    });
    int missed = 0;
    for (int round = 0; round < kRounds; ++round) {
      small.deallocate(small.allocate(kib(8), a), a);
      asked = round;
      Attempt attempt;
      void* all = small.try_allocate(kib(16), b, {}, attempt);
      while (passed < round) std::this_thread::yield();
      missed += all == nullptr ? 1 : 0;
      small.deallocate(all, b);
      progress.pass_all(b);
      (void)small.trim();
    }
    passing.join();
    EXPECT_EQ(missed, 0) << to_string(kind) << ": nobody held anything";
  }
}

/// Gives the one address that it has again as soon as it is back, as drivers and malloc do.
class OneAddressUpstream final : public Upstream {
 public:
  [[nodiscard]] void* allocate(Bytes) override { return std::exchange(free_, nullptr); }
  void deallocate(void* pointer, Bytes) noexcept override { free_ = pointer; }
  [[nodiscard]] Bytes capacity() const override { return kib(16); }

 private:
  int memory_ = 0;
  void* free_ = &memory_;
};

TEST_F(PoolThreads, AnAddressThatTheUpstreamGivesAgainDuringAReleaseIsANewBlock) {
  OneAddressUpstream one;
  testing::FaultyUpstream watched(one);
  Pool small({watched, progress}, options_of(kib(16)));
  void* before = small.allocate(kib(4), a);
  small.deallocate(before, a);
  progress.pass_all(a);
  void* again = nullptr;
  watched.after_deallocate = [&](Bytes) {
    if (again != nullptr) return;
    std::thread([&] { again = small.allocate(kib(8), b); }).join();
  };
  EXPECT_EQ(small.trim(), kib(4));
  ASSERT_EQ(again, before);
  EXPECT_EQ(small.statistics().allocated.current, kib(8));
  expect_books(small, watched);
  EXPECT_EQ(small.deallocate(again, b), Freed::kCached);
  EXPECT_EQ(small.allocate(kib(8), b), again);
}

TEST_F(PoolThreads, AFreeIsNotHeldUpByARequestThatWaits) {
  void* awaiting = pool.allocate(kib(8), a);
  void* live = pool.allocate(kib(8), c);
  pool.record_use(awaiting, b);
  pool.deallocate(awaiting, a);
  progress.before_wait = [&](Point) { gate.pass(); };
  auto waiting = request(kib(8), a);
  gate.await_arrival();
  pool.deallocate(live, c);
  pool.poll();
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{0});
  gate.open();
  EXPECT_NE(waiting.get(), nullptr);
}

TEST_F(PoolThreads, WhatIsFreedServesTheFirstInLine) {
  void* pointer = pool.allocate(kib(16), a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  const Point use{b, progress.tail(b)};
  progress.before_wait = [&](Point) { gate.pass(); };
  auto first = request(kib(16), a);
  gate.await_arrival();
  // The device is done, and the first in line has yet to hear of it: a good moment to cut in.
  progress.pass(use);
  auto second = request(kib(16), a);
  give_others_a_chance();
  EXPECT_EQ(pool.statistics().hits, 0U);
  gate.open();
  EXPECT_EQ(first.get(), pointer);
  EXPECT_EQ(second.get(), nullptr);
  EXPECT_EQ(pool.statistics().hits, 1U);
}

TEST_F(PoolThreads, TheLineMovesOnWhenItsFirstFails) {
  void* awaiting = pool.allocate(kib(4), a);
  (void)pool.allocate(kib(8), a);
  pool.record_use(awaiting, b);
  pool.deallocate(awaiting, a);
  progress.before_wait = [&](Point) { gate.pass(); };
  auto large = request(kib(16), c);
  gate.await_arrival();
  auto small = request(kib(4), a);
  auto also_small = request(kib(4), a);
  gate.open();
  EXPECT_EQ(large.get(), nullptr);
  EXPECT_NE(small.get(), nullptr);
  EXPECT_NE(also_small.get(), nullptr);
}

TEST(Invariant4, ARequestWaitsWithoutALockAndOnlyForSubmittedWork) {
  // That no lock is held, and that the point was recorded, is what the fake checks at each call.
  SimulatedUpstream upstream(gib(1));
  testing::ManualProgress progress;
  Pool pool({upstream, progress}, options_of(kib(16)));
  const StreamId a = StreamId::next();
  const StreamId b = StreamId::next();
  void* pointer = pool.allocate(kib(16), a);
  pool.record_use(pointer, b);
  progress.enqueue(b);
  pool.deallocate(pointer, a);
  bool free_while_waiting = false;
  progress.before_wait = [&](Point) {
    // Another thread gets through: nothing is held.
    std::thread([&] { free_while_waiting = pool.statistics().waits == 1; }).join();
  };
  EXPECT_EQ(pool.allocate(kib(16), a), pointer);
  EXPECT_TRUE(free_while_waiting);
  EXPECT_THAT(progress.waits(), ElementsAre(Point{b, 2}));
}

}  // namespace
}  // namespace weir
