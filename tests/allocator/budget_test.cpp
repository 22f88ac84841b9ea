#include "allocator/budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;

TEST(Budget, IsASizeOrAShare) {
  EXPECT_EQ(parse_budget("WEIR_BUDGET", "96MiB"), (BudgetRequest{.bytes = mib(96)}));
  EXPECT_EQ(parse_budget("WEIR_BUDGET", "1B"), (BudgetRequest{.bytes = {1}}));
  EXPECT_EQ(parse_budget("WEIR_BUDGET", "80%"), (BudgetRequest{.percent = 80}));
  EXPECT_EQ(parse_budget("WEIR_BUDGET", "12.5%"), (BudgetRequest{.percent = 12.5}));
  EXPECT_EQ(parse_budget("WEIR_BUDGET", "100%"), (BudgetRequest{.percent = 100}));
}

TEST(Budget, RefusesWithTheVariableTheValueAndWhatIsAllowed) {
  for (const char* text :
       {"lots", "", "96", "0B", "0MiB", "0.0001B", "-6GiB", "0%", "-5%", "101%", "100.1%", "nan%",
        "inf%", "%", "5 %", "1e1%", "99999999999999999999GiB"}) {
    EXPECT_THAT(message_of<UsageError>([&] { (void)parse_budget("WEIR_BUDGET", text); }),
                AllOf(HasSubstr("WEIR_BUDGET='" + std::string(text) + "'"), HasSubstr("above zero"),
                      HasSubstr("up to 100%")));
  }
}

TEST(Budget, AReserveIsWhatIsLeftOfTheDevice) {
  EXPECT_EQ(parse_reserve("R", "0"), (BudgetRequest{.percent = 100}));
  EXPECT_EQ(parse_reserve("R", "5"), (BudgetRequest{.percent = 95}));
  EXPECT_EQ(parse_reserve("R", "99"), (BudgetRequest{.percent = 1}));
  for (const char* text : {"100", "101", "-1", "5%", "five", "2.5", ""}) {
    EXPECT_THAT(
        message_of<UsageError>([&] { (void)parse_reserve("MXNET_GPU_MEM_POOL_RESERVE", text); }),
        AllOf(HasSubstr("MXNET_GPU_MEM_POOL_RESERVE='" + std::string(text) + "'"),
              HasSubstr("0 to 99")));
  }
}

TEST(Budget, ComesToAPartOfTheDevice) {
  EXPECT_EQ(resolve_budget({.bytes = mib(96)}, gib(1), "budget"), mib(96));
  EXPECT_EQ(resolve_budget({.bytes = gib(1)}, gib(1), "budget"), gib(1));
  EXPECT_EQ(resolve_budget({.percent = 50}, gib(1), "budget"), mib(512));
  EXPECT_EQ(resolve_budget({.percent = 95}, {1000}, "budget"), Bytes{950});
}

TEST(Budget, TheWholeDeviceIsAllOfIt) {
  for (std::uint64_t total = 1; total < 100'000; ++total) {
    ASSERT_EQ(resolve_budget({.percent = 100}, {total}, "budget"), Bytes{total});
  }
  // Totals that drivers report.
  for (const std::uint64_t total : {85'028'765'696U, 150'754'820'096U, 25'393'692'672U}) {
    EXPECT_EQ(resolve_budget({.percent = 100}, {total}, "budget"), Bytes{total});
  }
}

TEST(Budget, RefusesMoreThanTheDeviceHasAndNothing) {
  EXPECT_THAT(message_of<UsageError>(
                  [] { (void)resolve_budget({.bytes = gib(2)}, gib(1), "budget (WEIR_BUDGET)"); }),
              AllOf(HasSubstr("WEIR_BUDGET"), HasSubstr("2 GiB"),
                    HasSubstr("at most the device's memory, 1 GiB")));
  EXPECT_THROW((void)resolve_budget({.bytes = {1025}}, kib(1), "budget"), UsageError);
  EXPECT_THROW((void)resolve_budget({.percent = 50}, {1}, "budget"), UsageError);
  EXPECT_THROW((void)resolve_budget({}, gib(1), "budget"), UsageError);
}

TEST(Budget, ThatWasAskedForIsRefusedWhereItIsNotFree) {
  constexpr std::string_view kName = "budget (WEIR_BUDGET)";
  EXPECT_EQ(fit_budget(gib(1), gib(1), gib(4), kName, false), gib(1));
  EXPECT_THAT(
      message_of<UsageError>([kName] { (void)fit_budget(gib(2), gib(1), gib(4), kName, false); }),
      AllOf(HasSubstr("WEIR_BUDGET"), HasSubstr("2 GiB"),
            HasSubstr("only 1 GiB of the device's 4 GiB are free")));
}

TEST(Budget, ByDefaultIsWhatIsFreeUnlessTheDeviceIsFull) {
  EXPECT_EQ(fit_budget(gib(19), gib(2), gib(20), "budget", true), gib(2));
  EXPECT_EQ(fit_budget(gib(19), gib(1), gib(20), "budget", true), gib(1)) << "a twentieth of it";
  EXPECT_EQ(
      message_of<UsageError>([] { (void)fit_budget(gib(19), mib(1023), gib(20), "budget", true); }),
      "the device is full: only 1023 MiB of the device's 20 GiB are free: stop other programs on "
      "the device, or use "
      "another device");
}

TEST(Budget, IsWrittenAsItWasAsked) {
  EXPECT_EQ(format_budget({.bytes = mib(96)}), "96 MiB");
  EXPECT_EQ(format_budget({.percent = 95}), "95%");
  EXPECT_EQ(format_budget({.percent = 12.5}), "12.5%");
}

TEST(Budget, ExactTextIsReadBack) {
  EXPECT_EQ(exact_budget({.percent = 95}), "95%");
  EXPECT_EQ(exact_budget({.bytes = mib(96)}), "96MiB");
  for (const char* text : {"33.3333333%", "0.00012%", "1187841B", "6GiB"}) {
    const BudgetRequest request = parse_budget("budget", text);
    EXPECT_EQ(parse_budget("budget", exact_budget(request)), request) << exact_budget(request);
  }
}

}  // namespace
}  // namespace weir
