#include "allocator/base/time_after.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Time = std::chrono::steady_clock::time_point;

constexpr Time kNow{hours(1000)};

TEST(TimeAfter, IsTheSumWhereItFits) {
  EXPECT_EQ(time_after(kNow, seconds(5)), Time(hours(1000) + seconds(5)));
  EXPECT_EQ(time_after(kNow, std::chrono::duration<double>(0.5)), kNow + nanoseconds(500'000'000));
  EXPECT_EQ(time_after(kNow, Time::max() - kNow), Time::max());
}

TEST(TimeAfter, IsTheLatestTimeWhereTheSumDoesNotFit) {
  EXPECT_EQ(time_after(kNow, nanoseconds::max()), Time::max());
  EXPECT_EQ(time_after(kNow, std::chrono::milliseconds::max()), Time::max());
  EXPECT_EQ(time_after(kNow, hours::max()), Time::max());
  EXPECT_EQ(time_after(kNow, std::chrono::duration<double>(1e300)), Time::max());
  EXPECT_EQ(time_after(nanoseconds::max(), nanoseconds(1)), nanoseconds::max());
}

TEST(TimeAfter, IsNowForANegativeLength) {
  EXPECT_EQ(time_after(kNow, seconds(-1)), kNow);
  EXPECT_EQ(time_after(kNow, nanoseconds::min()), kNow);
}

}  // namespace
}  // namespace weir
