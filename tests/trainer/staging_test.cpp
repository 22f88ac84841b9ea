#include "trainer/staging.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/manual_progress.hpp"
#include "support/print.hpp"

namespace weir::testing {
namespace {

constexpr StreamId kCopyStream{1};
constexpr std::size_t kElements = 100;
constexpr Bytes kBuffer{kElements * sizeof(float)};

TEST(Staging, ReusesABufferOnceItsCopyIsPassedAndNeverBefore) {
  ManualProgress progress;
  Staging staging(progress, kElements);
  float* const first = staging.acquire();
  staging.give_back(first, progress.enqueue(kCopyStream));
  float* const second = staging.acquire();
  EXPECT_NE(second, first) << "its copy has not been passed";
  progress.pass_all(kCopyStream);
  EXPECT_EQ(staging.acquire(), first);
}

TEST(Staging, ABufferInUseIsNeverHandedOutAgain) {
  ManualProgress progress;
  Staging staging(progress, kElements);
  std::vector<float*> buffers(5);
  for (float*& buffer : buffers) buffer = staging.acquire();
  std::ranges::sort(buffers);
  EXPECT_EQ(std::ranges::adjacent_find(buffers), buffers.end());
}

TEST(Staging, ReusesInTheOrderOfTheCopiesAsFarAsTheDeviceHasCome) {
  ManualProgress progress;
  Staging staging(progress, kElements);
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

TEST(Staging, CountsTheMemoryOfEveryBufferThatItMade) {
  ManualProgress progress;
  Staging staging(progress, kElements);
  EXPECT_EQ(staging.memory().peak, Bytes{});
  float* const buffer = staging.acquire();
  (void)staging.acquire();
  EXPECT_EQ(staging.memory().current, kBuffer * 2);
  staging.give_back(buffer, progress.enqueue(kCopyStream));
  progress.pass_all(kCopyStream);
  (void)staging.acquire();
  EXPECT_EQ(staging.memory().current, kBuffer * 2) << "a reused buffer is not another one";
  EXPECT_EQ(staging.memory().peak, kBuffer * 2);
}

TEST(Staging, NeverWaitsForTheDevice) {
  ManualProgress progress;
  Staging staging(progress, kElements);
  for (int i = 0; i < 10; ++i) staging.give_back(staging.acquire(), progress.enqueue(kCopyStream));
  EXPECT_TRUE(progress.waits().empty());
}

}  // namespace
}  // namespace weir::testing
