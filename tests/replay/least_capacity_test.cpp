#include <gtest/gtest.h>

#include <random>

#include "support/random_seed.hpp"
#include "tools/replay/measure/engine.hpp"
#include "tools/replay/measure/measure.hpp"
#include "tools/replay/measure/pools.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using replay::least_capacity;

TEST(ReplayLeastCapacity, IsFoundExactlyWhereMoreIsNeverWorse) {
  for (std::uint64_t least = 10; least <= 100; ++least) {
    for (const std::uint64_t high : {10U, 11U, 50U, 100U, 300U}) {
      const auto found =
          least_capacity({.low = {10}, .high = {high}, .most = {1000}, .step = {1}},
                         [least](Bytes capacity) { return capacity.count >= least; });
      ASSERT_TRUE(found) << least;
      EXPECT_EQ(found->capacity.count, least);
      EXPECT_EQ(found->failed.count, least == 10 ? 0 : least - 1);
      EXPECT_LE(found->tries, 20U);
    }
  }
}

TEST(ReplayLeastCapacity, EndsOnceTheStepIsReached) {
  const auto found =
      least_capacity({.low = {1}, .high = {1 << 20}, .most = {1 << 20}, .step = {1000}},
                     [](Bytes capacity) { return capacity.count >= 123'456; });
  ASSERT_TRUE(found);
  EXPECT_GE(found->capacity.count, 123'456U);
  EXPECT_LT(found->failed.count, 123'456U);
  EXPECT_LE((found->capacity - found->failed).count, 1000U);
}

TEST(ReplayLeastCapacity, IsNothingWhereNotEvenTheMostCompletes) {
  const auto never = [](Bytes) { return false; };
  EXPECT_FALSE(least_capacity({.low = {1}, .high = {10}, .most = {1000}, .step = {1}}, never));
  EXPECT_FALSE(least_capacity({.low = {5}, .high = {5}, .most = {5}, .step = {1}}, never));
  EXPECT_FALSE(least_capacity({.low = {6}, .high = {5}, .most = {5}, .step = {1}},
                              [](Bytes) { return true; }));
}

TEST(ReplayLeastCapacity, WhereMoreCanBeWorseWhatIsReportedDidComplete) {
  const auto odd = [](Bytes capacity) { return capacity.count % 7 == 3; };
  const auto found = least_capacity({.low = {4}, .high = {52}, .most = {52}, .step = {1}}, odd);
  ASSERT_TRUE(found);
  EXPECT_TRUE(odd(found->capacity));
  EXPECT_EQ(found->capacity.count, found->failed.count + 1);
}

replay::Trace random_trace(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<replay::Operation> operations;
  std::vector<replay::Operation> live;
  std::uint32_t buffers = 0;
  for (int i = 0; i < 120; ++i) {
    if (live.size() > 3 && random() % 2 == 0) {
      const std::size_t which = random() % live.size();
      operations.push_back(release(live[which].buffer, live[which].bytes.count));
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      live.push_back(allocate(buffers++, (1 + random() % 8) * 4096));
      operations.push_back(live.back());
    }
  }
  return trace_of(operations, buffers);
}

TEST(ReplayLeastCapacity, OfATraceIsWhatTryingEveryCapacityFinds) {
  SCOPED_TRACE(seed_message(random_seed()));
  PoolOptions base;
  base.budget = BudgetRequest{.percent = 100};
  const replay::MakeUpstream upstream = [](Bytes capacity) {
    return std::make_unique<SimulatedUpstream>(capacity);
  };
  for (std::uint64_t i = 0; i < 8; ++i) {
    const replay::Trace trace = random_trace(random_seed() + i);
    const Bytes peak = replay::peak_requested(trace);
    for (const char* pool : {"unpooled", "naive", "round"}) {
      SCOPED_TRACE(pool);
      const auto candidate =
          replay::candidate_of(replay::parse_pool_choice("t", pool, base), upstream, 0);
      const auto fits = [&](Bytes capacity) {
        return replay::completes(trace, *candidate.make(capacity));
      };
      const Bytes reserved = replay::replay(trace, *candidate.make(gib(1))).peak_reserved;
      const auto found =
          least_capacity({.low = peak, .high = reserved, .most = gib(1), .step = {1}}, fits);
      ASSERT_TRUE(found);
      // Every block is of whole pages: between two multiples of a page nothing changes.
      Bytes least = peak;
      while (!fits(least)) least += kib(4);
      bool more_is_never_worse = true;
      for (Bytes at = least; at < reserved; at += kib(4)) more_is_never_worse &= fits(at);
      EXPECT_TRUE(fits(found->capacity));
      EXPECT_GE(found->capacity, least);
      if (more_is_never_worse) {
        EXPECT_EQ(found->capacity, least);
      }
    }
  }
}

}  // namespace
}  // namespace weir::testing
