#include "allocator/progress/sleep_spacing.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// Returns how many of `operations` are due after `known` ones that took `took` each.
int due_of(int operations, int known, nanoseconds took) {
  SleepSpacing spacing;
  for (int i = 0; i < known; ++i) spacing.note(took);
  int due = 0;
  for (int i = 0; i < operations; ++i) due += spacing.due(0) ? 1 : 0;
  return due;
}

TEST(SleepSpacing, EachOperationIsDueUntilTheirTimeIsKnown) { EXPECT_EQ(due_of(50, 0, {}), 50); }

TEST(SleepSpacing, EachLongOperationIsDue) {
  EXPECT_EQ(due_of(50, 10, SleepSpacing::kApart), 50);
  EXPECT_EQ(due_of(50, 10, std::chrono::seconds(2)), 50);
}

TEST(SleepSpacing, ShortOperationsAreDueAsOftenAsTheirTimeAddsUp) {
  EXPECT_EQ(due_of(400, 10, microseconds(20)), 40);
  EXPECT_EQ(due_of(400, 10, microseconds(150)), 200);
  EXPECT_EQ(due_of(400, 10, nanoseconds(0)), 0);
}

TEST(SleepSpacing, NoMoreAreDueThanAQueueHasRoomFor) {
  SleepSpacing spacing;
  EXPECT_TRUE(spacing.due(SleepSpacing::kMost - 1));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(spacing.due(SleepSpacing::kMost));
  EXPECT_TRUE(spacing.due(SleepSpacing::kMost - 1)) << "one was passed";
}

TEST(SleepSpacing, OneBehindAllIsEnoughIfTheyEndSoon) {
  SleepSpacing spacing;
  EXPECT_TRUE(spacing.soon(2));
  EXPECT_FALSE(spacing.soon(3));
  for (int i = 0; i < 1000; ++i) spacing.note(microseconds(20));
  EXPECT_TRUE(spacing.soon(19));
  EXPECT_FALSE(spacing.soon(30));
  for (int i = 0; i < 1000; ++i) spacing.note({});
  EXPECT_TRUE(spacing.soon(5'000)) << "operations without any time";
}

TEST(SleepSpacing, FollowsOperationsThatBecomeLonger) {
  SleepSpacing spacing;
  for (int i = 0; i < 1000; ++i) spacing.note(microseconds(1));
  for (int i = 0; i < 400; ++i) spacing.note(microseconds(500));
  EXPECT_GT(spacing.average(), microseconds(490));
  for (int i = 0; i < 400; ++i) spacing.note(microseconds(1));
  EXPECT_LT(spacing.average(), microseconds(3));
}

// Whoever learns of several operations at once gives the first all of their time.
TEST(SleepSpacing, TakesTimesThatAreLearnedInGroups) {
  SleepSpacing spacing;
  for (int i = 0; i < 1000; ++i) spacing.note(i % 10 == 0 ? microseconds(100) : nanoseconds(0));
  EXPECT_NEAR(static_cast<double>(spacing.average().count()), 10'000, 1'500);
}

}  // namespace
}  // namespace weir
