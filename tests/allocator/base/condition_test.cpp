#include "allocator/base/condition.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "allocator/base/mutex.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

using ConditionClock = std::chrono::steady_clock;

/// A state, and threads that sleep until it is set.
class StateAwaited {
 public:
  void set() {
    {
      const Lock lock(mutex_);
      is_set_ = true;
    }
    condition_.notify_all();
  }
  /// Returns once so many threads have looked and hold the lock no more: they sleep.
  void await_sleepers(int count) {
    for (;;) {
      const Lock lock(mutex_);
      if (sleepers_ == count) return;
    }
  }
  bool sleep(const std::stop_token& stop) {
    Lock lock(mutex_);
    ++sleepers_;
    return condition_.wait(lock, stop, [this] { return is_set_; });
  }
  bool sleep_until(ConditionClock::time_point deadline, const std::stop_token& stop) {
    Lock lock(mutex_);
    ++sleepers_;
    return condition_.wait_until(lock, stop, deadline, [this] { return is_set_; });
  }
  void sleep_plainly() {
    Lock lock(mutex_);
    ++sleepers_;
    while (!is_set_) condition_.wait(lock);
  }

 private:
  Mutex mutex_{LockRank::kLeaf};
  Condition condition_;
  bool is_set_ = false;
  int sleepers_ = 0;
};

constexpr std::chrono::milliseconds kConditionSoon{10};
constexpr std::chrono::hours kConditionLate{1};

/// Every way to sleep; the last takes no stop.
enum class Way : std::uint8_t { kForever, kUntilADeadline, kPlainly };

bool sleep_by(Way way, StateAwaited& scene, const std::stop_token& stop) {
  if (way == Way::kForever) return scene.sleep(stop);
  if (way == Way::kUntilADeadline) {
    return scene.sleep_until(ConditionClock::now() + kConditionLate, stop);
  }
  scene.sleep_plainly();
  return true;
}

TEST(Condition, WakesWhoSleepsWhetherItCanBeStoppedOrNot) {
  const std::stop_source stop;
  for (const Way way : {Way::kForever, Way::kUntilADeadline, Way::kPlainly}) {
    for (const auto& token : {std::stop_token(), stop.get_token()}) {
      StateAwaited scene;
      std::thread sleeper([&] { EXPECT_TRUE(sleep_by(way, scene, token)); });
      std::thread other([&] { EXPECT_TRUE(scene.sleep({})); });
      scene.await_sleepers(2);
      scene.set();
      sleeper.join();
      other.join();
    }
  }
}

TEST(Condition, AStopEndsTheSleep) {
  for (const Way way : {Way::kForever, Way::kUntilADeadline}) {
    std::stop_source stop;
    StateAwaited scene;
    std::thread sleeper([&] { EXPECT_FALSE(sleep_by(way, scene, stop.get_token())); });
    scene.await_sleepers(1);
    stop.request_stop();
    sleeper.join();
    EXPECT_FALSE(scene.sleep(stop.get_token())) << "nor does a later one sleep";
  }
}

TEST(Condition, ADeadlineEndsTheSleep) {
  const std::stop_source stop;
  StateAwaited scene;
  EXPECT_FALSE(scene.sleep_until(ConditionClock::now() + kConditionSoon, {}));
  EXPECT_FALSE(scene.sleep_until(ConditionClock::now() + kConditionSoon, stop.get_token()));
}

TEST(Condition, HoldsTheLockAgainAfterTheSleep) {
  Mutex mutex(LockRank::kLeaf);
  Condition condition;
  int value = 0;
  Lock lock(mutex);
  EXPECT_FALSE(
      condition.wait_until(lock, {}, ConditionClock::now() + kConditionSoon, [] { return false; }));
  std::thread other([&] {
    const Lock own(mutex);
    value = 1;
  });
  std::this_thread::sleep_for(kConditionSoon);
  EXPECT_EQ(value, 0) << "another thread had the lock";
  EXPECT_NE(held_lock_ranks(), 0U);
  lock.unlock();
  other.join();
  EXPECT_EQ(held_lock_ranks(), 0U);
}

constexpr std::uint32_t bit(LockRank rank) { return 1U << static_cast<unsigned>(rank); }

TEST(Mutex, TellsWhichRanksTheThreadHolds) {
  Mutex pool(LockRank::kPool);
  Mutex leaf(LockRank::kLeaf);
  EXPECT_EQ(held_lock_ranks(), 0U);
  {
    Lock outer(pool);
    const Lock inner(leaf);
    EXPECT_EQ(held_lock_ranks(), bit(LockRank::kPool) | bit(LockRank::kLeaf));
    std::uint32_t other = 1;
    std::thread([&] { other = held_lock_ranks(); }).join();
    EXPECT_EQ(other, 0U);
    outer.unlock();
    EXPECT_EQ(held_lock_ranks(), bit(LockRank::kLeaf));
  }
  EXPECT_EQ(held_lock_ranks(), 0U);
}

TEST(Mutex, ALockCanBeDroppedAndTakenAgain) {
  Mutex mutex(LockRank::kPool);
  {
    Lock lock(mutex);
    lock.unlock();
    EXPECT_EQ(held_lock_ranks(), 0U);
    lock.lock();
    EXPECT_EQ(held_lock_ranks(), bit(LockRank::kPool));
    lock.unlock();
  }
  const Lock again(mutex);
}

void take(LockRank first, LockRank second) {
  Mutex a(first);
  Mutex b(second);
  const Lock one(a);
  const Lock two(b);
}

TEST(MutexDeathTest, EndsTheProgramWhenALockIsTakenOutOfOrder) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(take(LockRank::kSlab, LockRank::kPool), "lock of rank 3 taken while holding");
  EXPECT_DEATH(take(LockRank::kLeaf, LockRank::kSources), "lock of rank 0");
}

TEST(MutexDeathTest, EndsTheProgramWhenTwoLocksOfOneRankAreTaken) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(take(LockRank::kPool, LockRank::kPool), "lock of rank 3");
}

}  // namespace

}  // namespace weir
