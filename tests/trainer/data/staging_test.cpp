#include "trainer/data/staging.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "allocator/base/error.hpp"
#include "support/manual_progress.hpp"
#include "support/print.hpp"

namespace weir::testing {
namespace {

constexpr StreamId kCopyStream{1};
constexpr std::size_t kElements = 1'000'000;
constexpr Bytes kBuffer{kElements * sizeof(float)};

TEST(Staging, ReusesABufferOnceItsCopyIsPassedAndNeverBefore) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress, kElements);
  float* const first = staging.acquire();
  staging.give_back(first, progress.enqueue(kCopyStream));
  float* const second = staging.acquire();
  EXPECT_NE(second, first) << "its copy has not been passed";
  progress.pass_all(kCopyStream);
  EXPECT_EQ(staging.acquire(), first);
}

TEST(Staging, ABufferInUseIsNeverHandedOutAgain) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress, kElements);
  std::vector<float*> buffers(5);
  for (float*& buffer : buffers) buffer = staging.acquire();
  std::ranges::sort(buffers);
  EXPECT_EQ(std::ranges::adjacent_find(buffers), buffers.end());
}

TEST(Staging, ReusesInTheOrderOfTheCopiesAsFarAsTheDeviceHasCome) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress, kElements);
  float* const first = staging.acquire();
  float* const second = staging.acquire();
  const Point first_copy = progress.enqueue(kCopyStream);
  const Point second_copy = progress.enqueue(kCopyStream);
  staging.give_back(first, first_copy);
  staging.give_back(second, second_copy);
  progress.pass(first_copy);
  EXPECT_EQ(staging.acquire(), first);
  EXPECT_NE(staging.acquire(), second);
  progress.pass(second_copy);
  EXPECT_EQ(staging.acquire(), second);
}

TEST(Staging, CountsWhatItTookFromTheUpstreamAndTakesItOnce) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress, kElements);
  EXPECT_EQ(staging.memory().peak, Bytes{});
  for (int round = 0; round < 3; ++round) {
    float* const first = staging.acquire();
    float* const second = staging.acquire();
    staging.give_back(first, progress.enqueue(kCopyStream));
    staging.give_back(second, progress.enqueue(kCopyStream));
    progress.pass_all(kCopyStream);
    EXPECT_EQ(staging.memory().current, kBuffer * 2);
    EXPECT_EQ(staging.memory().current, upstream.used());
    EXPECT_EQ(staging.memory().peak, upstream.used());
    EXPECT_EQ(staging.upstream_calls(), 2U) << "round " << round;
  }
}

TEST(Staging, GivesAllMemoryBackToTheUpstream) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  {
    Staging staging(upstream, progress, kElements);
    staging.give_back(staging.acquire(), progress.enqueue(kCopyStream));
    (void)staging.acquire();
    EXPECT_GT(upstream.used(), Bytes{});
  }
  EXPECT_EQ(upstream.used(), Bytes{});
}

TEST(Staging, WaitsForASubmittedCopyWhereTheUpstreamHasNoMoreRoom) {
  MappedUpstream upstream({kBuffer.count * 3 / 2});
  ManualProgress progress;
  Staging staging(upstream, progress, kElements);
  float* const only = staging.acquire();
  const Point copy = progress.enqueue(kCopyStream);
  staging.give_back(only, copy);
  EXPECT_EQ(staging.acquire(), only);
  ASSERT_EQ(progress.waits().size(), 1U);
}

TEST(Staging, IsOutOfMemoryWhereNoCopyWillGiveAnythingBack) {
  MappedUpstream upstream({kBuffer.count * 3 / 2});
  ManualProgress progress;
  Staging staging(upstream, progress, kElements);
  (void)staging.acquire();
  EXPECT_THROW((void)staging.acquire(), OutOfMemory);
  EXPECT_TRUE(progress.waits().empty());
}

TEST(Staging, DoesNotWaitForTheDeviceWhileTheUpstreamHasRoom) {
  MappedUpstream upstream(mib(64));
  ManualProgress progress;
  Staging staging(upstream, progress, kElements);
  for (int i = 0; i < 10; ++i) staging.give_back(staging.acquire(), progress.enqueue(kCopyStream));
  EXPECT_TRUE(progress.waits().empty());
}

}  // namespace
}  // namespace weir::testing
