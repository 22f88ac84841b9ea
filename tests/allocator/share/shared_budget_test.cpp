// A pool whose budget is leased from a share: raised before a request waits, lowered when others
// want it, and never below what is committed.

#include "allocator/share/shared_budget.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/pool.hpp"
#include "support/log_capture.hpp"
#include "support/manual_progress.hpp"
#include "support/message_of.hpp"
#include "support/options_of.hpp"
#include "support/share_fixture.hpp"

namespace weir {
namespace {

using testing::kBudget;
using testing::kFloor;
using testing::ManualProgress;
using testing::OwnShare;

/// One process's part: a share, a pool and its budget, over memory of its own.
struct Part {
  explicit Part(const OwnShare& own)
      : share(own.options(kBudget, kFloor)),
        pool({upstream, progress}, testing::options_of(kFloor, PoolKind::kNaive)),
        budget(share, pool) {}

  SimulatedUpstream upstream{gib(1), kib(4)};
  ManualProgress progress;
  const StreamId stream = StreamId::next();
  Share share;
  Pool pool;
  SharedBudget budget;
};

/// Says what is used, in place of admission.
class User final : public BudgetUser {
 public:
  explicit User(SharedBudget& budget) : budget_(budget) { budget_.serve(this); }
  ~User() { budget_.serve(nullptr); }
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  void limit_to_use(BudgetLimit& limit) noexcept override {
    const std::lock_guard lock(mutex_);
    limit.set_for(use_);
  }
  void uses(const BudgetUse& use) {
    const std::lock_guard lock(mutex_);
    use_ = use;
  }

