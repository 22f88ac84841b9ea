#include "tools/torch/books/statistics.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weir::testing {
namespace {

using torch_plug::Counters;
using torch_plug::kSmallLimit;
using torch_plug::rounded;
using torch_plug::Statistics;

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
