#include "bench/simulate/dynamic_limit.hpp"

#include <gtest/gtest.h>

namespace weir::simulate {
namespace {

TEST(DynamicLimit, GrowsWhenTheQueueRanDry) {
  DynamicLimit limit;
  limit.queue(100);
  EXPECT_TRUE(limit.is_full()) << "it begins at zero: one object over it";
  limit.complete(100, Time(1));
  EXPECT_EQ(limit.limit(), 100U);
  EXPECT_FALSE(limit.is_full());
}

TEST(DynamicLimit, ShrinksByTheLeastSlackOfASecond) {
  DynamicLimit limit;
  limit.queue(1000);
  limit.complete(1000, Time(1));
  ASSERT_EQ(limit.limit(), 1000U);
  // From now on 100 of the 1,000 go at a time, and the queue never runs dry.
  limit.queue(1000);
  for (int i = 0; i < 30; ++i) {
    limit.complete(100, std::chrono::milliseconds(50 * (i + 1)));
    limit.queue(100);
  }
  EXPECT_LT(limit.limit(), 1000U);
  EXPECT_GE(limit.limit(), 200U) << "twice what goes at a time is not slack";
}

TEST(DynamicLimit, AQueueThatIsNeverFullKeepsItsLimit) {
  DynamicLimit limit;
  limit.queue(1000);
  limit.complete(1000, Time(1));
  for (int i = 0; i < 30; ++i) {
    limit.queue(10);
    EXPECT_FALSE(limit.is_full());
    limit.complete(10, std::chrono::milliseconds(50 * (i + 1)));
  }
  EXPECT_EQ(limit.limit(), 1000U);
}

}  // namespace
}  // namespace weir::simulate
