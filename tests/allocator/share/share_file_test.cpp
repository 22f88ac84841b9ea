// What a share's file refuses, each in one line, and what nonsense in it cannot do.

#include "allocator/share/share_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "support/log_capture.hpp"
#include "support/message_of.hpp"
#include "support/share_fixture.hpp"

namespace weir {
namespace {

using testing::Child;
using ::testing::HasSubstr;
using testing::kBudget;
using testing::kFloor;
using ::testing::Not;
using testing::OwnShare;
using testing::Raw;
using testing::Signal;

std::string refusal(const OwnShare& own) {
  return testing::message_of<UsageError>([&] { const Share share(own.options(kBudget, kFloor)); });
}

/// Leaves a whole file with nobody attached.
void make_file(const OwnShare& own) { const ShareFile file = ShareFile::open(own.id, kBudget); }

TEST(ShareFile, AFileThatIsNoShareOrOfAnotherLayoutIsRefusedInOneLine) {
  struct Case {
    const char* name;
    void (*change)(ShareHeader&);
    const char* says;
  };
  const std::array cases{
      Case{"magic", [](ShareHeader& h) { h.magic[0] = 'W'; }, "no share of Weir"},
      Case{"version", [](ShareHeader& h) { h.version = 7; }, "its layout is version 7, and"},
      Case{"size", [](ShareHeader& h) { h.size = 12; }, "bytes instead of"},
      Case{"owner", [](ShareHeader& h) { h.owner += 1; }, "for user"},
      Case{"group", [](ShareHeader& h) { h.owner_is_group = 1; }, "for group"},
      Case{"no budget", [](ShareHeader& h) { h.budget = 0; }, "changed by something"},
      Case{"huge budget", [](ShareHeader& h) { h.budget = UINT64_MAX; }, "changed by something"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const OwnShare own;
    make_file(own);
    ShareHeader header = header_of(own.id.owner, kBudget);
    each.change(header);
    header.check = check_of(header);
    Raw(own.id).write_header(header);
    const std::string message = refusal(own);
    EXPECT_THAT(message, HasSubstr(each.says));
    EXPECT_THAT(message, HasSubstr(own.id.path()));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

TEST(ShareFile, AHeaderWithoutItsCheckIsRefused) {
  const OwnShare own;
  make_file(own);
  ShareHeader header = header_of(own.id.owner, kBudget);
  header.budget += 1;
  Raw(own.id).write_header(header);
  EXPECT_THAT(refusal(own), HasSubstr("changed by something other than Weir"));
}

TEST(ShareFile, AFileOfTheWrongKindModeOrNamesIsRefused) {
  const OwnShare own;
  const std::string path = own.id.path();
  make_file(own);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_THAT(refusal(own), HasSubstr("open to others"));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  const std::string second = path + "-second";
  ASSERT_EQ(link(path.c_str(), second.c_str()), 0);
  EXPECT_THAT(refusal(own), HasSubstr("second name"));
  unlink(second.c_str());
  ASSERT_EQ(truncate(path.c_str(), 10), 0);
  EXPECT_THAT(refusal(own), HasSubstr("too short"));
  unlink(path.c_str());
  ASSERT_EQ(symlink("/dev/null", path.c_str()), 0);
  EXPECT_THAT(refusal(own), HasSubstr("refused"));
  unlink(path.c_str());
  ASSERT_EQ(mkdir(path.c_str(), 0600), 0);
  EXPECT_THAT(refusal(own), HasSubstr("refused"));
  rmdir(path.c_str());
  EXPECT_NO_THROW(Share(own.options(kBudget, kFloor))) << "and without it the name is free";
}

TEST(ShareFile, AFileOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const OwnShare own;
  make_file(own);
  ASSERT_EQ(chown(own.id.path().c_str(), 12345, static_cast<gid_t>(-1)), 0);
  EXPECT_THAT(refusal(own), HasSubstr("belongs to another user"));
}

TEST(ShareFile, AGroupsFileIsForTheGroup) {
  OwnShare own;
  own.id.owner = {.id = getegid(), .is_group = true};
  const Share share(own.options(kBudget, kFloor));
  struct stat found {};
  ASSERT_EQ(stat(own.id.path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0660U);
  EXPECT_EQ(found.st_gid, getegid());
  EXPECT_THAT(own.id.path(), HasSubstr("weir-share-g"));
  const ShareId again = ShareId::of_file(own.id.path().substr(own.id.path().rfind('/') + 1));
  EXPECT_EQ(again.name, own.id.name);
  EXPECT_EQ(again.owner, own.id.owner);
  unlink(own.id.path().c_str());
}

TEST(ShareFile, EverySlotInUseIsSeenWhateverTheOrderOfItsLock) {
  const OwnShare own;
  const ShareFile seen = ShareFile::open(own.id, kBudget);
  std::mt19937_64 random(2);
  std::vector<std::optional<ShareFile>> files(kShareSlots);
  std::vector<std::size_t> index(kShareSlots);
  std::vector<bool> is_used(kShareSlots);
  for (int i = 0; i < 2000; ++i) {
    // A file that comes later than another may get an earlier slot.
    const std::size_t at = random() % 24;
    if (files[at]) {
      is_used[index[at]] = false;
      files[at].reset();
    } else {
      files[at].emplace(ShareFile::open(own.id, kBudget));
      const auto slot = files[at]->take_slot();
      ASSERT_TRUE(slot.has_value());
      index[at] = *slot;
      is_used[*slot] = true;
    }
    std::vector<bool> found(kShareSlots);
    for (const ShareSlots::Used& used : seen.read().used) found[used.index] = true;
    ASSERT_EQ(found, is_used) << i;
  }
}

TEST(ShareFile, OnlyNamesOfSharesAreRead) {
  for (const char* file : {"", "weir-share-", "weir-share-12", "weir-share-12-", "weir-share-x-a",
                           "weir-share-g-a", "weir-share-99999999999-a", "weir-share-1-a/b"}) {
    EXPECT_EQ(ShareId::of_file(file).name, "") << file;
  }
  EXPECT_EQ(ShareId::of_file("weir-share-12-a.b_c-1").name, "a.b_c-1");
}

/// From now on the kernel does not tell this process who has locked what.
bool refuse_to_tell_locks() {
  constexpr auto kCall = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  constexpr auto kCommand = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8);
  std::array<sock_filter, 6> rules{{
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, kCall},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, __NR_fcntl},
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, kCommand},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, F_OFD_GETLK},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOLCK},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  }};
  const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(ShareFile, WithoutTheKernelsAnswerNobodyRaisesAttachesOrRemovesTheFile) {
  constexpr int kNoFilters = 77;
  const OwnShare own;
  const Share other(own.options(kBudget, kFloor));
  Child child([&] {
    auto share = std::make_unique<Share>(own.options(kBudget, kFloor));
    if (!refuse_to_tell_locks()) return kNoFilters;
    if (share->raise(mib(20)) != kFloor) return 1;
    if (refusal(own).find("does not say who uses it") == std::string::npos) return 2;
    share.reset();
    return 0;
  });
  const int code = child.wait();
  if (code == kNoFilters) GTEST_SKIP() << "the kernel filters no calls";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(access(own.id.path().c_str(), F_OK), 0);
}

/// Returns this process's descriptor of the share's file.
int descriptor_of(const ShareId& id) {
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    struct stat open {};
    struct stat named {};
    if (fstat(descriptor, &open) == 0 && stat(id.path().c_str(), &named) == 0 &&
        open.st_ino == named.st_ino && open.st_dev == named.st_dev) {
      return descriptor;
    }
  }
  return -1;
}

