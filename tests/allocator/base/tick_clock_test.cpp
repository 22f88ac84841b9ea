#include "allocator/base/tick_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace weir {
namespace {

TEST(TickClock, NeverGoesBackOnOneThread) {
  const TickClock clock;
  std::uint64_t last = clock.began();
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(TickClock, AgreesWithTheMonotonicClockBetweenAnyTwoReadings) {
  const TickClock clock;
  const auto before = std::chrono::steady_clock::now();
  const std::uint64_t first = clock.now();
  while (std::chrono::steady_clock::now() - before < std::chrono::milliseconds(20)) continue;
  const std::uint64_t second = clock.now();
  const std::chrono::duration<double, std::nano> outside =
      std::chrono::steady_clock::now() - before;
  // The ticks lie between 20 ms and the time measured outside, up to the rate's error.
  const double ns = static_cast<double>(second - first) * clock.ns_per_tick();
  EXPECT_GE(ns, 20e6 * 0.99 - 1e6);
  EXPECT_LE(ns, outside.count() * 1.01);
}

}  // namespace
}  // namespace weir
