#include "tools/torch/books/statistics.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

namespace weir::testing {
namespace {

using torch_plug::Counters;
using torch_plug::kSmallLimit;
using torch_plug::NativeLevels;
using torch_plug::reserved_of;
using torch_plug::rounded;
using torch_plug::Series;
using torch_plug::Statistics;

/// Levels of one block of native's, of the small or of the large pool, which another stream may
/// still use after its free.
NativeLevels native(std::int64_t bytes, std::int64_t active_bytes) {
  const std::size_t pool = active_bytes <= static_cast<std::int64_t>(kSmallLimit) ? 1 : 2;
  NativeLevels levels{};
  for (const std::size_t of : {std::size_t{0}, pool}) {
    levels[0][of] = bytes != 0 ? 1 : 0;
    levels[1][of] = 1;
    levels[2][of] = bytes;
    levels[3][of] = levels[4][of] = active_bytes;
  }
  return levels;
}

TEST(TorchStatistics, RoundsAsNativeDoes) {
  EXPECT_EQ(rounded(0), 512U);
  EXPECT_EQ(rounded(1), 512U);
  EXPECT_EQ(rounded(512), 512U);
  EXPECT_EQ(rounded(513), 1024U);
}

TEST(TorchStatistics, CountsBlocksBytesAndWhatWasAskedFor) {
  Counters counters;
  EXPECT_EQ(counters.add(1024, 600), 1024);
  EXPECT_EQ(counters.add(512, 1), 1536);
  EXPECT_EQ(counters.remove(1024, 600), 512);
  const Statistics found = counters.read();
  EXPECT_EQ(found.blocks[0].current, 1);
  EXPECT_EQ(found.blocks[0].peak, 2);
  EXPECT_EQ(found.bytes[0].current, 512);
  EXPECT_EQ(found.bytes[0].peak, 1536);
  EXPECT_EQ(found.bytes[0].allocated, 1536);
  EXPECT_EQ(found.bytes[0].freed, 1024);
  EXPECT_EQ(found.requested[0].current, 1);
  EXPECT_EQ(found.requested[0].freed, 600);
}

TEST(TorchStatistics, ABlockOfMoreThanAMebibyteIsOfTheLargePool) {
  Counters counters;
  counters.add(kSmallLimit, 1);
  counters.add(kSmallLimit + 512, 1);
  counters.add(kSmallLimit + 512, 1);
  const Statistics found = counters.read();
  EXPECT_EQ(found.blocks[0].current, 3);
  EXPECT_EQ(found.blocks[1].current, 1);
  EXPECT_EQ(found.blocks[2].current, 2);
}

TEST(TorchStatistics, APeakStartsAgainFromWhatIsThere) {
  Counters counters;
  counters.add(2048, 2048);
  counters.add(512, 512);
  counters.remove(2048, 2048);
  counters.reset_peaks();
  EXPECT_EQ(counters.read().bytes[0].peak, 512);
  EXPECT_EQ(counters.read().bytes[0].allocated, 2560);
}

TEST(TorchStatistics, AResetOfSumsKeepsWhatIsThere) {
  Counters counters;
  counters.add(512, 512);
  counters.count_retry();
  counters.count_failure();
  EXPECT_EQ(counters.read().retries, 1);
  EXPECT_EQ(counters.read().failures, 1);
  counters.reset_accumulated();
  const Statistics found = counters.read();
  EXPECT_EQ(found.bytes[0].current, 512);
  EXPECT_EQ(found.bytes[0].peak, 512);
  EXPECT_EQ(found.bytes[0].allocated, 0);
  EXPECT_EQ(found.retries, 0);
  EXPECT_EQ(found.failures, 0);
}

TEST(TorchStatistics, APeakIsOfTensorsAndNativesMemoryTogether) {
  constexpr std::int64_t kWarmUp = 541;
  constexpr std::int64_t kCaptured = 500;
  Counters counters;
  counters.add(kWarmUp, kWarmUp);
  counters.remove(kWarmUp, kWarmUp);
  counters.set_native(counters.next_look(), native(kCaptured, kCaptured));
  EXPECT_EQ(counters.read().bytes[0].current, kCaptured);
  EXPECT_EQ(counters.read().bytes[0].peak, kWarmUp);
  EXPECT_EQ(counters.add(100, 100), kCaptured + 100);
  EXPECT_EQ(counters.read().bytes[0].peak, kCaptured + 100);
  EXPECT_EQ(counters.read().bytes[0].allocated, kWarmUp + 100) << "native counts its own";
  counters.set_native(counters.next_look(), {});
  EXPECT_EQ(counters.read().blocks[0].current, 1);
}

TEST(TorchStatistics, AnAnswerOfNativeThatWasOvertakenChangesNothing) {
  Counters counters;
  const std::uint64_t first = counters.next_look();
  const std::uint64_t second = counters.next_look();
  counters.set_native(second, native(100, 100));
  counters.set_native(first, native(900, 900));
  EXPECT_EQ(counters.read().bytes[0].current, 100);
  EXPECT_EQ(counters.read().bytes[0].peak, 100);
}

TEST(TorchStatistics, WhatIsReservedIsWeirsFigure) {
  Counters counters;
  counters.add(kSmallLimit, 1);
  counters.add(3 * kSmallLimit, 1);
  const auto found = reserved_of(8 * kSmallLimit, 9 * kSmallLimit, counters.read());
  EXPECT_EQ(found[0].current, 8 * kSmallLimit);
  EXPECT_EQ(found[0].peak, 9 * kSmallLimit);
  EXPECT_EQ(found[1].current, 1 * kSmallLimit);
  EXPECT_EQ(found[2].current, 7 * kSmallLimit);
  EXPECT_EQ(found[2].peak, 8 * kSmallLimit);
}

// Native frees a block before its last use, Weir's figures are of another moment, and peaks are
// reset in between.
TEST(TorchStatistics, NothingIsEverAboveWhatIsReserved) {
  std::mt19937 random(7);  // the same in every run
  const auto below = [&random](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  Counters counters;
  std::vector<std::size_t> out;
  for (int step = 0; step < 5000; ++step) {
    const auto bytes = static_cast<std::size_t>(512 + below(2 * kSmallLimit));
    switch (below(5)) {
      case 0:
      case 1:
        counters.add(bytes, bytes);
        out.push_back(bytes);
        break;
      case 2:
        if (out.empty()) break;
        counters.remove(out.back(), out.back());
        out.pop_back();
        break;
      case 3: {
        const std::int64_t active = 1 + below(4 * kSmallLimit);
        counters.set_native(counters.next_look(), native(below(active), active));
        break;
      }
      default:
        if (below(10) == 0) counters.reset_peaks();
    }
    const Statistics now = counters.read();
    const std::int64_t weir = below(8 * kSmallLimit);
    const auto reserved = reserved_of(weir, weir + below(8 * kSmallLimit), now);
    for (std::size_t pool = 0; pool < reserved.size(); ++pool) {
      for (std::int64_t Series::*figure : {&Series::current, &Series::peak}) {
        ASSERT_LE(now.bytes[pool].*figure, now.active_bytes[pool].*figure) << step;
        ASSERT_LE(now.active_bytes[pool].*figure, reserved[pool].*figure) << step;
        ASSERT_LE(reserved[pool].current, reserved[pool].peak) << step;
      }
    }
  }
}

TEST(TorchStatistics, ThreadsLoseNothing) {
  Counters counters;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counters] {
      for (int i = 0; i < 5000; ++i) {
        counters.add(512, 3);
        if (i % 2 == 0) counters.remove(512, 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Statistics found = counters.read();
  EXPECT_EQ(found.blocks[0].current, 10'000);
  EXPECT_EQ(found.bytes[1].current, 10'000 * 512);
  EXPECT_EQ(found.requested[0].allocated, 60'000);
  EXPECT_GE(found.blocks[0].peak, 10'000);
  EXPECT_LE(found.blocks[0].peak, 10'004);
}

}  // namespace
}  // namespace weir::testing