// Programs that close all descriptors they do not know exist.
TEST(ShareFile, WhatTheProgramOpensUnderAClosedDescriptorsNumberIsNotWritten) {
  const testing::LogCapture log;
  const OwnShare own;
  const std::string path = own.id.path() + "-of-the-program";
  const auto share = std::make_unique<Share>(own.options(kBudget, kFloor));
  ASSERT_EQ(share->raise(mib(20)), mib(20));
  const int descriptor = descriptor_of(own.id);
  ASSERT_GE(descriptor, 0);
  const int of_program = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::string text(4096, 'x');
  ASSERT_EQ(write(of_program, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ASSERT_EQ(dup2(of_program, descriptor), descriptor);
  EXPECT_EQ(share->lower(mib(18)), mib(18));
  EXPECT_EQ(share->raise(mib(40)), mib(18)) << "nobody saw its lease meanwhile";
  share->repair();
  std::string now(text.size(), ' ');
  ASSERT_EQ(pread(of_program, now.data(), now.size(), 0), static_cast<ssize_t>(now.size()));
  EXPECT_TRUE(now == text);
  Share other(own.options(kBudget, kFloor));
  EXPECT_EQ(other.raise(kBudget), kBudget - mib(18)) << "it has opened the file again";
  EXPECT_EQ(log.containing("the program closed the file").size(), 1U);
  EXPECT_EQ(lseek(descriptor, 0, SEEK_END), 4096) << "the program's is open";
  close(descriptor);
  close(of_program);
  unlink(path.c_str());
}

TEST(ShareFile, AShareWhoseDescriptorTheProgramClosedOpensTheFileAgain) {
  const testing::LogCapture log;
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  ASSERT_EQ(close(descriptor_of(own.id)), 0);
  share.repair();
  Share other(own.options(kBudget, kFloor));
  EXPECT_EQ(other.raise(kBudget), kBudget - kFloor);
  EXPECT_EQ(other.lower({}), kFloor);
  while (share.raise(mib(20)) != mib(20)) usleep(1000);
}

TEST(ShareFile, AHeaderThatIsJustBeingWrittenIsReadAgain) {
  const OwnShare own;
  make_file(own);
  const Raw raw(own.id);
  std::promise<void> torn;
  std::thread writer([&] {
    ShareFile file = ShareFile::open(own.id, kBudget);
    while (!file.lock()) continue;
    ShareHeader header = header_of(own.id.owner, kBudget);
    header.budget /= 2;
    raw.write_header(header);
    torn.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    raw.write_header(header_of(own.id.owner, kBudget));
    file.unlock();
  });
  torn.get_future().wait();
  EXPECT_NO_THROW((void)ShareFile::open(own.id, kBudget));
  writer.join();
}

TEST(ShareTampered, NonsenseInAnothersSlotTakesNoFloorAndGivesNothing) {
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  Share other(own.options(kBudget, kFloor));
  const Raw raw(own.id);
  std::mt19937_64 random(1);
  const Bytes before = share.raise(mib(20));
  ASSERT_EQ(before, mib(20));
  for (int i = 0; i < 300; ++i) {
    ShareRecord record;
    std::array<std::uint64_t, 4> words{};
    for (std::uint64_t& word : words) {
      word = i % 2 == 0 ? random() : random() % (2 * kBudget.count);
    }
    record = {words[0], words[1], words[2], words[3]};
    // A check that is right, and one that is not.
    record.check = i % 3 == 0 ? random() : check_of(record);
    raw.write_slot(1, record);
    const Bytes raised = share.raise(before + Bytes{1});
    EXPECT_GE(raised, before);
    EXPECT_LE(raised, before + Bytes{1});
    EXPECT_GE(share.kept({{}, {}}), kFloor);
    EXPECT_GE(share.lower(before), kFloor);
  }
  // It writes its own slot again, and all is well.
  other.repair();
  EXPECT_EQ(share.raise(kBudget), kBudget - kFloor);
}

TEST(ShareTampered, ASlotThatIsNotKnownStopsRaisesAndAttachingButNotTheOthersFloors) {
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  const Share other(own.options(kBudget, kFloor));
  const ShareRecord nonsense{.floor = 1, .lease = 2, .wanted = 3, .pid = 4, .check = 5};
  Raw(own.id).write_slot(1, nonsense);
  EXPECT_EQ(share.raise(mib(20)), kFloor);
  EXPECT_FALSE(share.is_wanted());
  EXPECT_THAT(refusal(own), HasSubstr("a slot was changed by something other than Weir"));
}

TEST(ShareTampered, WhatIsWrittenIntoTheOwnSlotIsNeverBelieved) {
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  Share other(own.options(kBudget, kFloor));
  ASSERT_EQ(share.raise(mib(40)), mib(40));
  Raw(own.id).write_slot(0, record_of({{1}, {1}, {1}}, 1));
  EXPECT_EQ(share.lease(), mib(40));
  share.repair();
  EXPECT_EQ(other.raise(kBudget), mib(24)) << "others see the real lease again";
}

TEST(ShareTampered, ACutOrEmptiedFileChangesNobodysLease) {
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  ASSERT_EQ(share.raise(mib(20)), mib(20));
  const Raw raw(own.id);
  for (const off_t size : {off_t{2000}, off_t{39}, off_t{0}, off_t{1 << 20}}) {
    raw.cut(size);
    EXPECT_EQ(share.raise(mib(30)), mib(20)) << size;
    EXPECT_FALSE(share.is_wanted());
    EXPECT_EQ(share.kept({{}, {}}), mib(20));
    share.repair();
  }
  EXPECT_EQ(share.lower(mib(18)), mib(18));
}

TEST(ShareTampered, WhoKeepsTheLockMakesNobodyWaitForLong) {
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  const Signal locked;
  Child keeper([&] {
    ShareFile file = ShareFile::open(own.id, kBudget);
    const bool held = file.lock();
    locked.tell();
    for (;;) pause();
    return held ? 0 : 1;
  });
  locked.await();
  kill(keeper.pid(), SIGSTOP);
  // A thousand times the patience would be a second or 50; after the first tries there are no more.
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(share.raise(mib(20)), kFloor);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(share.raise(mib(20), Share::Effort::kLong), kFloor);
  EXPECT_EQ(share.lower({}), kFloor);
  keeper.kill();  // the kernel ends its lock
  while (share.raise(mib(20)) != mib(20)) usleep(1000);
}

TEST(ShareTampered, LocksOnEverySlotTakeNoLeaseAway) {
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  ASSERT_EQ(share.raise(mib(20)), mib(20));
  const Raw raw(own.id);
  struct flock all {};
  all.l_type = F_RDLCK;
  all.l_whence = SEEK_SET;
  all.l_start = 2;
  ASSERT_EQ(fcntl(raw.descriptor(), F_OFD_SETLK, &all), 0);
  EXPECT_EQ(share.raise(mib(30)), mib(20));
  EXPECT_EQ(share.lower(mib(18)), mib(18));
  EXPECT_THAT(refusal(own), HasSubstr("refused"));
}

}  // namespace
}  // namespace weir
