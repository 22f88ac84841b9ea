#include "trainer/data/staging_buffers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "support/faulty_upstream.hpp"
#include "support/gate.hpp"
#include "support/print.hpp"

namespace weir::testing {
namespace {

using Buffer = StagingBuffers::Buffer;

TEST(StagingBuffers, TakesTheSmallestFreeBufferThatIsLargeEnough) {
  MappedUpstream upstream(mib(64));
  StagingBuffers buffers(upstream);
  const Buffer large = buffers.allocate(mib(4));
  const Buffer small = buffers.allocate(mib(1));
  const Buffer middle = buffers.allocate(mib(2));
  for (const Buffer& buffer : {middle, large, small}) buffers.deallocate(buffer);
  EXPECT_EQ(buffers.allocate(kib(1025)).pointer, middle.pointer);
  EXPECT_EQ(buffers.allocate(kib(1025)).pointer, large.pointer);
  EXPECT_EQ(buffers.allocate(mib(1)).pointer, small.pointer);
  EXPECT_EQ(buffers.upstream_calls(), 3U);
}

TEST(StagingBuffers, ASmallRequestReturnsALargeBufferWhole) {
  MappedUpstream upstream(mib(64));
  StagingBuffers buffers(upstream);
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

TEST(StagingBuffers, ReleasesOnlyFreeBuffersBelowASize) {
  MappedUpstream upstream(mib(64));
  StagingBuffers buffers(upstream);
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

TEST(StagingBuffers, ReturnsAllMemoryAtItsEnd) {
  MappedUpstream upstream(mib(64));
  {
    StagingBuffers buffers(upstream);
    buffers.deallocate(buffers.allocate(mib(1)));
    (void)buffers.allocate(mib(2));
    EXPECT_GT(upstream.used(), Bytes{});
  }
  EXPECT_EQ(upstream.used(), Bytes{});
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

TEST(StagingBuffers, ThreadsNeverGetTheSameBuffer) {
  MappedUpstream upstream(mib(64));
  StagingBuffers buffers(upstream);
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

}  // namespace
}  // namespace weir::testing
