#include "trainer/data/staging.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "support/faulty_upstream.hpp"
#include "support/gate.hpp"
#include "support/manual_progress.hpp"
#include "support/print.hpp"

namespace weir::testing {
namespace {

using Buffer = StagingBuffers::Buffer;

class StagingBuffersTest : public ::testing::Test {
 protected:
  MappedUpstream upstream{mib(64)};
  StagingBuffers buffers{upstream};
};

TEST_F(StagingBuffersTest, TakesTheSmallestFreeBufferThatIsLargeEnough) {
  const Buffer large = buffers.allocate(mib(4));
  const Buffer small = buffers.allocate(mib(1));
  const Buffer middle = buffers.allocate(mib(2));
  for (const Buffer& buffer : {middle, large, small}) buffers.deallocate(buffer);
  EXPECT_EQ(buffers.allocate(kib(1025)).pointer, middle.pointer);
  EXPECT_EQ(buffers.allocate(kib(1025)).pointer, large.pointer);
  EXPECT_EQ(buffers.allocate(mib(1)).pointer, small.pointer);
  EXPECT_EQ(buffers.upstream_calls(), 3U);
}

TEST_F(StagingBuffersTest, ASmallRequestReturnsALargeBufferWhole) {
  buffers.deallocate(buffers.allocate(mib(4)));
  const Buffer buffer = buffers.allocate(mib(1));
  EXPECT_EQ(buffer.size, mib(4));
  buffers.deallocate(buffer);
  EXPECT_EQ(buffers.allocate(mib(4)).pointer, buffer.pointer);
  EXPECT_EQ(buffers.reserved().peak, mib(4));
}

TEST(StagingBuffers, ReleasesBuffersThatAreTooSmallBeforeARequestFails) {
  MappedUpstream upstream(mib(8));
  StagingBuffers buffers(upstream);
  const Buffer kept = buffers.allocate(mib(2));
  buffers.deallocate(buffers.allocate(mib(3)));
  EXPECT_NE(buffers.allocate(mib(6)).pointer, nullptr);
  EXPECT_EQ(buffers.reserved().current, mib(8));
  EXPECT_EQ(upstream.used(), mib(8));
  EXPECT_EQ(buffers.obtained(), mib(2 + 3 + 6)) << "with what went back";
  EXPECT_EQ(buffers.allocate(mib(1)).pointer, nullptr) << "nothing is free";
  buffers.deallocate(kept);
  EXPECT_EQ(buffers.allocate(mib(2)).pointer, kept.pointer);
}

TEST(StagingBuffers, ObtainsFreeBuffersAheadAsLongAsThereIsRoom) {
  MappedUpstream upstream(mib(8));
  StagingBuffers buffers(upstream);
  buffers.obtain(3, mib(2));
  EXPECT_EQ(buffers.upstream_calls(), 3U);
  const Buffer used = buffers.allocate(mib(2));
  EXPECT_EQ(buffers.upstream_calls(), 3U);
  buffers.obtain(5, mib(2));
  EXPECT_EQ(buffers.upstream_calls(), 5U) << "one, and then a refusal";
  EXPECT_EQ(buffers.reserved().current, mib(8));
  buffers.deallocate(used);
}

TEST_F(StagingBuffersTest, ReleasesOnlyFreeBuffersBelowASize) {
  const Buffer used = buffers.allocate(mib(1));
  const Buffer small = buffers.allocate(mib(2));
  const Buffer large = buffers.allocate(mib(3));
  buffers.deallocate(small);
  buffers.deallocate(large);
  EXPECT_TRUE(buffers.release_below(mib(3)));
  EXPECT_EQ(buffers.reserved().current, mib(4));
  EXPECT_EQ(upstream.used(), mib(4));
  EXPECT_FALSE(buffers.release_below(mib(3)));
  EXPECT_EQ(buffers.allocate(mib(2)).pointer, large.pointer);
  buffers.deallocate(used);
  EXPECT_TRUE(buffers.release_below(mib(3)));
  EXPECT_EQ(upstream.used(), mib(3));
}

TEST(StagingBuffers, ABufferThatIsFreedWhileTheUpstreamIsAskedServesTheRequest) {
  MappedUpstream raw(mib(4));
  FaultyUpstream upstream(raw);
  StagingBuffers buffers(upstream);
  Buffer used = buffers.allocate(mib(4));
  upstream.before_allocate = [&](Bytes) {
    if (used.pointer != nullptr) buffers.deallocate(std::exchange(used, {}));
  };
  EXPECT_NE(buffers.allocate(mib(4)).pointer, nullptr);
  EXPECT_EQ(buffers.upstream_calls(), 2U) << "a buffer that fits was released";
  upstream.before_allocate = nullptr;
}

TEST(StagingBuffers, ARequestWaitsForBuffersThatAnotherOneIsReleasing) {
  MappedUpstream raw(mib(8));
  FaultyUpstream upstream(raw);
  Gate gate;
  StagingBuffers buffers(upstream);
  buffers.deallocate(buffers.allocate(mib(5)));
  (void)buffers.allocate(mib(3));  // takes the buffer of 5
  buffers.deallocate(buffers.allocate(mib(3)));
  upstream.before_deallocate = [&](void*, Bytes) { gate.pass(); };
  std::thread releasing([&] { EXPECT_EQ(buffers.allocate(mib(4)).pointer, nullptr); });
  gate.await_arrival();
  void* small = nullptr;
  std::thread waiting([&] { small = buffers.allocate(mib(2)).pointer; });
  give_others_a_chance();
  gate.open();
  releasing.join();
  waiting.join();
  EXPECT_NE(small, nullptr);
}

TEST(StagingBuffers, HoldsNoMoreBuffersOfASizeThanWereInUseAtOneTime) {
  constexpr std::size_t kInUse = 5;
  MappedUpstream upstream(gib(1));
  StagingBuffers buffers(upstream);
  std::minstd_rand random(1);
  const auto draw = [&] { return mib(1 + random() % 4); };
  std::vector<Buffer> in_use(kInUse);
  for (Buffer& buffer : in_use) buffer = buffers.allocate(draw());
  for (std::size_t step = 0; step < 10'000; ++step) {
    Buffer& oldest = in_use[step % kInUse];
    buffers.deallocate(oldest);
    oldest = buffers.allocate(draw());
  }
  EXPECT_LE(buffers.reserved().peak, (mib(1) + mib(2) + mib(3) + mib(4)) * kInUse);
  EXPECT_EQ(buffers.reserved().current, upstream.used());
}

TEST_F(StagingBuffersTest, ThreadsNeverGetTheSameBuffer) {
  const auto work = [&](unsigned char number) {
    for (int i = 0; i < 2000; ++i) {
      const Buffer buffer = buffers.allocate(kib(4U << static_cast<unsigned>(i % 3)));
      auto* const bytes = static_cast<unsigned char*>(buffer.pointer);
      std::fill_n(bytes, 4096, number);
      ASSERT_EQ(std::count(bytes, bytes + 4096, number), 4096);
      buffers.deallocate(buffer);
    }
  };
  std::thread other([&] { work(2); });
  work(1);
  other.join();
}

constexpr StreamId kStagingStream{1};
constexpr std::size_t kElements = 1'000'000;
constexpr Bytes kBuffer{kElements * sizeof(float)};

class StagingTest : public ::testing::Test {
 protected:
  /// An upstream without more room than for one buffer.
  MappedUpstream narrow{{kBuffer.count * 3 / 2}};
  MappedUpstream upstream{mib(64)};
  ManualProgress progress;
  Staging staging{upstream, progress};
};

TEST_F(StagingTest, ReusesABufferOnceItsCopyIsPassedAndNeverBefore) {
  const Buffer first = staging.acquire(kElements);
  staging.give_back(first, progress.enqueue(kStagingStream));
  const Buffer second = staging.acquire(kElements);
  EXPECT_NE(second, first) << "its copy has not been passed";
  progress.pass_all(kStagingStream);
  EXPECT_EQ(staging.acquire(kElements), first);
}

TEST_F(StagingTest, ReusesInTheOrderOfTheCopiesAsFarAsTheDeviceHasCome) {
  const Buffer first = staging.acquire(kElements);
  const Buffer second = staging.acquire(kElements);
  const Point first_copy = progress.enqueue(kStagingStream);
  const Point second_copy = progress.enqueue(kStagingStream);
  staging.give_back(first, first_copy);
  staging.give_back(second, second_copy);
  progress.pass(first_copy);
  EXPECT_EQ(staging.acquire(kElements), first);
  EXPECT_NE(staging.acquire(kElements), second);
  progress.pass(second_copy);
  EXPECT_EQ(staging.acquire(kElements), second);
}

TEST_F(StagingTest, CountsWhatItTookFromTheUpstreamAndTakesItOnce) {
  EXPECT_EQ(staging.memory().peak, Bytes{});
  for (int round = 0; round < 3; ++round) {
    const Buffer first = staging.acquire(kElements);
    const Buffer second = staging.acquire(kElements);
    staging.give_back(first, progress.enqueue(kStagingStream));
    staging.give_back(second, progress.enqueue(kStagingStream));
    progress.pass_all(kStagingStream);
    EXPECT_EQ(staging.memory().current, kBuffer * 2);
    EXPECT_EQ(staging.memory().current, upstream.used());
    EXPECT_EQ(staging.memory().peak, upstream.used());
    EXPECT_EQ(staging.upstream_calls(), 2U) << "round " << round;
  }
}

TEST_F(StagingTest, ReleasesSmallBuffersOnceTheirCopiesArePassed) {
  const Buffer small = staging.acquire(kElements);
  const Buffer large = staging.acquire(2 * kElements);
  staging.give_back(small, progress.enqueue(kStagingStream));
  staging.give_back(large, progress.enqueue(kStagingStream));
  staging.release_below(2 * kElements);
  EXPECT_EQ(upstream.used(), kBuffer * 3);
  progress.pass_all(kStagingStream);
  staging.release_below(2 * kElements);
  EXPECT_EQ(upstream.used(), kBuffer * 2);
  EXPECT_EQ(staging.acquire(kElements), large) << "a larger one serves too";
}

TEST(Staging, GivesAllMemoryBackToTheUpstream) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  {
    Staging staging(upstream, progress);
    staging.give_back(staging.acquire(kElements), progress.enqueue(kStagingStream));
    (void)staging.acquire(kElements);
    EXPECT_GT(upstream.used(), Bytes{});
  }
  EXPECT_EQ(upstream.used(), Bytes{});
}

TEST_F(StagingTest, WaitsForASubmittedCopyWhereTheUpstreamHasNoMoreRoom) {
  Staging full(narrow, progress);
  const Buffer only = full.acquire(kElements);
  const Point copy = progress.enqueue(kStagingStream);
  full.give_back(only, copy);
  EXPECT_EQ(full.acquire(kElements), only);
  ASSERT_EQ(progress.waits().size(), 1U);
}

TEST_F(StagingTest, IsOutOfMemoryWhereNoCopyWillGiveAnythingBack) {
  Staging full(narrow, progress);
  (void)full.acquire(kElements);
  EXPECT_THROW((void)full.acquire(kElements), OutOfMemory);
  EXPECT_TRUE(progress.waits().empty());
}

TEST_F(StagingTest, DoesNotWaitForTheDeviceWhileTheUpstreamHasRoom) {
  for (int i = 0; i < 10; ++i)
    staging.give_back(staging.acquire(kElements), progress.enqueue(kStagingStream));
  EXPECT_TRUE(progress.waits().empty());
}

}  // namespace
}  // namespace weir::testing
