#include "scheduler/admission/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/environment.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using ::testing::AllOf;
using testing::environment_of;
using ::testing::HasSubstr;
using testing::message_of;

TEST(Policy, EveryNameIsReadBackAsItIsWritten) {
  for (const Policy policy :
       {Policy::kThrottled, Policy::kBackstop, Policy::kUnbounded, Policy::kBarrier}) {
    EXPECT_EQ(parse_name<Policy>("WEIR_POLICY", to_string(policy)), policy);
  }
}

TEST(Policy, RefusalNamesTheVariableTheValueAndWhatIsAllowed) {
  for (const char* bad : {"", "Throttled", "throttled ", "none", "barriers"}) {
    const std::string message =
        message_of<UsageError>([&] { (void)parse_name<Policy>("WEIR_POLICY", bad); });
    EXPECT_THAT(message, AllOf(HasSubstr("WEIR_POLICY"), HasSubstr("'" + std::string(bad) + "'"),
                               HasSubstr("throttled"), HasSubstr("backstop"),
                               HasSubstr("unbounded"), HasSubstr("barrier")));
  }
}

TEST(Policy, OnlyUnboundedLeavesHandoverAndWaitingOut) {
  EXPECT_FALSE(running_out(Policy::kUnbounded).hand_over);
  EXPECT_FALSE(running_out(Policy::kUnbounded).wait);
  for (const Policy policy : {Policy::kThrottled, Policy::kBackstop, Policy::kBarrier}) {
    EXPECT_TRUE(running_out(policy).hand_over);
    EXPECT_TRUE(running_out(policy).wait);
  }
}

TEST(RunAhead, AutoIsTwoBatchesAndATimeThatAdapts) {
  const RunAhead run_ahead = parse_run_ahead("WEIR_RUN_AHEAD", "auto");
  EXPECT_EQ(run_ahead.batches, 2U);
  EXPECT_TRUE(adapts(run_ahead));
  for (const char* fixed : {"off", "3", "20ms"}) EXPECT_FALSE(adapts(parse_run_ahead("", fixed)));
}

TEST(RunAhead, ANumberIsThatManyBatchesWhateverTheirTime) {
  const RunAhead run_ahead = parse_run_ahead("WEIR_RUN_AHEAD", "3");
  EXPECT_FALSE(soft_limit_reached(2, std::chrono::hours(1), run_ahead));
  EXPECT_TRUE(soft_limit_reached(3, nanoseconds(0), run_ahead));
}

TEST(RunAhead, ATimeIsQueuedDeviceTime) {
  EXPECT_EQ(parse_run_ahead("", "20ms").time, milliseconds(20));
  EXPECT_EQ(parse_run_ahead("", "20ms").batches, 1U) << "the time alone decides";
  EXPECT_EQ(parse_run_ahead("", "150us").time, std::chrono::microseconds(150));
  EXPECT_EQ(parse_run_ahead("", "2s").time, std::chrono::seconds(2));
  EXPECT_EQ(parse_run_ahead("", "3600s").time, std::chrono::hours(1));
}

TEST(RunAhead, OffHasNoSoftLimit) {
  EXPECT_EQ(parse_run_ahead("WEIR_RUN_AHEAD", "off").batches, std::nullopt);
}

TEST(RunAhead, IsReadBackAsItIsWritten) {
  for (const char* text : {"auto", "off", "1", "7", "20ms", "150us", "2s"}) {
    const RunAhead run_ahead = parse_run_ahead("", text);
    EXPECT_EQ(parse_run_ahead("", format_run_ahead(run_ahead)), run_ahead) << text;
  }
}

TEST(RunAhead, RefusalNamesTheVariableTheValueAndWhatIsAllowed) {
  for (const char* bad : {"", "0", "-1", "1.5", "ms", "0ms", "20 ms", "20min", "3601s", "Auto",
                          "99999999999999999999", "18446744073709551615s"}) {
    const std::string message =
        message_of<UsageError>([&] { (void)parse_run_ahead("WEIR_RUN_AHEAD", bad); });
    EXPECT_THAT(message, AllOf(HasSubstr("WEIR_RUN_AHEAD"), HasSubstr("'" + std::string(bad) + "'"),
                               HasSubstr("auto"), HasSubstr("20ms"), HasSubstr("off")));
  }
}

TEST(PolicyOptions, ComeFromTheEnvironmentWithTheirSource) {
  const PolicyOptions set = PolicyOptions::from_environment(
      environment_of({{"WEIR_POLICY", "barrier"}, {"WEIR_RUN_AHEAD", "4"}}));
  EXPECT_EQ(set.policy.value, Policy::kBarrier);
  EXPECT_EQ(set.policy.source, "WEIR_POLICY");
  EXPECT_EQ(set.run_ahead.value.batches, 4U);
  EXPECT_EQ(set.run_ahead.source, "WEIR_RUN_AHEAD");

  const PolicyOptions unset = PolicyOptions::from_environment(environment_of({}));
  EXPECT_EQ(unset.policy.value, Policy::kThrottled);
  EXPECT_EQ(unset.run_ahead.value, RunAhead{});
  EXPECT_EQ(unset.policy.source, "default");
}

TEST(PolicyOptions, RefuseABadVariableByName) {
  EXPECT_THAT(message_of<UsageError>([] {
                (void)PolicyOptions::from_environment(environment_of({{"WEIR_POLICY", "fast"}}));
              }),
              HasSubstr("WEIR_POLICY='fast'"));
  EXPECT_THAT(message_of<UsageError>([] {
                (void)PolicyOptions::from_environment(environment_of({{"WEIR_RUN_AHEAD", "much"}}));
              }),
              HasSubstr("WEIR_RUN_AHEAD='much'"));
}

}  // namespace
}  // namespace weir
