#include <gtest/gtest.h>

#include "trainer/checkpoint/checkpointer.hpp"

namespace weir::testing {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(CheckpointSchedule, WithoutAReasonNoneIsDue) {
  EXPECT_FALSE(due({}, 1'000'000, minutes(1'000'000)));
}

TEST(CheckpointSchedule, ByBatchesOneIsDueFromTheirNumberOn) {
  const CheckpointSchedule schedule{.batches = 3};
  EXPECT_FALSE(due(schedule, 2, minutes(1000)));
  EXPECT_TRUE(due(schedule, 3, seconds(0)));
  EXPECT_TRUE(due(schedule, 4, seconds(0)));
}

TEST(CheckpointSchedule, ByTimeOneIsDueOnceItHasPassed) {
  const CheckpointSchedule schedule{.time = minutes(2)};
  EXPECT_FALSE(due(schedule, 1000, seconds(119)));
  EXPECT_TRUE(due(schedule, 1, seconds(120)));
  EXPECT_FALSE(due(schedule, 0, minutes(1000))) << "nothing is new";
}

TEST(CheckpointSchedule, WithBothTheFirstCounts) {
  const CheckpointSchedule schedule{.batches = 3, .time = minutes(2)};
  EXPECT_FALSE(due(schedule, 2, seconds(119)));
  EXPECT_TRUE(due(schedule, 3, seconds(1)));
  EXPECT_TRUE(due(schedule, 1, seconds(121)));
}

}  // namespace
}  // namespace weir::testing
