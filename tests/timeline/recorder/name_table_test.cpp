#include "tools/timeline/recorder/name_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>

#include "support/random_seed.hpp"

namespace weir::timeline {
namespace {

TEST(NameTable, GivesEqualTextsTheSameNumberAndTheTextBack) {
  NameTable table;
  EXPECT_EQ(table.number(""), 0U);
  const std::uint32_t first = table.number("weights");
  EXPECT_NE(first, 0U);
  EXPECT_NE(table.number("gradients"), first);
  EXPECT_EQ(table.number("weights"), first);
  EXPECT_EQ(table.text(first), "weights");
  EXPECT_EQ(table.text(0), "");
  EXPECT_EQ(table.text(12345), "");
}

TEST(NameTable, PastItsLimitNewTextsAreTheOthersAndOldOnesKeepTheirNumber) {
  NameTable table({.names = 100});
  const std::uint32_t first = table.number("0");
  for (int i = 1; i < 1000; ++i) (void)table.number(std::to_string(i));
  EXPECT_EQ(table.number("0"), first);
  EXPECT_EQ(table.number("999"), NameTable::kOther);
  EXPECT_EQ(table.text(NameTable::kOther), NameTable::kOthers);
  EXPECT_EQ(table.text(100), "98");  // the others have a number too
  EXPECT_EQ(table.text(101), "");
}

TEST(NameTable, LabelsWithoutEndTakeNoMoreThanItsLimit) {
  NameTable table;
  NameCache cache;
  std::uint32_t others = 0;
  for (int i = 0; i < 200'000; ++i) {
    others += cache.name(table, "label " + std::to_string(i)) == NameTable::kOther ? 1U : 0U;
  }
  EXPECT_EQ(others, 200'000U - (1U << 17U) + 1);
}

TEST(NameTable, BytesAreLimitedToo) {
  NameTable table({.bytes = Bytes{1000}});
  EXPECT_NE(table.number(std::string(400, 'a')), NameTable::kOther);
  EXPECT_NE(table.number(std::string(400, 'b')), NameTable::kOther);
  EXPECT_EQ(table.number(std::string(400, 'c')), NameTable::kOther);
}

TEST(NameTable, CutsLongTextsBetweenCharacters) {
  NameTable table;
  const std::string text = std::string(511, 'x') + "\xc3\xa4" + "more";
  const std::uint32_t number = table.number(text);
  EXPECT_EQ(table.text(number), std::string(511, 'x'));
  NameCache cache;
  EXPECT_EQ(cache.name(table, text), number);
  const std::string no_utf8(1000, '\x80');
  EXPECT_EQ(table.text(table.number(no_utf8)).size(), 508U);
}

TEST(NameCache, SaysWhatTheTableSays) {
  const std::uint64_t seed = weir::testing::random_seed();
  SCOPED_TRACE(weir::testing::seed_message(seed));
  std::mt19937_64 random(seed);
  NameTable table;
  NameCache cache;
  for (int i = 0; i < 20'000; ++i) {  // more texts than fit in the cache
    const std::string text = std::to_string(random() % 1000);
    ASSERT_EQ(cache.name(table, text), table.number(text));
  }
}

TEST(NameCache, NamesACallSiteByFileAndLine) {
  NameTable table;
  NameCache cache;
  static const char* const kFile = "trainer/loop.py";
  const std::uint32_t site = cache.site(table, kFile, 88);
  EXPECT_EQ(table.text(site), "trainer/loop.py:88");
  EXPECT_EQ(cache.site(table, kFile, 88), site);
  EXPECT_NE(cache.site(table, kFile, 89), site);
  EXPECT_EQ(cache.site(table, nullptr, 1), 0U);
  static const std::string kLong = std::string(600, '/') + "end.cpp";
  EXPECT_TRUE(
      table.text(cache.site(table, kLong.c_str(), 2'000'000'000)).ends_with("/end.cpp:2000000000"));
}

TEST(NameCache, ForgetsWhatAnotherTableSaid) {
  NameTable first;
  NameTable second;
  NameCache cache;
  (void)first.number("something");
  const std::uint32_t here = cache.name(first, "text");
  const std::uint32_t there = cache.name(second, "text");
  EXPECT_EQ(first.text(here), "text");
  EXPECT_EQ(second.text(there), "text");
}

TEST(NameTable, ThreadsAgreeOnTheNumbers) {
  NameTable table;
  std::vector<std::map<std::string, std::uint32_t>> seen(4);
  std::vector<std::thread> threads;
  for (auto& mine : seen) {
    threads.emplace_back([&table, &mine] {
      NameCache cache;
      for (int i = 0; i < 2000; ++i) {
        const std::string text = std::to_string(i % 300);
        mine[text] = cache.name(table, text);
        ASSERT_EQ(table.text(mine[text]), text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : seen) EXPECT_EQ(mine, seen[0]);
}

}  // namespace
}  // namespace weir::timeline
