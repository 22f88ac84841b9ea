#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>

#include "allocator/index/block.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

TEST(BlockTable, FindsNothingWhenEmpty) {
  const BlockTable table;
  EXPECT_EQ(table.find(at(4096)), nullptr);
  EXPECT_EQ(table.size(), 0U);
}

TEST(BlockTable, ABlockErasedIsNotFoundAndItsAddressCanComeAgain) {
  BlockTable table;
  table.insert(at(4096)).requested = kib(3);
  table.erase(*table.find(at(4096)));
  EXPECT_EQ(table.find(at(4096)), nullptr);
  EXPECT_EQ(table.insert(at(4096)).requested, Bytes{});
  EXPECT_EQ(table.size(), 1U);
}

/// Inserts and erases at random, mostly one and then mostly the other, against a map.
class AgainstAMap : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(AgainstAMap, FindsEveryBlockWhereItWasAndNothingElse) {
  const std::uint64_t stride = GetParam();
  const std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  std::mt19937_64 random(seed);
  BlockTable table;
  std::map<std::uint64_t, const Block*> model;
  for (int step = 0; step < 60'000; ++step) {
    const std::uint64_t address = (1 + random() % 8'000) * stride;
    const auto known = model.find(address);
    ASSERT_EQ(table.find(at(address)), known == model.end() ? nullptr : known->second);
    const bool growing = step / 10'000 % 2 == 0;
    if (known == model.end()) {
      if (growing || random() % 8 == 0) model[address] = &table.insert(at(address));
    } else if (!growing || random() % 8 == 0) {
      table.erase(*table.find(at(address)));
      model.erase(known);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  std::set<const Block*> visited;
  table.for_each([&](const Block& block) { visited.insert(&block); });
  EXPECT_EQ(visited.size(), model.size());
  for (const auto& [address, block] : model) {
    ASSERT_EQ(table.find(at(address)), block);
    ASSERT_EQ(block->pointer, at(address));
    ASSERT_EQ(visited.count(block), 1U);
  }
}

// The strides of real blocks; the last makes all bits below 43 zero, so that searches collide.
INSTANTIATE_TEST_SUITE_P(BlockTable, AgainstAMap,
                         ::testing::Values(512, 4096, std::uint64_t{1} << 21U,
                                           std::uint64_t{1} << 43U));

}  // namespace
}  // namespace weir
