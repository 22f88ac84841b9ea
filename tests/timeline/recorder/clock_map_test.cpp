#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/random_seed.hpp"
#include "tools/timeline/recorder/drain.hpp"

namespace weir::timeline {
namespace {

using weir::testing::random_seed;
using weir::testing::seed_message;

/// A counter with a drifting rate, read with the error between two readings of clocks.
class DriftingClocks {
 public:
  explicit DriftingClocks(std::uint64_t seed) : random_(seed) {}
  /// The true time of a tick.
  [[nodiscard]] double ns(double ticks) const {
    constexpr double kDrift = 2e-6;
    return kStartNs + ticks / 2.5 + kDrift * 1e9 * std::sin(ticks / 2.5e10);
  }
  [[nodiscard]] ClockPair read(std::uint64_t ticks) {
    std::uniform_real_distribution<double> error(-40, 40);
    return {kStart + ticks,
            static_cast<std::uint64_t>(ns(static_cast<double>(ticks)) + error(random_))};
  }
  static constexpr std::uint64_t kStart = 77'000'000'000;
  static constexpr double kStartNs = 5e12;

 private:
  std::mt19937_64 random_;
};

constexpr std::uint64_t kRound = 250'000'000;  // ticks: 100 ms

TEST(ClockMap, IsWithinAMicrosecondOfAClockWhoseRateDrifts) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  DriftingClocks clocks(seed);
  ClockMap map(clocks.read(0), 0.4);
  std::mt19937_64 random(seed);
  for (std::uint64_t round = 1; round <= 300; ++round) {
    map.add(clocks.read(round * kRound));
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t ticks = (round - 1) * kRound + random() % kRound;
      const double found = static_cast<double>(map.ns(DriftingClocks::kStart + ticks));
      ASSERT_NEAR(found, clocks.ns(static_cast<double>(ticks)), 1000) << "round " << round;
    }
  }
}

TEST(ClockMap, NeverGivesALaterTickAnEarlierTimeNorATickAnotherTime) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  DriftingClocks clocks(seed);
  ClockMap map(clocks.read(0), 0.4);
  std::mt19937_64 random(seed);
  std::uint64_t last_ticks = DriftingClocks::kStart;
  std::uint64_t last_ns = map.ns(last_ticks);
  const std::uint64_t marked = DriftingClocks::kStart + kRound / 3;
  std::uint64_t marked_ns = 0;
  for (std::uint64_t round = 1; round <= 200; ++round) {
    map.add(clocks.read(round * kRound));
    if (round == 1) marked_ns = map.ns(marked);
    EXPECT_EQ(map.ns(marked), marked_ns);
    const std::uint64_t end = DriftingClocks::kStart + round * kRound;
    while (last_ticks < end) {
      last_ticks += 1 + random() % (kRound / 50);
      const std::uint64_t ns = map.ns(std::min(last_ticks, end));
      ASSERT_GE(ns, last_ns);
      last_ns = ns;
    }
    last_ticks = end;
  }
}

TEST(ClockMap, IgnoresAPairThatGoesBackOnEitherClock) {
  ClockMap map({100, 1000}, 1);
  map.add({200, 1100});
  map.add({150, 1200});
  map.add({300, 1050});
  EXPECT_EQ(map.ns(200), 1100U);
  EXPECT_EQ(map.ns(150), 1050U);
  EXPECT_EQ(map.ns(1000), 1100U);  // after the last pair: its time
}

TEST(ClockMap, TicksBeforeTheFirstPairHaveTheFirstRateAndNoTimeBeforeZero) {
  const ClockMap map({1000, 500}, 0.5);
  EXPECT_EQ(map.ns(900), 450U);
  EXPECT_EQ(ClockMap({1'000'000, 500}, 0.5).ns(0), 0U);
}

TEST(ClockMap, ForgetsEarlyPairsAndStaysMonotone) {
  ClockMap map({0, 0}, 1);
  for (std::uint64_t i = 1; i <= 2 * ClockMap::kMostPairs; ++i) map.add({i * 100, i * 100 + i % 3});
  std::uint64_t last = 0;
  for (std::uint64_t ticks = 0; ticks <= 200 * ClockMap::kMostPairs; ticks += 9973) {
    const std::uint64_t ns = map.ns(ticks);
    ASSERT_GE(ns, last);
    ASSERT_NEAR(static_cast<double>(ns), static_cast<double>(ticks), 300);
    last = ns;
  }
}

TEST(ClockMap, LongLinesAreExact) {
  ClockMap map({0, 0}, 1);
  constexpr std::uint64_t kLong = std::uint64_t{1} << 50U;
  map.add({kLong, 2 * kLong});
  EXPECT_EQ(map.ns(kLong / 2), kLong);
  EXPECT_EQ(map.ns(kLong - 1), 2 * kLong - 2);
}

TEST(ClockMap, ReadsBothClocksAtOneMoment) {
  const TickClock clock;
  const ClockPair first = read_clocks(clock);
  const ClockPair second = read_clocks(clock);
  EXPECT_GT(first.ns, 0U);
  EXPECT_GE(second.ns, first.ns);
  EXPECT_GE(second.ticks, first.ticks);
}

}  // namespace
}  // namespace weir::timeline
