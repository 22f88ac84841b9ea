// The account of memory that the driver serves past the pools, tested alone.

#include "tools/preload/context/account.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "tests/support/print.hpp"

namespace weir::preload::testing {
namespace {

/// A context that is only compared.
CUcontext context_of(int& number) { return reinterpret_cast<CUcontext>(&number); }

TEST(AccountTest, WhatAGraphGaveBackIsFreeAgain) {
  Account account(0, gib(1), mib(64));
  account.set_passed(Kind::kGraphs, mib(6));
  EXPECT_EQ(account.used(), mib(6));
  account.set_passed(Kind::kGraphs, mib(2));
  EXPECT_EQ(account.used(), mib(2));
  EXPECT_EQ(account.passed(), mib(2));
}

TEST(AccountTest, MemoryOfTheHostIsNoneOfTheDevices) {
  Account account(0, gib(1), mib(64));
  ASSERT_TRUE(account.take(mib(4)));
  account.add_passed(Kind::kDirect, mib(4));
  account.add_passed(Kind::kHost, mib(16));
  EXPECT_EQ(account.passed(), mib(4));
  account.remove_passed(Kind::kHost, mib(16));
  EXPECT_EQ(account.used(), mib(4));
}

TEST(AccountTest, ARequestOfMoreThanAnyMemoryDoesNotWrapAround) {
  Account account(0, gib(1), mib(64));
  ASSERT_TRUE(account.take(mib(4)));
  EXPECT_FALSE(account.take({UINT64_MAX}));
  EXPECT_EQ(account.used(), mib(4));
}

// A share lowers the budget, and returns what is not used then: another process may have it.
TEST(AccountTest, NothingIsTakenOfABudgetThatWasLoweredMeanwhile) {
  constexpr Bytes kAll{100};
  constexpr Bytes kLow{50};
  Account account(0, gib(1), kAll);
  std::atomic<std::uint64_t> lease{kAll.count};
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> claims{0};
  const auto await_claims = [&](std::uint64_t more) {
    const std::uint64_t before = claims;
    while (claims < before + more && !over) continue;
  };
  std::thread lowering([&] {
    while (!over) {
      account.set_budget(kLow);
      lease = std::max(account.budget(), account.used()).count;
      await_claims(2);
      lease = kAll.count;
      account.set_budget(kAll);
      await_claims(1);
    }
  });
  std::uint64_t beyond = 0;
  std::uint64_t above = 0;
  for (; claims < 500'000 || above == 0; ++claims) {
    const Account::Claim claim(account, 80, {1});
    if (claim.count() <= kLow.count) continue;
    ++above;
    // The lease is what the lowering thread saw, or more. It may be about to set it.
    for (int look = 0; look < 100; ++look) {
      if (account.used().count > lease) ++beyond;
    }
  }
  over = true;
  lowering.join();
  EXPECT_EQ(beyond, 0U);
}

class PoolsThatKeep final : public Neighbours {
 public:
  explicit PoolsThatKeep(Bytes kept) : kept_(kept) {}
  Bytes reclaim(const Account& /*account*/, Bytes /*need*/, bool /*if_enough*/) noexcept override {
    ++asked_;
    if (meanwhile_) std::exchange(meanwhile_, nullptr)();
    return gives_nothing_ ? Bytes{} : kept_;
  }
  [[nodiscard]] std::optional<Release> oldest_release(
      const Account& /*account*/) const noexcept override {
    return {};
  }
  [[nodiscard]] Bytes not_in_use(const Account& /*account*/) const noexcept override {
    return kept_;
  }
  [[nodiscard]] std::chrono::nanoseconds patience() const noexcept override { return patience_; }
  [[nodiscard]] int asked() const { return asked_; }
  /// Done by another thread when the pools are next asked to release; from then on they release
  /// nothing.
  void give_nothing(std::function<void()> meanwhile, std::chrono::nanoseconds patience = {}) {
    gives_nothing_ = true;
    meanwhile_ = std::move(meanwhile);
    patience_ = patience;
  }

