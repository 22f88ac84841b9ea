// The account of memory that the driver serves past the pools, tested alone.

#include "tools/preload/context/account.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "tests/support/print.hpp"
#include "tools/preload/context/passed.hpp"

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
  account.charge(mib(4));
  account.add_passed(Kind::kDirect, mib(4));
  account.add_passed(Kind::kHost, mib(16));
  EXPECT_EQ(account.passed(), mib(4));
  account.remove_passed(Kind::kHost, mib(16));
  EXPECT_EQ(account.used(), mib(4));
}

TEST(AccountTest, ARequestOfMoreThanAnyMemoryDoesNotWrapAround) {
  Account account(0, gib(1), mib(64));
  account.charge(mib(4));
  EXPECT_EQ(Account::Claim(account, 1, {UINT64_MAX}).count(), 0U);
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

TEST(AccountTest, HopelessIsWhatDoesNotFitBesideWhatIsHandedOut) {
  Account account(0, gib(1), mib(64));
  account.charge(mib(40));
  constexpr Bytes kKept = mib(24);  // 16 are handed out
  EXPECT_FALSE(account.is_hopeless(mib(48), kKept));
  EXPECT_TRUE(account.is_hopeless(mib(48) + Bytes{1}, kKept));
  EXPECT_TRUE(account.is_hopeless({UINT64_MAX}, kKept));
  account.charge(mib(48));  // more than the budget
  EXPECT_TRUE(account.is_hopeless(Bytes{1}, kKept));
}

TEST(AccountTest, AnOpenClaimIsNoReasonToBeHopeless) {
  Account account(0, gib(1), mib(64));
  const Account::Claim other(account, 1, mib(60));
  EXPECT_FALSE(account.is_hopeless(mib(8), {}));
}

TEST(AccountTest, AClaimGetsAsManyPiecesAsFit) {
  Account account(0, gib(1), mib(64));
  account.charge(mib(59));
  {
    Account::Claim claim(account, 4, mib(2));
    EXPECT_EQ(claim.count(), 2U);
    EXPECT_EQ(account.used(), mib(63));
    claim.keep(1);
  }
  EXPECT_EQ(account.used(), mib(61));
  EXPECT_EQ(Account::Claim(account, 0, mib(2)).count(), 0U);
}

constexpr auto kForEver = std::chrono::steady_clock::time_point::max();

std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
}

TEST(AccountTest, WhoeverLacksBudgetWaitsForTheOutcomeOfAnothersClaim) {
  Account account(0, gib(1), mib(64));
  std::optional<Account::Claim> other(std::in_place, account, 1, mib(60));
  const auto before = account.returned();
  EXPECT_FALSE(account.await_returned(Refusal::kBudget, before, soon()));
  EXPECT_FALSE(account.await_returned(Refusal::kDevice, before, kForEver)) << "it has no memory";
  std::thread withdrawing([&] { other.reset(); });
  EXPECT_TRUE(account.await_returned(Refusal::kBudget, before, kForEver));
  withdrawing.join();
  EXPECT_EQ(account.used(), Bytes{});
}

TEST(AccountTest, WhoeverLacksMemoryWaitsForWhatIsOnItsWayBack) {
  for (const Refusal refusal : {Refusal::kBudget, Refusal::kDevice}) {
    Account account(0, gib(1), mib(64));
    std::optional<Account::Releasing> other(std::in_place, account);
    const auto before = account.returned();
    EXPECT_FALSE(account.await_returned(refusal, before, soon()));
    std::thread releasing([&] { other.reset(); });
    EXPECT_TRUE(account.await_returned(refusal, before, kForEver));
    releasing.join();
    EXPECT_TRUE(account.await_returned(refusal, before, soon())) << "it was not waited for";
    EXPECT_FALSE(account.await_returned(refusal, account.returned(), kForEver)) << "none is open";
  }
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

TEST(PassedTableTest, WhatIsLeftOfADestroyedPoolIsCountedByItself) {
  Account account(0, gib(1), mib(64));
  int pool = 0;
  const auto its = reinterpret_cast<CUmemoryPool>(&pool);
  PassedTable table;
  table.add(1, {.account = &account, .kind = Kind::kPools, .bytes = mib(4), .pool = its});
  table.add(2, {.account = &account, .kind = Kind::kPools, .bytes = mib(3), .pool = its});
  table.settle(2, table.take(Kind::kPools, 2), true);
  EXPECT_EQ(account.used(), Bytes{}) << "the pool is counted as a whole";
  table.orphan(its);
  EXPECT_EQ(account.used(), mib(4));
  table.settle(1, table.take(Kind::kPools, 1), true);
  EXPECT_EQ(account.used(), Bytes{});
}

TEST(PassedTableTest, AContextThatIsGoneLeavesNothingInTheAccounting) {
  Account account(0, gib(1), mib(64));
  int first = 0;
  int second = 0;
  PassedTable table;
  account.charge(mib(7));
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
