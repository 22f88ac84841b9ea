#include "trainer/dispatch/dispatch_model.hpp"

#include <gtest/gtest.h>

namespace weir::testing {
namespace {

/// Binary fractions, so that sums are exact.
constexpr Stages kDeviceSlower{
    .submit = 0.25, .submit_waking = 1, .execute = 8, .device = 8.5, .back = 2};
constexpr Stages kFrontendSlower{
    .submit = 8, .submit_waking = 9, .execute = 0.25, .device = 0.5, .back = 2};

TEST(DispatchModel, TheDeviceIsSlowerWhenAllItsWorkTakesLongerThanTheOtherCalls) {
  Stages s{.submit = 4, .execute = 3};
  EXPECT_EQ(slower_side(3, s), SlowerSide::kDevice);    // 9 > 8
  EXPECT_EQ(slower_side(4, s), SlowerSide::kFrontend);  // 12 = 12
  EXPECT_EQ(slower_side(5, s), SlowerSide::kFrontend);  // 15 < 16
  s.execute = 4;
  EXPECT_EQ(slower_side(1000, s), SlowerSide::kDevice);  // 4000 > 3996
}

TEST(DispatchModel, WaitingForEachOverlapsNothing) {
  EXPECT_EQ(predict_each(1000, kDeviceSlower), 10250);
  EXPECT_EQ(predict_each(1000, kFrontendSlower), 10250);
}

TEST(DispatchModel, WaitingOnceBehindASlowerDeviceLeavesOnlyItsWorkBetweenTheEnds) {
  EXPECT_EQ(predict_once(1000, kDeviceSlower), 8002.25);
}

TEST(DispatchModel, WaitingOnceBehindASlowerFrontendLeavesOnlyTheLastOperation) {
  constexpr Stages kNeverAsleep{.submit = 2, .submit_waking = 9, .execute = 0.5, .back = 2};
  EXPECT_FALSE(runs_dry(kNeverAsleep));
  EXPECT_EQ(predict_once_frontend(1000, kNeverAsleep), 2002.5);
}

TEST(DispatchModel, ADeviceThatRunsDryIsWokenByEveryCall) {
  EXPECT_TRUE(runs_dry(kFrontendSlower));
  EXPECT_FALSE(runs_dry(kDeviceSlower));
  EXPECT_EQ(predict_once_frontend(1000, kFrontendSlower), 9002.25);
}

TEST(DispatchModel, AWakingCallIsNeverTakenToBeTheCheaperOne) {
  Stages s = kFrontendSlower;
  s.submit_waking = 7;
  EXPECT_EQ(predict_once_frontend(1000, s), 8002.25);
}

TEST(DispatchModel, SidesThatExcludeEachOtherAddUp) {
  EXPECT_EQ(predict_once_in_turns(1000, kFrontendSlower), 8502);
}

TEST(DispatchModel, SidesAreApartWhicheverIsTheSlower) {
  EXPECT_TRUE(sides_apart(kDeviceSlower));
  EXPECT_TRUE(sides_apart(kFrontendSlower));
  EXPECT_FALSE(sides_apart({.submit = 1, .device = 8}));
  EXPECT_FALSE(sides_apart({.submit = 8, .device = 1}));
  EXPECT_FALSE(sides_apart({.submit = 1, .device = 1}));
}

TEST(DispatchModel, OneOperationIsOneRoundTripHoweverItIsWaitedFor) {
  EXPECT_EQ(predict_each(1, kDeviceSlower), 10.25);
  EXPECT_EQ(predict_once(1, kDeviceSlower), 10.25);
  EXPECT_EQ(predict_once_frontend(1, kDeviceSlower), 10.25);
}

}  // namespace
}  // namespace weir::testing
