#include "trainer/data/staging.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "allocator/base/error.hpp"
#include "support/manual_progress.hpp"
#include "support/print.hpp"

namespace weir::testing {
namespace {

constexpr StreamId kCopyStream{1};
using Buffer = Staging::Buffer;
constexpr std::size_t kElements = 1'000'000;
constexpr Bytes kBuffer{kElements * sizeof(float)};

TEST(Staging, ReusesABufferOnceItsCopyIsPassedAndNeverBefore) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress);
  const Buffer first = staging.acquire(kElements);
  staging.give_back(first, progress.enqueue(kCopyStream));
  const Buffer second = staging.acquire(kElements);
  EXPECT_NE(second, first) << "its copy has not been passed";
  progress.pass_all(kCopyStream);
  EXPECT_EQ(staging.acquire(kElements), first);
}

TEST(Staging, ABufferInUseIsNeverHandedOutAgain) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress);
  std::vector<Buffer> buffers(5);
  for (Buffer& buffer : buffers) buffer = staging.acquire(kElements);
  std::ranges::sort(buffers, {}, &Buffer::pointer);
  EXPECT_EQ(std::ranges::adjacent_find(buffers, {}, &Buffer::pointer), buffers.end());
}

TEST(Staging, ReusesInTheOrderOfTheCopiesAsFarAsTheDeviceHasCome) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress);
  const Buffer first = staging.acquire(kElements);
  const Buffer second = staging.acquire(kElements);
  const Point first_copy = progress.enqueue(kCopyStream);
  const Point second_copy = progress.enqueue(kCopyStream);
  staging.give_back(first, first_copy);
  staging.give_back(second, second_copy);
  progress.pass(first_copy);
  EXPECT_EQ(staging.acquire(kElements), first);
  EXPECT_NE(staging.acquire(kElements), second);
  progress.pass(second_copy);
  EXPECT_EQ(staging.acquire(kElements), second);
}

TEST(Staging, CountsWhatItTookFromTheUpstreamAndTakesItOnce) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress);
  EXPECT_EQ(staging.memory().peak, Bytes{});
  for (int round = 0; round < 3; ++round) {
    const Buffer first = staging.acquire(kElements);
    const Buffer second = staging.acquire(kElements);
    staging.give_back(first, progress.enqueue(kCopyStream));
    staging.give_back(second, progress.enqueue(kCopyStream));
    progress.pass_all(kCopyStream);
    EXPECT_EQ(staging.memory().current, kBuffer * 2);
    EXPECT_EQ(staging.memory().current, upstream.used());
    EXPECT_EQ(staging.memory().peak, upstream.used());
    EXPECT_EQ(staging.upstream_calls(), 2U) << "round " << round;
  }
}

TEST(Staging, ReleasesSmallBuffersOnceTheirCopiesArePassed) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress);
  const Buffer small = staging.acquire(kElements);
  const Buffer large = staging.acquire(2 * kElements);
  staging.give_back(small, progress.enqueue(kCopyStream));
  staging.give_back(large, progress.enqueue(kCopyStream));
  staging.release_below(2 * kElements);
  EXPECT_EQ(upstream.used(), kBuffer * 3);
  progress.pass_all(kCopyStream);
  staging.release_below(2 * kElements);
  EXPECT_EQ(upstream.used(), kBuffer * 2);
  EXPECT_EQ(staging.acquire(kElements), large) << "a larger one serves too";
}

TEST(Staging, GivesAllMemoryBackToTheUpstream) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  {
    Staging staging(upstream, progress);
    staging.give_back(staging.acquire(kElements), progress.enqueue(kCopyStream));
    (void)staging.acquire(kElements);
    EXPECT_GT(upstream.used(), Bytes{});
  }
  EXPECT_EQ(upstream.used(), Bytes{});
}

TEST(Staging, WaitsForASubmittedCopyWhereTheUpstreamHasNoMoreRoom) {
  MappedUpstream upstream({kBuffer.count * 3 / 2});
  ManualProgress progress;
  Staging staging(upstream, progress);
  const Buffer only = staging.acquire(kElements);
  const Point copy = progress.enqueue(kCopyStream);
  staging.give_back(only, copy);
  EXPECT_EQ(staging.acquire(kElements), only);
  ASSERT_EQ(progress.waits().size(), 1U);
}

TEST(Staging, IsOutOfMemoryWhereNoCopyWillGiveAnythingBack) {
  MappedUpstream upstream({kBuffer.count * 3 / 2});
  ManualProgress progress;
  Staging staging(upstream, progress);
  (void)staging.acquire(kElements);
  EXPECT_THROW((void)staging.acquire(kElements), OutOfMemory);
  EXPECT_TRUE(progress.waits().empty());
}

TEST(Staging, DoesNotWaitForTheDeviceWhileTheUpstreamHasRoom) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress);
  for (int i = 0; i < 10; ++i)
    staging.give_back(staging.acquire(kElements), progress.enqueue(kCopyStream));
  EXPECT_TRUE(progress.waits().empty());
}

}  // namespace
}  // namespace weir::testing
