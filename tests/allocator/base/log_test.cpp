#include "allocator/base/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "support/environment.hpp"
#include "support/log_capture.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Log, LetsThroughWhatIsAsSevereAsItsLevelAllows) {
  const testing::LogCapture capture;
  const LogLevel before = log_level();
  set_log_level(LogLevel::kWarn);
  log(LogLevel::kError, "an error");
  log(LogLevel::kWarn, "a warning");
  log(LogLevel::kInfo, "a note");
  set_log_level(LogLevel::kError);
  log(LogLevel::kWarn, "another warning");
  set_log_level(before);
  EXPECT_THAT(capture.containing(""), ElementsAre("an error", "a warning"));
}

TEST(Log, EveryLevelIsReadBackAsItIsWritten) {
  for (const LogLevel level :
       {LogLevel::kError, LogLevel::kWarn, LogLevel::kInfo, LogLevel::kDebug}) {
    EXPECT_EQ(parse_name<LogLevel>("WEIR_LOG", to_string(level)), level);
  }
}

TEST(Log, ReadsItsLevelAndRefusesAnUnknownOne) {
  EXPECT_EQ(log_level_from_environment(testing::environment_of({})), LogLevel::kWarn);
  EXPECT_EQ(log_level_from_environment(testing::environment_of({{"WEIR_LOG", "debug"}})),
            LogLevel::kDebug);
  EXPECT_THAT(testing::message_of<UsageError>([] {
                (void)log_level_from_environment(testing::environment_of({{"WEIR_LOG", "loud"}}));
              }),
              AllOf(HasSubstr("WEIR_LOG='loud'"), HasSubstr("error, warn, info or debug")));
}

}  // namespace
}  // namespace weir
