#include "tools/timeline/cupti/buffers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace weir::timeline::cupti {
namespace {

using Filled = ActivityBuffers::Filled;

std::vector<Filled> collect(ActivityBuffers& buffers) {
  std::vector<Filled> filled;
  buffers.collect(filled);
  return filled;
}

TEST(CuptiBuffers, BeforeTheyAreReservedThereIsNone) {
  ActivityBuffers buffers;
  EXPECT_TRUE(buffers.take().empty());
  EXPECT_EQ(buffers.refused(), 1U);
}

TEST(CuptiBuffers, NoMoreAreHandedOutThanThereAre) {
  ActivityBuffers buffers;
  ASSERT_TRUE(buffers.reserve());
  std::set<std::uint8_t*> taken;
  for (std::size_t i = 0; i < ActivityBuffers::kCount; ++i) {
    const auto buffer = buffers.take();
    ASSERT_EQ(buffer.size(), ActivityBuffers::kBytes);
    EXPECT_TRUE(taken.insert(buffer.data()).second) << "handed out twice";
  }
  EXPECT_TRUE(buffers.take().empty());
  EXPECT_EQ(buffers.refused(), 1U);
}

TEST(CuptiBuffers, BuffersComeInTheOrderInWhichTheyWereCompleted) {
  ActivityBuffers buffers;
  ASSERT_TRUE(buffers.reserve());
  const auto a = buffers.take();
  const auto b = buffers.take();
  const auto c = buffers.take();
  buffers.complete(c.data(), 3);
  buffers.complete(a.data(), 1);
  buffers.complete(b.data(), 2);
  const std::vector<Filled> filled = collect(buffers);
  ASSERT_EQ(filled.size(), 3U);
  EXPECT_EQ(filled[0].data, c.data());
  EXPECT_EQ(filled[1].data, a.data());
  EXPECT_EQ(filled[2].data, b.data());
  EXPECT_EQ(filled[2].valid, 2U);
  EXPECT_TRUE(collect(buffers).empty());
}

TEST(CuptiBuffers, ABufferIsOfZeroesEachTime) {
  ActivityBuffers buffers;
  ASSERT_TRUE(buffers.reserve());
  for (int round = 0; round < 2; ++round) {
    const auto buffer = buffers.take();
    EXPECT_TRUE(std::ranges::all_of(buffer, [](std::uint8_t byte) { return byte == 0; }));
    std::ranges::fill(buffer, std::uint8_t{0xFF});  // also past what is valid
    buffers.complete(buffer.data(), 8);
    for (const Filled& filled : collect(buffers)) buffers.give_back(filled);
  }
}

TEST(CuptiBuffers, WhatIsNotATakenBufferIsIgnored) {
  ActivityBuffers buffers;
  ASSERT_TRUE(buffers.reserve());
  std::vector<std::uint8_t> foreign(64);
  const auto buffer = buffers.take();
  buffers.complete(foreign.data(), 8);
  buffers.complete(nullptr, 8);
  buffers.complete(buffer.data() + 8, 8);
  buffers.complete(buffer.data(), ActivityBuffers::kBytes * 2);  // more than there is
  buffers.complete(buffer.data(), 8);                            // a second time
  const std::vector<Filled> filled = collect(buffers);
  ASSERT_EQ(filled.size(), 1U);
  EXPECT_EQ(filled[0].valid, ActivityBuffers::kBytes);
}

TEST(CuptiBuffers, ThreadsFillWhileOneReadsAndNothingIsLostOrSeenTwice) {
  ActivityBuffers buffers;
  ASSERT_TRUE(buffers.reserve());
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 500;
  std::atomic<std::uint64_t> running{kThreads};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&buffers, &running, t] {
      for (std::uint64_t i = 0; i < kEach;) {
        const auto buffer = buffers.take();
        if (buffer.empty()) {
          std::this_thread::yield();
          continue;
        }
        const std::uint64_t value = t * kEach + i++;
        std::memcpy(buffer.data(), &value, sizeof value);
        buffers.complete(buffer.data(), sizeof value);
      }
      --running;
    });
  }
  std::set<std::uint64_t> seen;
  for (bool last = false; !last;) {
    last = running == 0;
    for (const Filled& filled : collect(buffers)) {
      std::uint64_t value = 0;
      std::memcpy(&value, filled.data, sizeof value);
      EXPECT_TRUE(seen.insert(value).second) << value << " came twice";
      buffers.give_back(filled);
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen.size(), kThreads * kEach);
}

}  // namespace
}  // namespace weir::timeline::cupti
