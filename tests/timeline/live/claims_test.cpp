// Which file that names a program is trusted, by the process that the kernel reports for it.

#include "tools/timeline/live/claims.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "live_support.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<bool> believed_of(const std::vector<Claim>& claims) { return believed(claims); }

TEST(LiveClaims, OneAloneIsBelievedUnlessAnotherHasItsLock) {
  EXPECT_THAT(believed_of({}), IsEmpty());
  EXPECT_THAT(believed_of({{.pid = 7, .started = 3, .holder = LockHolder::kNamed}}),
              ElementsAre(true));
  EXPECT_THAT(believed_of({{.pid = 7, .started = 3, .holder = LockHolder::kUnseen}}),
              ElementsAre(true));
  EXPECT_THAT(believed_of({{.pid = 7, .started = 3, .holder = LockHolder::kAnother}}),
              ElementsAre(false));
}

TEST(LiveClaims, OfSeveralTheOneIsBelievedWhoseProcessHasTheLock) {
  EXPECT_THAT(believed_of({{.pid = 7, .started = 3, .holder = LockHolder::kUnseen},
                           {.pid = 7, .started = 3, .holder = LockHolder::kNamed},
                           {.pid = 7, .started = 3, .pid_namespace = 5},
                           {.pid = 7, .started = 3, .holder = LockHolder::kAnother}}),
              ElementsAre(false, true, false, false));
}

TEST(LiveClaims, OfSeveralThatNothingTellsApartNoneIsBelieved) {
  EXPECT_THAT(believed_of({{.pid = 7, .started = 3}, {.pid = 7, .started = 3}, {.pid = 8}}),
              ElementsAre(false, false, true));
}

TEST(LiveClaims, ProcessesOfOneNumberAreOthersByTheirStartAndNamespace) {
  EXPECT_THAT(believed_of({{.pid = 7, .started = 3, .pid_namespace = 1},
                           {.pid = 7, .started = 4, .pid_namespace = 1},
                           {.pid = 7, .started = 3, .pid_namespace = 2}}),
              ElementsAre(true, true, true));
}

TEST(LiveClaims, AProcessMayHaveSeveralFiles) {
  EXPECT_THAT(believed_of({{.pid = 7, .holder = LockHolder::kNamed},
                           {.pid = 7, .holder = LockHolder::kNamed}}),
              ElementsAre(true, true))
      << "weir-train in which libweir.so is";
}

TEST(LiveLocks, AreReadFromTheKernelsList) {
  EXPECT_THAT(flock_holders("1: FLOCK  ADVISORY  WRITE 8053 00:1b:131893 0 EOF\n"
                            "1: -> FLOCK  ADVISORY  WRITE 8054 00:1b:131893 0 EOF\n"
                            "2: FLOCK  ADVISORY  READ  8055 00:1b:131894 0 EOF\n"
                            "3: POSIX  ADVISORY  WRITE 8056 00:1b:131895 0 EOF\n"
                            "4: OFDLCK ADVISORY  WRITE -1 00:1b:131896 0 EOF\n"
                            "5: FLOCK  ADVISORY  WRITE -1 00:1b:131897 0 EOF\n"
                            "6: FLOCK  ADVISORY  WRITE 8057 fe:00:1 0 EOF\n"
                            "7: FLOCK\n\nnothing"),
              ElementsAre(Pair("00:1b:131893", 8053), Pair("fe:00:1", 8057)));
  EXPECT_THAT(flock_holders(""), IsEmpty());
  EXPECT_EQ(file_number(makedev(0, 0x1b), 131893), "00:1b:131893");
  EXPECT_EQ(file_number(makedev(0x103, 2), 1), "103:02:1");
}

TEST(LiveLocks, KnowTheHolderOfALockThatCameLater) {
  const Place place;
  LockList locks;
  const Forged file(place, LiveBlock{.pid = 7});
  struct stat found {};
  ASSERT_EQ(stat((place.path() + "/7-2.live").c_str(), &found), 0);
  EXPECT_EQ(locks.holder_of(found.st_dev, found.st_ino), static_cast<std::uint32_t>(getpid()));
  file.unlock();
  LockList later;
  EXPECT_FALSE(later.holder_of(found.st_dev, found.st_ino));
}

}  // namespace
}  // namespace weir::timeline::testing
