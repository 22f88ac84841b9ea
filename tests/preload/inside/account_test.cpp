// The books of what the driver serves past the pools, by themselves.

#include "tools/preload/account.hpp"

#include <gtest/gtest.h>

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
