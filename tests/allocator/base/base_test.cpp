#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <thread>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/tick_clock.hpp"
#include "allocator/base/time_after.hpp"
#include "allocator/base/time_text.hpp"
#include "support/environment.hpp"
#include "support/log_capture.hpp"
#include "support/message_of.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

TEST(Error, HasTheExitCodeOfItsKind) {
  EXPECT_EQ(exit_code(UsageError("u")), 2);
  EXPECT_EQ(exit_code(OutOfMemory("o")), 3);
  EXPECT_EQ(exit_code(Cancelled("c")), 130);
  EXPECT_EQ(exit_code(Error("e")), 1);
  EXPECT_EQ(exit_code(std::runtime_error("r")), 1);
}

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

TEST(TimeText, HasAUnitAndEndsAtAnHour) {
  EXPECT_EQ(parse_time("7us"), std::chrono::microseconds(7));
  EXPECT_EQ(parse_time("250ms"), std::chrono::milliseconds(250));
  EXPECT_EQ(parse_time("3600s"), std::chrono::hours(1));
  for (const char* text : {"7us", "250ms", "3600s", "1500us"}) {
    EXPECT_EQ(exact_time(*parse_time(text)), text);
  }
  for (const char* bad : {"", "s", "10", "0s", "-1s", "1.5s", "3601s", "10 s", "1h"}) {
    EXPECT_FALSE(parse_time(bad)) << bad;
  }
}

TEST(ThreadNumbers, AreNeverUsedAgain) {
  std::set<std::uint64_t> numbers{this_thread_number()};
  for (int i = 0; i < 20; ++i) {
    std::thread([&] { EXPECT_TRUE(numbers.insert(this_thread_number()).second); }).join();
  }
  EXPECT_TRUE(numbers.contains(this_thread_number()));
}

TEST(TickClock, NeverGoesBackOnOneThread) {
  const TickClock clock;
  std::uint64_t last = clock.began();
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(TickClock, AgreesWithTheMonotonicClockBetweenAnyTwoReadings) {
  const TickClock clock;
  using Nanoseconds = std::chrono::duration<double, std::nano>;
  const auto before = std::chrono::steady_clock::now();
  const std::uint64_t first = clock.now();
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(20)) continue;
  const Nanoseconds inside = std::chrono::steady_clock::now() - began;
  const std::uint64_t second = clock.now();
  const Nanoseconds outside = std::chrono::steady_clock::now() - before;
  // However long the thread rests anywhere, up to the rate's error.
  const double ns = static_cast<double>(second - first) * clock.ns_per_tick();
  EXPECT_GE(ns, inside.count() * 0.99);
  EXPECT_LE(ns, outside.count() * 1.01);
}

}  // namespace

// Files that must not grow, written in a child process.

namespace {

/// A write that the system refuses with this signal. Exits with 0 if nothing else happens.
[[noreturn]] void write_too_much() {
  (void)std::signal(SIGXFSZ, SIG_DFL);
  std::FILE* const file = std::tmpfile();
  const rlimit none{0, 0};
  if (file == nullptr || setrlimit(RLIMIT_FSIZE, &none) != 0) std::_Exit(1);
  {
    const FileSizeSignalBlocked blocked;
    errno = 0;
    if (write(fileno(file), "x", 1) >= 0 || errno != EFBIG) std::_Exit(2);
  }
  std::_Exit(0);
}

bool is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

/// Exits with 0 if a signal that the program itself blocks is still pending afterwards.
[[noreturn]] void keep_the_programs_own() {
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, SIGXFSZ);
  (void)pthread_sigmask(SIG_BLOCK, &own, nullptr);
  (void)raise(SIGXFSZ);
  { const FileSizeSignalBlocked blocked; }
  std::_Exit(is_pending() ? 0 : 1);
}

TEST(FileSizeSignal, AFileThatMustNotGrowIsAnErrorOfTheWriteAlone) {
  EXPECT_EXIT(write_too_much(), ::testing::ExitedWithCode(0), "");
}

TEST(FileSizeSignal, OneThatTheProgramHoldsBackStays) {
  EXPECT_EXIT(keep_the_programs_own(), ::testing::ExitedWithCode(0), "");
}

}  // namespace

}  // namespace weir
