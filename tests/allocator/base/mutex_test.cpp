#include "allocator/base/mutex.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "support/print.hpp"

namespace weir {
namespace {

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