 private:
  std::mutex mutex_;
  BudgetUse use_;
  SharedBudget& budget_;
};

TEST(SharedBudget, ARequestRaisesTheLeaseBeforeItWaits) {
  const OwnShare own;
  Part part(own);
  EXPECT_EQ(part.pool.budget(), kFloor);
  void* const block = part.pool.allocate(mib(20), part.stream);
  EXPECT_EQ(part.pool.budget(), mib(20));
  EXPECT_EQ(part.share.lease(), mib(20));
  EXPECT_EQ(part.pool.statistics().waits, 0U);
  part.pool.deallocate(block, part.stream);
}

TEST(SharedBudget, ARequestThatTheShareRefusesEndsAsInABudgetOfItsOwn) {
  const OwnShare own;
  Part one(own);
  Part two(own);
  void* const large = one.pool.allocate(mib(48), one.stream);
  void* const floor = two.pool.allocate(kFloor, two.stream);
  Attempt attempt;
  EXPECT_EQ(two.pool.try_allocate(mib(1), two.stream, {}, attempt), nullptr);
  EXPECT_EQ(two.share.lease(), kFloor);
  const std::string report =
      testing::message_of<OutOfMemory>([&] { (void)two.pool.allocate(mib(1), two.stream); });
  EXPECT_NE(report.find("WEIR_SHARE_FLOOR"), std::string::npos) << report;
  two.pool.deallocate(floor, two.stream);
  one.pool.deallocate(large, one.stream);
}

TEST(SharedBudget, ARequestThatNoShareCouldServeLeavesLeaseAndWishAsTheyWere) {
  const OwnShare own;
  Part part(own);
  Share other(own.options(kBudget, kFloor));
  Attempt attempt;
  EXPECT_EQ(part.pool.try_allocate(kBudget + mib(1), part.stream, {}, attempt), nullptr);
  EXPECT_EQ(part.share.lease(), kFloor);
  EXPECT_FALSE(other.is_wanted());
}

TEST(SharedBudget, TheReservedBytesOfAllNeverExceedTheBudget) {
  const OwnShare own;
  Part one(own);
  Part two(own);
  const User user_one(one.budget);
  const User user_two(two.budget);
  std::vector<std::pair<Part*, void*>> held;
  for (int i = 0; i < 400; ++i) {
    Part& part = i % 3 == 0 ? one : two;
    Attempt attempt;
    void* const block = part.pool.try_allocate(mib(1 + static_cast<std::uint64_t>(i % 5)),
                                               part.stream, {}, attempt);
    if (block != nullptr) {
      held.emplace_back(&part, block);
    } else {
      ASSERT_FALSE(held.empty());
      const auto [owner, oldest] = held.front();
      held.erase(held.begin());
      owner->pool.deallocate(oldest, owner->stream);
    }
    const Bytes sum =
        one.pool.statistics().reserved.current + two.pool.statistics().reserved.current;
    ASSERT_LE(sum, kBudget);
    // The lease first: a share's own thread gives memory back and then lowers the lease.
    for (const Part* const each : {&one, &two}) {
      const Bytes lease = each->share.lease();
      ASSERT_LE(each->pool.statistics().reserved.current, lease);
    }
  }
  for (const auto& [part, block] : held) part->pool.deallocate(block, part->stream);
}

TEST(SharedBudget, SurplusThatOthersWantComesBackButNotWhatIsCommitted) {
  const OwnShare own;
  Part one(own);
  Part two(own);
  User user(one.budget);
  user.uses(BudgetUse{.held = mib(48), .committed = mib(48)});
  ASSERT_TRUE(one.budget.raise_to(mib(48)));
  EXPECT_FALSE(two.budget.raise_to(mib(40)));
  one.budget.give_back();
  EXPECT_EQ(one.pool.budget(), mib(48)) << "all of it is committed";
  user.uses(BudgetUse{.held = mib(48), .committed = mib(20)});
  one.budget.give_back();
  EXPECT_EQ(one.pool.budget(), mib(32)) << "the fair part: the rest is only submitted work's";
  EXPECT_FALSE(one.budget.raise_to(mib(48))) << "nor is it taken again meanwhile";
  while (!two.budget.raise_to(mib(32))) one.budget.give_back();
  EXPECT_EQ(one.share.lease(), mib(32));
}

TEST(SharedBudget, ItsThreadReturnsWhatOthersWantWhileTheProgramDoesNothing) {
  for (const bool user_comes_first : {true, false}) {
    const OwnShare own;
    Part one(own);
    Part two(own);
    std::optional<User> user;
    if (user_comes_first) user.emplace(one.budget);
    void* const block = one.pool.allocate(mib(48), one.stream);
    one.pool.deallocate(block, one.stream);  // cached: the pool keeps it
    if (!user) user.emplace(one.budget);
    ASSERT_EQ(one.pool.statistics().reserved.current, mib(48));
    while (two.pool.budget() < mib(32)) {
      one.progress.pass_all(one.stream);  // the device is done with it
      (void)two.budget.raise_to(mib(32));
    }
    EXPECT_LE(one.pool.statistics().reserved.current, mib(32));
  }
}

TEST(SharedBudget, AWishEndsAlsoWhereNobodyStartsBatches) {
  const OwnShare own;
  Share other(own.options(kBudget, kFloor));
  Part part(own);
  ASSERT_EQ(other.raise(mib(48)), mib(48));
  EXPECT_FALSE(part.budget.raise_to(mib(40)));
  EXPECT_TRUE(other.is_wanted());
  while (other.is_wanted()) std::this_thread::yield();
}

TEST(SharedBudget, AForgedRecordIsWrittenAgainAndWhatItLetOthersTakeIsReturned) {
  const OwnShare own;
  Part one(own);
  Part two(own);
  const User user(two.budget);
  const testing::Raw raw(own.id);
  while (one.share.lease() + two.share.lease() <= kBudget) {
    // Its check is right, and it says that the first process has next to nothing.
    raw.write_slot(0, record_of({{1}, {1}, {1}}, 1));
    (void)two.budget.raise_to(kBudget);
  }
  while (one.share.lease() + two.share.lease() > kBudget) std::this_thread::yield();
  EXPECT_EQ(one.share.lease(), kFloor);
  EXPECT_EQ(two.pool.budget(), kBudget - kFloor);
  EXPECT_EQ(look_into(own.id).used.front().slot, (ShareSlot{kFloor, kFloor, kFloor}));
}

/// Allocates while another open file has the share's lock for 5 ms. Returns whether it was served;
/// nothing if the holder had the lock for longer than anybody would wait: it lost its CPU.
std::optional<bool> is_served_beside_a_holder() {
  const OwnShare own;
  Part part(own);
  std::promise<void> locked;
  std::chrono::nanoseconds held{};
  std::thread holder([&] {
    ShareFile file = ShareFile::open(own.id, kBudget);
    while (!file.lock()) continue;
    const auto begun = std::chrono::steady_clock::now();
    locked.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    file.unlock();
    held = std::chrono::steady_clock::now() - begun;
  });
  locked.get_future().wait();
  Attempt attempt;
  void* const block = part.pool.try_allocate(mib(20), part.stream, {}, attempt);
  holder.join();
  if (block != nullptr) part.pool.deallocate(block, part.stream);
  if (held > Share::kLongPatience / 2) return std::nullopt;
  return block != nullptr;
}

TEST(SharedBudget, ARequestIsServedAlsoIfAnotherHasTheLockForSomeMilliseconds) {
  std::optional<bool> is_served;
  while (!is_served) is_served = is_served_beside_a_holder();
  EXPECT_TRUE(*is_served);
}

TEST(SharedBudget, OneBudgetIsLeftAfterTheFileWasRemovedAndAnotherProcessMadeANewOne) {
  const testing::LogCapture log;
  const OwnShare own;
  Part one(own);
  Part two(own);
  ASSERT_TRUE(two.budget.raise_to(mib(24)));
  ASSERT_EQ(unlink(own.id.path().c_str()), 0);
  Part third(own);
  const User user(third.budget);
  (void)third.budget.raise_to(kBudget);
  const auto sum = [&] { return one.share.lease() + two.share.lease() + third.share.lease(); };
  const auto seen = [&] { return look_into(own.id).used.size(); };
  while (sum() > kBudget || seen() < 3) std::this_thread::yield();
  EXPECT_EQ(one.share.lease(), kFloor);
  EXPECT_EQ(two.share.lease(), mib(24)) << "nothing is taken from who was there";
  EXPECT_EQ(third.share.lease(), mib(24));
  EXPECT_EQ(log.containing("was removed while").size(), 2U) << "each says it once";
}

TEST(SharedBudget, AFloorBelowWhatABatchNeedsIsSaidOnce) {
  const testing::LogCapture log;
  const OwnShare own;
  Part part(own);
  User user(part.budget);
  user.uses(BudgetUse{.held = kFloor, .committed = kFloor});
  part.budget.give_back();
  EXPECT_TRUE(log.containing("WEIR_SHARE_FLOOR").empty());
  user.uses(BudgetUse{.held = mib(20), .committed = mib(20)});
  part.budget.give_back();
  part.budget.give_back();
  EXPECT_EQ(log.containing("need 20 MiB, and the floor in the shared budget is 16 MiB").size(), 1U);
}

TEST(SharedBudget, AnIdleProcessReturnsItsSurplusUnasked) {
  const OwnShare own;
  Part part(own);
  User user(part.budget);
  user.uses(BudgetUse{.held = mib(20), .committed = mib(20), .idle = true});
  ASSERT_TRUE(part.budget.raise_to(mib(60)));
  while (part.share.lease() > mib(20)) part.budget.give_back();
  EXPECT_EQ(part.pool.budget(), mib(20));
}

}  // namespace
}  // namespace weir