 private:
  const Bytes kept_;
  bool gives_nothing_ = false;
  std::function<void()> meanwhile_;
  std::chrono::nanoseconds patience_{};
  int asked_ = 0;
};

TEST(AccountTest, HopelessIsWhatDoesNotFitBesideWhatIsHandedOut) {
  PoolsThatKeep pools(mib(24));
  Account account(0, gib(1), mib(64), &pools);
  ASSERT_TRUE(account.take(mib(40)));  // 16 of them handed out
  EXPECT_FALSE(account.is_hopeless(mib(48)));
  EXPECT_TRUE(account.is_hopeless(mib(48) + Bytes{1}));
  EXPECT_TRUE(account.is_hopeless({UINT64_MAX}));
  account.charge(mib(48));  // more than the budget
  EXPECT_TRUE(account.is_hopeless(Bytes{1}));
}

TEST(AccountTest, NothingIsGivenBackForWhatIsHopeless) {
  PoolsThatKeep pools(mib(24));
  Account account(0, gib(1), mib(64), &pools);
  ASSERT_TRUE(account.take(mib(40)));
  EXPECT_FALSE(account.reclaim(mib(49), account.moves_ended()));
  EXPECT_EQ(pools.asked(), 0);
  EXPECT_TRUE(account.reclaim(mib(48), account.moves_ended()));
  EXPECT_EQ(pools.asked(), 1);
}

constexpr std::chrono::hours kLong{1};
constexpr std::chrono::milliseconds kShort{20};

TEST(AccountTest, AClaimGetsRoomThatAnotherThreadMadeWhileThePoolsWereAsked) {
  PoolsThatKeep pools(mib(8));
  Account account(0, gib(1), mib(64), &pools);
  ASSERT_TRUE(account.take(mib(64)));
  pools.give_nothing([&] { account.give_back(mib(8)); });
  Account::Claim claim(account, 1, mib(1));
  EXPECT_EQ(claim.count(), 1U);
  EXPECT_EQ(account.used(), mib(57));
}

TEST(AccountTest, AClaimGetsAsManyPiecesAsFit) {
  PoolsThatKeep pools({});
  Account account(0, gib(1), mib(64), &pools);
  ASSERT_TRUE(account.take(mib(59)));
  {
    Account::Claim claim(account, 4, mib(2));
    EXPECT_EQ(claim.count(), 2U);
    EXPECT_EQ(account.used(), mib(63));
    claim.keep(1);
  }
  EXPECT_EQ(account.used(), mib(61));
  EXPECT_EQ(Account::Claim(account, 0, mib(2)).count(), 0U);
}

TEST(AccountTest, AClaimWaitsForTheOutcomeOfAnother) {
  PoolsThatKeep pools({});
  Account account(0, gib(1), mib(64), &pools);
  std::optional<Account::Claim> other(std::in_place, account, 1, mib(60));
  EXPECT_FALSE(account.is_hopeless(mib(8)));
  std::thread refused;
  pools.give_nothing([&] { refused = std::thread([&] { other.reset(); }); }, kLong);
  const Account::Claim claim(account, 1, mib(8));
  EXPECT_EQ(claim.count(), 1U);
  ASSERT_TRUE(refused.joinable());
  refused.join();
  EXPECT_EQ(account.used(), mib(8));
}

TEST(AccountTest, AClaimFailsOnceTheRoomIsAnothers) {
  PoolsThatKeep pools({});
  Account account(0, gib(1), mib(64), &pools);
  std::optional<Account::Claim> other(std::in_place, account, 1, mib(60));
  std::thread served;
  const auto serve = [&] {
    other->keep(1);
    other.reset();
  };
  pools.give_nothing([&] { served = std::thread(serve); }, kLong);
  EXPECT_EQ(Account::Claim(account, 1, mib(8)).count(), 0U);
  ASSERT_TRUE(served.joinable());
  served.join();
  EXPECT_EQ(account.used(), mib(60));
}

TEST(AccountTest, AClaimWaitsForMemoryOnItsWayBackAndOnlyAsLongAsItMay) {
  PoolsThatKeep pools(mib(60));
  Account account(0, gib(1), mib(64), &pools);
  ASSERT_TRUE(account.take(mib(60)));
  std::optional<Account::Return> other(std::in_place, account);
  pools.give_nothing({}, kShort);
  EXPECT_EQ(Account::Claim(account, 1, mib(8)).count(), 0U);
  std::thread returned;
  const auto give_back = [&] {
    account.give_back(mib(60));
    other.reset();
  };
  pools.give_nothing([&] { returned = std::thread(give_back); }, kLong);
  EXPECT_EQ(Account::Claim(account, 1, mib(8)).count(), 1U);
  ASSERT_TRUE(returned.joinable());
  returned.join();
}

TEST(AccountTest, AFullDeviceIsAskedAgainOnceAnotherThreadHasGivenBack) {
  PoolsThatKeep pools(mib(8));
  Account account(0, gib(1), mib(64), &pools);
  const std::uint64_t ended = account.moves_ended();
  pools.give_nothing([&] { const Account::Return other(account); });
  EXPECT_TRUE(account.reclaim(mib(1), ended));
  EXPECT_FALSE(account.reclaim(mib(1), account.moves_ended()));
}

TEST(PassedTableTest, HandlesOfTwoKindsThatAreOneNumberAreTwoThings) {
  Account account(0, gib(1), mib(64));
  PassedTable table;
  table.add(7, {.account = &account, .kind = Kind::kArrays, .bytes = mib(1)});
  table.add(7, {.account = &account, .kind = Kind::kModules, .bytes = mib(2)});
  const auto array = table.take(Kind::kArrays, 7);
  const auto module = table.take(Kind::kModules, 7);
  ASSERT_TRUE(array && module);
  EXPECT_EQ(array->bytes, mib(1));
  EXPECT_EQ(module->bytes, mib(2));
  EXPECT_FALSE(table.take(Kind::kArrays, 7));
}

TEST(PassedTableTest, AContextThatIsGoneLeavesNothingInTheAccounting) {
  Account account(0, gib(1), mib(64));
  int first = 0;
  int second = 0;
  PassedTable table;
  ASSERT_TRUE(account.take(mib(7)));
  account.add_passed(Kind::kDirect, mib(4));
  account.add_passed(Kind::kDirect, mib(3));
  table.add(1, {.account = &account, .context = context_of(first), .bytes = mib(4)});
  table.add(2, {.account = &account, .context = context_of(second), .bytes = mib(3)});
  table.forget(context_of(first));
  EXPECT_EQ(account.used(), mib(3));
  EXPECT_EQ(account.passed(), mib(3));
  EXPECT_FALSE(table.take(Kind::kDirect, 1));
  EXPECT_TRUE(table.take(Kind::kDirect, 2));
}

}  // namespace
}  // namespace weir::preload::testing
