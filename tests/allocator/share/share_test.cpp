// Processes that share a budget: attaching, leases, and their ends at any moment.

#include "allocator/share/share.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/share/share_setting.hpp"
#include "support/log_capture.hpp"
#include "support/message_of.hpp"
#include "support/random_seed.hpp"
#include "support/share_fixture.hpp"

namespace weir {
namespace {

using testing::Child;
using testing::Common;
using ::testing::HasSubstr;
using testing::kBudget;
using testing::kFloor;
using testing::OwnShare;
using testing::Sampler;
using testing::Signal;

TEST(ShareSettings, ANameIsRefusedThatWouldBeTooLongWithTheDevicesNumber) {
  ShareSettings settings;
  settings.name.value = parse_share("WEIR_SHARE", std::string(56, 'a'));
  const ShareId id = settings.id(1 + 1023);
  EXPECT_TRUE(is_share_name(id.name));
  EXPECT_EQ(ShareId::of_file(id.path().substr(id.path().rfind('/') + 1)).name, id.name);
  EXPECT_THROW((void)parse_share("WEIR_SHARE", std::string(57, 'a')), UsageError);
}

TEST(Share, HasItsFloorFromTheBeginningAndTheBudgetWhileItIsAlone) {
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  EXPECT_EQ(share.lease(), kFloor);
  EXPECT_EQ(share.raise(mib(40)), mib(40));
  EXPECT_EQ(share.raise(mib(30)), mib(40)) << "asking for less changes nothing";
  EXPECT_EQ(share.raise(mib(1000)), kBudget);
  EXPECT_EQ(share.lower(mib(20)), mib(20));
  EXPECT_EQ(share.lower({}), kFloor);
}

TEST(Share, TwoGetNoMoreThanTheBudget) {
  const OwnShare own;
  Share one(own.options(kBudget, kFloor));
  Share two(own.options(kBudget, kFloor));
  EXPECT_EQ(one.raise(kBudget), mib(48)) << "the other's floor stays";
  EXPECT_EQ(two.raise(mib(32)), kFloor) << "refused: it goes on with its floor";
  EXPECT_TRUE(one.is_wanted());
  EXPECT_FALSE(two.is_wanted() && one.lease() > mib(48));
  EXPECT_EQ(one.lower(one.kept({.held = mib(48), .committed = mib(20)})), mib(32))
      << "its fair part";
  EXPECT_EQ(two.raise(mib(32)), mib(32));
  EXPECT_FALSE(one.is_wanted());
}

TEST(Share, WhatIsCommittedIsKeptAlsoWhileOthersWantIt) {
  const OwnShare own;
  Share one(own.options(kBudget, kFloor));
  Share two(own.options(kBudget, kFloor));
  ASSERT_EQ(one.raise(mib(48)), mib(48));
  ASSERT_EQ(two.raise(mib(32)), kFloor);
  EXPECT_EQ(one.kept({.held = mib(48), .committed = mib(45)}), mib(45));
  two.forget_wish();
  EXPECT_EQ(one.kept({}), mib(48)) << "nobody wants it";
}

TEST(Share, AttachingIsRefusedWhereTheFloorsDoNotFit) {
  const OwnShare own;
  const Share one(own.options(kBudget, mib(40)));
  const auto refused = [&](Bytes budget, Bytes floor) {
    return testing::message_of<UsageError>([&] { const Share two(own.options(budget, floor)); });
  };
  EXPECT_EQ(
      refused(kBudget, mib(25)),
      "the share '" + own.id.name +
          "' is refused: a floor of 25 MiB does not fit beside 40 MiB of other processes in a "
          "budget of 64 MiB");
  EXPECT_THAT(refused(mib(63), mib(8)),
              HasSubstr("its budget is 64 MiB, and this process names 63"));
  EXPECT_THAT(refused(kBudget, {}), HasSubstr("its floor of 0 B is not within"));
  const Share fits(own.options(kBudget, mib(24)));
}

TEST(Share, AttachingIsRefusedAfterItsPatienceWhileOthersUseWhatIsAboveTheirFloors) {
  const OwnShare own;
  Share one(own.options(kBudget, kFloor));
  ASSERT_EQ(one.raise(kBudget), kBudget);
  const std::string message =
      testing::message_of<UsageError>([&] { const Share two(own.options(kBudget, kFloor)); });
  EXPECT_THAT(message, HasSubstr("others still use what they lease above their floors"));
  EXPECT_FALSE(one.is_wanted()) << "who was refused wants nothing any more";
}

TEST(Share, AttachingAsksOthersToReturnTheirSurplus) {
  const OwnShare own;
  Share one(own.options(kBudget, kFloor));
  ASSERT_EQ(one.raise(kBudget), kBudget);
  ShareOptions options = own.options(kBudget, kFloor);
  options.patience = std::chrono::seconds(100);
  std::unique_ptr<Share> two;
  std::thread attaching([&] { two = std::make_unique<Share>(options); });
  while (!one.is_wanted()) std::this_thread::yield();
  EXPECT_EQ(one.lower(one.kept({.held = kBudget, .committed = mib(40)})), mib(40));
  attaching.join();
  EXPECT_EQ(two->lease(), kFloor);
}

TEST(Share, TheLastOneRemovesTheFileAndTheNextMayNameAnotherBudget) {
  const OwnShare own;
  {
    auto one = std::make_unique<Share>(own.options(kBudget, kFloor));
    const Share two(own.options(kBudget, kFloor));
    one.reset();
    EXPECT_EQ(access(own.id.path().c_str(), F_OK), 0);
  }
  EXPECT_NE(access(own.id.path().c_str(), F_OK), 0);
  Child killed([&] {
    const Share share(own.options(kBudget, kFloor));
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(killed.wait(), -SIGKILL);
  EXPECT_EQ(access(own.id.path().c_str(), F_OK), 0) << "a killed one leaves it";
  const Share next(own.options(mib(32), mib(32)));
  EXPECT_EQ(next.budget(), mib(32));
}

TEST(Share, WhoseFileWasRemovedRaisesNothingAndMovesToTheNewOne) {
  const testing::LogCapture log;
  const OwnShare own;
  Share one(own.options(kBudget, kFloor));
  Share two(own.options(kBudget, kFloor));
  ASSERT_EQ(two.raise(mib(20)), mib(20));
  ASSERT_EQ(unlink(own.id.path().c_str()), 0);
  EXPECT_EQ(one.raise(mib(40)), kFloor) << "others may be in a file that it does not see";
  two.repair();
  Share third(own.options(kBudget, kFloor));
  EXPECT_EQ(third.raise(kBudget), kBudget - kFloor - mib(20));
  EXPECT_EQ(log.containing("RemoveIPC").size(), 2U);
}

TEST(Share, WhoFindsNoPlaceInTheNewFileRaisesNothingAndSaysSoOnce) {
  const testing::LogCapture log;
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  ASSERT_EQ(unlink(own.id.path().c_str()), 0);
  const Share other(own.options(kBudget * 2, kFloor));
  for (int i = 0; i < 3; ++i) {
    share.repair();
    EXPECT_EQ(share.raise(mib(40)), kFloor);
  }
  EXPECT_EQ(log.containing("gets no more of it").size(), 1U);
}

TEST(Share, AKilledProcessGivesItsLeaseBackAlsoWhileItsForkedChildLives) {
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  const Signal ready;
  const Signal over;
  Child other([&] {
    Share its(own.options(kBudget, kFloor));
    (void)its.raise(kBudget);
    const pid_t child = fork();
    if (child == 0) {
      EXPECT_EQ(its.raise(mib(50)), Bytes{}) << "it has no part in it";
      ready.tell();
      over.await();
      _exit(0);
    }
    for (;;) pause();
    return 0;
  });
  ready.await();
  EXPECT_EQ(share.raise(kBudget), kFloor);
  other.kill();
  EXPECT_EQ(share.raise(kBudget), kBudget);
  over.tell();
}

TEST(Share, AThreadThatIsCancelledIsNotTornOutOfIt) {
  const OwnShare own;
  Share other(own.options(kBudget, kFloor));
  bool is_through = false;
  std::thread cancelled([&] {
    pthread_cancel(pthread_self());  // at the next call that may wait
    {
      Share share(own.options(kBudget, kFloor));
      (void)share.raise(mib(20));
      (void)other.raise(kBudget);
      (void)share.raise(kBudget);
      (void)share.is_wanted();
      (void)share.kept({});
      share.forget_wish();
      (void)share.lower({});
      share.repair();
      (void)unlink(own.id.path().c_str());
      share.repair();
      (void)look_into(own.id);
      is_through = true;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  });
  cancelled.join();
  EXPECT_TRUE(is_through);
}

TEST(Share, ALimitOnTheSizeOfFilesEndsNoProcess) {
  const OwnShare own;
  const OwnShare none;
  Child limited([&] {
    Share share(own.options(kBudget, kFloor));
    (void)std::signal(SIGXFSZ, SIG_DFL);  // it ends a process
    const rlimit limit{1, 1};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 3;
    if (share.raise(mib(20)) != kFloor) return 1;
    try {
      const Share refused(none.options(kBudget, kFloor));
      return 2;
    } catch (const UsageError&) {
      return 0;
    }
  });
  EXPECT_EQ(limited.wait(), 0);
}

TEST(Share, AForkedChildDoesNotHangWhereAThreadOfItsParentAskedTheShare) {
  const OwnShare own;
  Share share(own.options(kBudget, kFloor));
  ShareFile keeper = ShareFile::open(own.id, kBudget);
  while (!keeper.lock()) continue;
  std::atomic<bool> over{false};
  // It holds its lock while it tries to get the file's.
  std::thread asking([&] {
    while (!over) (void)share.raise(mib(20), Share::Effort::kLong);
  });
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Child child([&] {
      share.repair();
      share.forget_wish();
      const Bytes sum = share.lease() + share.raise(mib(20)) + share.lower({}) + share.kept({});
      return sum == Bytes{} && !share.is_wanted() ? 0 : 1;
    });
    EXPECT_EQ(child.wait(), 0) << "it has no part in the share, and waits for nobody";
  }
  over = true;
  asking.join();
}

TEST(Share, AForkedChildsOwnPartOutlivesWhatItInherited) {
  const OwnShare own;
  const OwnShare of_child;
  auto inherited = std::make_unique<Share>(own.options(kBudget, kFloor));
  Child child([&] {
    // It may get the number that the inherited descriptor had.
    const Share its(of_child.options(kBudget, kFloor));
    inherited.reset();
    return look_into(of_child.id).used.size() == 1 ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Share, ManyProcessesAttachAndLeaveAtOnceAndAllAreServed) {
  const OwnShare own;
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(std::make_unique<Child>([&] {
      for (int round = 0; round < 50; ++round) {
        ShareOptions options = own.options(kBudget, kFloor);
        options.patience = std::chrono::seconds(60);
        Share share(options);
        if (share.lease() < kFloor || share.raise(mib(20)) < kFloor) return 1;
        (void)share.lower({});
      }
      return 0;
    }));
  }
  for (const auto& child : children) EXPECT_EQ(child->wait(), 0);
  EXPECT_NE(access(own.id.path().c_str(), F_OK), 0);
}

/// How many processes are killed; WEIR_TEST_SHARE_KILLS sets it.
int kills() {
  const char* const text = std::getenv("WEIR_TEST_SHARE_KILLS");
  return text != nullptr ? std::atoi(text) : 40;
}

constexpr std::size_t kLives = 3;
/// What each process believes that it may use, in bytes.
using Beliefs = std::array<std::atomic<std::uint64_t>, kLives>;

/// A process's life: its batches take more and give back, as fast as it can, until it is killed.
/// It tells what it uses: after it was given more, and before it gives back.
int live(const OwnShare& own, std::uint64_t seed, std::atomic<std::uint64_t>& belief) {
  std::mt19937_64 random(seed);
  ShareOptions options = own.options(kBudget, kFloor);
  options.patience = std::chrono::seconds(60);
  for (;;) {
    Share share(options);
    for (int i = 0; i < 200; ++i) {
      const Bytes before = share.lease();
      const Bytes raised = share.raise({random() % (kBudget.count + 1)});
      belief = raised.count;
      if (raised < before || raised < kFloor || raised > kBudget) return 1;
      const Bytes use{random() % (raised.count + 1)};
      const Bytes kept = share.is_wanted() ? share.kept({use, {use.count / 2}}) : use;
      belief = std::min(raised, std::max(kept, kFloor)).count;
      if (share.lower(kept) < kFloor) return 2;
      if (i % 16 == 0) share.repair();
    }
    belief = 0;
  }
}

/// Checks what the processes believe at a moment when no lease can be raised: `slots`, of that
/// moment, have it, too. `pids` are theirs.
void check_beliefs(const ShareSlots& slots, const Beliefs& beliefs,
                   const std::array<pid_t, kLives>& pids) {
  Bytes sum;
  for (std::size_t i = 0; i < kLives; ++i) {
    const Bytes believed{beliefs.at(i)};
    sum += believed;
    for (const ShareSlots::Used& used : slots.used) {
      if (used.slot && used.pid == static_cast<std::uint64_t>(pids.at(i))) {
        ASSERT_LE(believed, used.slot->lease) << "it believes in more than it wrote";
      }
    }
  }
  ASSERT_LE(sum, kBudget);
}

TEST(Share, ProcessesAreKilledAtRandomMomentsAndTheSumNeverExceedsTheBudget) {
  const std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  const OwnShare own;
  std::mt19937_64 random(seed);
  Sampler sampler(own.id, kBudget);
  Share witness(own.options(kBudget, kFloor));  // goes on all the time; keeps the file's name
  const Common<Beliefs> beliefs;
  std::vector<std::unique_ptr<Child>> children(kLives);
  std::array<pid_t, kLives> pids{};
  std::uint64_t samples = 0;
  std::uint64_t above_floors = 0;
  const auto begin = [&](std::size_t i) {
    const std::uint64_t its = random();
    std::atomic<std::uint64_t>& belief = (*beliefs).at(i);
    belief = 0;
    children[i] = std::make_unique<Child>([&] { return live(own, its, belief); });
    pids.at(i) = children[i]->pid();
  };
  for (std::size_t i = 0; i < kLives; ++i) begin(i);
  for (int killed = 0; killed < kills();) {
    const std::uint64_t looks = random() % 32;
    for (std::uint64_t i = 0; i < looks; ++i) {
      const auto slots =
          sampler.look([&](const ShareSlots& now) { check_beliefs(now, *beliefs, pids); });
      if (!slots) continue;
      if (HasFatalFailure()) return;
      ++samples;
      ASSERT_LE(Sampler::sum(*slots), kBudget);
      ASSERT_LE(slots->used.size(), children.size() + 1);
      if (Sampler::sum(*slots) > kFloor * slots->used.size()) ++above_floors;
    }
    ASSERT_GE(witness.raise({random() % kBudget.count}), kFloor);
    ASSERT_GE(witness.lower({}), kFloor);
    const std::size_t chosen = random() % kLives;
    auto& victim = children[chosen];
    ::kill(victim->pid(), SIGKILL);
    ASSERT_EQ(victim->wait(), -SIGKILL)
        << "it ended by itself: it was promised less than its floor";
    ++killed;
    begin(chosen);
  }
  children.clear();  // kills the rest
  EXPECT_GT(samples, 0U);
  EXPECT_GT(above_floors, 0U) << "they never had more than their floors";
  // A try that met another's lock makes the next ones wait for Share::kLockPause.
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (witness.raise(kBudget) != kBudget && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(witness.lease(), kBudget) << "all that they had has come back";
  std::printf("%d killed, %lu samples, %lu above the floors\n", kills(), samples, above_floors);
}

}  // namespace
}  // namespace weir
