// The books of what the driver serves past the pools, by themselves.

#include "tools/preload/context/account.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/print.hpp"

namespace weir::preload::testing {
namespace {

/// A context that is only ever compared.
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

class PoolsThatKeep final : public Neighbours {
 public:
  explicit PoolsThatKeep(Bytes kept) : kept_(kept) {}
  Bytes reclaim(const Account& /*account*/, Bytes /*need*/, bool /*if_enough*/) noexcept override {
    ++asked_;
    return kept_;
  }
  [[nodiscard]] std::optional<Release> oldest_release(
      const Account& /*account*/) const noexcept override {
    return {};
  }
  [[nodiscard]] Bytes not_in_use(const Account& /*account*/) const noexcept override {
    return kept_;
  }
  [[nodiscard]] int asked() const { return asked_; }

 private:
  const Bytes kept_;
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
  EXPECT_FALSE(account.reclaim(mib(49)));
  EXPECT_EQ(pools.asked(), 0);
  EXPECT_TRUE(account.reclaim(mib(48)));
  EXPECT_EQ(pools.asked(), 1);
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

TEST(PassedTableTest, AContextThatIsGoneLeavesNothingInTheBooks) {
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
