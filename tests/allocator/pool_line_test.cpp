// Who may pass a request that waits for memory, and for how long.

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "allocator/pool_fixture.hpp"
#include "allocator/pool_kind.hpp"
#include "allocator/pool_state.hpp"
#include "support/gate.hpp"

namespace weir {
namespace {

using testing::Gate;
using testing::give_others_a_chance;

TEST(MayPassBy, WhereTheFirstCanStillBeServedByTheDeviceAlone) {
  for (std::uint64_t block = 1; block <= 8; ++block) {
    for (std::uint64_t live = 0; live <= 8; ++live) {
      for (std::uint64_t waited_for = 1; waited_for <= 8; ++waited_for) {
        const FirstInLine first{.block = {waited_for}, .rounds_left = 1};
        EXPECT_EQ(may_pass_by(first, true, {block}, {live}, {8}), live + block + waited_for <= 8)
            << block << " " << live << " " << waited_for;
      }
    }
  }
}

TEST(MayPassBy, OnlyInSoManyRoundsAndWhereNoBlockIsCutFromAnother) {
  const auto may = [](std::uint64_t rounds, PoolKind kind) {
    return may_pass_by({.block = {1}, .rounds_left = rounds}, kind_of_pool(kind).hits_pass_by, {1},
                       {0}, {8});
  };
  for (const PoolKind kind : testing::kAllKinds) {
    EXPECT_FALSE(may(0, kind));
    EXPECT_EQ(may(kRoundsPassedBy, kind), kind == PoolKind::kNaive || kind == PoolKind::kRound);
  }
}

/// The device awaits every block, and none is handed over: a request without one waits on the host.
struct PoolLine : testing::UnitFixture {
  Pool pool{memory(), options(4)};
  std::vector<std::thread> passers;

  PoolLine() { pool.set_limits(unit * 4, {.hand_over = false}); }
  /// Call it before the passers' objects are destroyed: the pool's end waits for the device, too.
  void join_passers() {
    for (std::thread& passer : passers) passer.join();
    passers.clear();
    progress.before_wait = nullptr;
  }

  void use_and_free(void* pointer, StreamId stream) {
    progress.enqueue(stream);
    pool.deallocate(pointer, stream);
  }
  [[nodiscard]] void* try_allocate(Bytes size, StreamId stream) {
    Attempt attempt;
    return pool.try_allocate(size, stream, {}, attempt);
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolLine,
                         ::testing::Values(testing::kNaiveUnits, testing::kRoundUnits),
                         testing::unit_name);

TEST_P(PoolLine, AHitOnAnOwnBlockPassesByWhoWaitsForTheDevice) {
  void* const large = pool.allocate(unit * 2, b);
  void* const own = pool.allocate(unit, c);
  use_and_free(large, b);
  use_and_free(own, c);
  Gate passed;
  passed.open();
  void* got = nullptr;
  progress.before_wait = [&](Point) {
    if (!passers.empty()) return;
    passers.emplace_back([&] {
      got = pool.allocate(unit, c);
      passed.pass();
    });
    passed.await_arrival();
  };
  EXPECT_NE(try_allocate(unit * 2, a), nullptr);
  join_passers();
  EXPECT_EQ(got, own);
  testing::expect_statistics_agree(pool, upstream);
}

TEST_P(PoolLine, AHitThatTheFirstWouldLackLinesUpBehindIt) {
  void* const large = pool.allocate(unit * 2, b);
  void* const own = pool.allocate(unit, c);
  use_and_free(large, b);
  use_and_free(own, c);
  void* got = own;
  progress.before_wait = [&](Point) {
    if (!passers.empty()) return;
    passers.emplace_back([&] { got = try_allocate(unit, c); });
    give_others_a_chance();
  };
  EXPECT_NE(try_allocate(unit * 4, a), nullptr) << "all of the budget";
  join_passers();
  EXPECT_EQ(got, nullptr);
}

TEST_P(PoolLine, WhoWaitsIsPassedByInSoManyRoundsOnly) {
  // Each of four streams uses its own block again and again, so that its last free is never passed
  // for long. The first in line waits for two of these blocks.
  std::array<StreamId, 4> streams{};
  std::array<void*, 4> blocks{};
  for (std::size_t i = 0; i < streams.size(); ++i) {
    streams.at(i) = StreamId::next();
    blocks.at(i) = pool.allocate(unit, streams.at(i));
  }
  for (std::size_t i = 0; i < streams.size(); ++i) use_and_free(blocks.at(i), streams.at(i));
  Gate passed;
  passed.open();
  const auto pass_by = [&] {
    for (const StreamId stream : streams) {
      void* const own = try_allocate(unit, stream);
      if (own != nullptr) use_and_free(own, stream);
    }
    passed.pass();
  };
  const auto first = std::this_thread::get_id();
  std::uint64_t waits = 0;
  progress.before_wait = [&](Point) {
    if (std::this_thread::get_id() != first || ++waits > 10 * kRoundsPassedBy) return;
    passers.emplace_back(pass_by);
    if (waits <= kRoundsPassedBy) {
      passed.await_arrival(waits);
    } else {
      give_others_a_chance();
    }
  };
  EXPECT_NE(try_allocate(unit * 2, a), nullptr);
  join_passers();
  EXPECT_GT(waits, kRoundsPassedBy) << "the blocks were never free for long";
  EXPECT_LE(waits, kRoundsPassedBy + streams.size());
}

}  // namespace
}  // namespace weir
