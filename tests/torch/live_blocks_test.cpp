#include "tools/torch/books/live_blocks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "support/random_seed.hpp"

namespace weir::testing {
namespace {

struct Named {
  int name = 0;
  std::shared_ptr<int> kept;
};
using Table = torch_plug::LiveBlocks<Named>;

const void* address_of(int number) {
  return reinterpret_cast<const void*>(0x7f00'0000'0000 + static_cast<std::uint64_t>(number) * 512);
}

TEST(TorchBlocks, GivesBackWhatWasPutIn) {
  Table table;
  table.insert(address_of(1), {.name = 5, .kept = nullptr});
  EXPECT_EQ(table.find(address_of(1)).value().name, 5);
  EXPECT_EQ(table.take(address_of(1)).value().name, 5);
  EXPECT_FALSE(table.take(address_of(1)));
  EXPECT_FALSE(table.find(address_of(1)));
}

TEST(TorchBlocks, KnowsNeitherNullNorStrangeAddresses) {
  Table table;
  EXPECT_FALSE(table.take(nullptr));
  EXPECT_FALSE(table.with(address_of(3), [](Named&) { FAIL(); }));
  table.insert(address_of(1), {.name = 1, .kept = nullptr});
  EXPECT_FALSE(table.take(nullptr));
  EXPECT_FALSE(table.take(address_of(3)));
}

TEST(TorchBlocks, ChangesABlockInPlace) {
  Table table;
  table.insert(address_of(1), {.name = 1, .kept = nullptr});
  EXPECT_TRUE(table.with(address_of(1), [](Named& block) { block.name = 2; }));
  EXPECT_EQ(table.take(address_of(1)).value().name, 2);
}

TEST(TorchBlocks, KeepsNothingOfABlockThatIsTaken) {
  Table table;
  const auto kept = std::make_shared<int>(1);
  table.insert(address_of(1), {.name = 1, .kept = kept});
  EXPECT_EQ(kept.use_count(), 2);
  (void)table.take(address_of(1));
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(TorchBlocks, ListsAllBlocks) {
  Table table;
  for (int i = 0; i < 1000; ++i) table.insert(address_of(i), {.name = i, .kept = nullptr});
  std::map<const void*, int> listed;
  for (const auto& [address, block] : table.all()) listed[address] = block.name;
  EXPECT_EQ(listed.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(listed[address_of(i)], i);
}

TEST(TorchBlocks, DoesWhatAMapDoes) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  Table table;
  std::map<int, int> model;
  for (int step = 0; step < 20'000; ++step) {
    // Few addresses, so that many share a part and gaps are closed over the end of its slots.
    const int number = static_cast<int>(random() % 700);
    const auto known = model.find(number);
    if (known == model.end()) {
      ASSERT_FALSE(table.find(address_of(number)));
      table.insert(address_of(number), {.name = step, .kept = nullptr});
      model[number] = step;
    } else if (random() % 4 == 0) {
      ASSERT_EQ(table.find(address_of(number)).value().name, known->second);
    } else {
      ASSERT_EQ(table.take(address_of(number)).value().name, known->second);
      model.erase(known);
    }
  }
  EXPECT_EQ(table.all().size(), model.size());
  for (const auto& [number, name] : model) {
    EXPECT_EQ(table.take(address_of(number)).value().name, name);
  }
}

// Each block is put in by one thread and taken out by the next one, as tensors are.
TEST(TorchBlocks, ThreadsTakeEachOthersBlocksOnce) {
  constexpr std::size_t kThreads = 4;
  constexpr int kBlocks = 2000;
  Table table;
  std::atomic<int> taken{0};
  std::array<std::atomic<int>, kThreads> put{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::size_t other = (t + 1) % kThreads;
      const int base = static_cast<int>(t) * kBlocks;
      const int other_base = static_cast<int>(other) * kBlocks;
      int got = 0;
      for (int i = 0; i < kBlocks; ++i) {
        table.insert(address_of(base + i), {.name = i, .kept = nullptr});
        put[t].store(i + 1);
        if (i % 64 == 0) (void)table.all();
        for (; got < put[other].load(); ++got) {
          if (table.take(address_of(other_base + got)).value().name == got) ++taken;
        }
      }
      for (; got < kBlocks; ++got) {
        while (put[other].load() <= got) std::this_thread::yield();
        if (table.take(address_of(other_base + got)).value().name == got) ++taken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken.load(), static_cast<int>(kThreads) * kBlocks);
  EXPECT_TRUE(table.all().empty());
}

}  // namespace
}  // namespace weir::testing
