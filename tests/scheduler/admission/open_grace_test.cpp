#include "scheduler/admission/open_grace.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace weir {
namespace {

using std::chrono::seconds;

constexpr seconds kGrace{10};
const OpenGrace::Time kStart{seconds(1000)};

TEST(OpenGrace, IsOverAtItsEnd) {
  OpenGrace grace;
  grace.observe(1, kStart, kGrace);
  EXPECT_EQ(grace.end(), kStart + kGrace);
  EXPECT_FALSE(grace.over(kStart + kGrace - seconds(1)));
  EXPECT_TRUE(grace.over(kStart + kGrace));
}

TEST(OpenGrace, OfTheGreatestLengthNeverEnds) {
  OpenGrace grace;
  grace.observe(1, kStart, std::chrono::nanoseconds::max());
  EXPECT_FALSE(grace.over(kStart + std::chrono::hours(1'000'000)));
}

TEST(OpenGrace, IsNotOverBeforeItBegins) {
  const OpenGrace grace;
  EXPECT_FALSE(grace.over(kStart));
}

// The last open batch closed between the decision to wait for it and the wait. The wait is short,
// but another batch may overtake in the line, and open, before it looks again.
TEST(OpenGrace, LastsItsWholeTimeAlsoWhereNoBatchIsOpen) {
  OpenGrace grace;
  grace.observe(0, kStart, kGrace);
  EXPECT_EQ(grace.end(), kStart + kGrace);
  EXPECT_FALSE(grace.over(kStart));
}

TEST(OpenGrace, GoesOnWhileTheNumberOfOpenBatchesStays) {
  OpenGrace grace;
  grace.observe(2, kStart, kGrace);
  grace.observe(2, kStart + seconds(4), kGrace);
  EXPECT_EQ(grace.end(), kStart + kGrace);
}

TEST(OpenGrace, BeginsAgainWhenABatchCloses) {
  OpenGrace grace;
  grace.observe(2, kStart, kGrace);
  grace.observe(1, kStart + seconds(4), kGrace);
  EXPECT_EQ(grace.end(), kStart + seconds(4) + kGrace);
}

TEST(OpenGrace, AfterAResetTheOldEndCountsForNothing) {
  OpenGrace grace;
  grace.observe(1, kStart, kGrace);
  grace.reset();
  EXPECT_FALSE(grace.over(kStart + kGrace));
  for (const std::uint64_t open : {0U, 1U}) {
    OpenGrace again = grace;
    again.observe(open, kStart + 2 * kGrace, kGrace);
    EXPECT_FALSE(again.over(kStart + 2 * kGrace)) << open << " open";
  }
}

}  // namespace
}  // namespace weir
