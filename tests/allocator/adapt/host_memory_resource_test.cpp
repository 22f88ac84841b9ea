#include "allocator/adapt/host_memory_resource.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "allocator/pool_fixture.hpp"
#include "allocator/progress/host_progress.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

struct HostMemoryResourceTest : ::testing::TestWithParam<PoolKind> {
  HostUpstream upstream{mib(16)};
  HostProgress progress;
  Pool pool{{upstream, progress}, testing::options_of(mib(16), GetParam())};
  HostMemoryResource resource{pool, progress.stream()};
};

INSTANTIATE_TEST_SUITE_P(Kinds, HostMemoryResourceTest, ::testing::ValuesIn(testing::kAllKinds),
                         testing::kind_name);

TEST_P(HostMemoryResourceTest, ServesContainers) {
  {
    std::pmr::map<int, std::pmr::string> names{&resource};
    for (int i = 0; i < 100; ++i) names[i] = std::string(static_cast<std::size_t>(i), 'x');
    EXPECT_EQ(names.at(99).get_allocator().resource(), &resource);
    EXPECT_EQ(names.at(99).size(), 99U);
    EXPECT_GT(pool.statistics().requested.current, Bytes{100});
  }
  EXPECT_EQ(pool.statistics().requested.current, Bytes{});
}

TEST_P(HostMemoryResourceTest, RandomBlocksKeepTheirBytes) {
  struct Block {
    unsigned char* begin;
    std::size_t bytes;
    std::size_t alignment;
    unsigned char value;
  };
  const std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  std::mt19937_64 random{seed};
  std::vector<Block> held;
  for (int i = 0; i < 2000; ++i) {
    if (held.size() < 40 && random() % 5 < 3) {
      const std::size_t bytes = random() % 20'000;
      const std::size_t alignment = std::size_t{1} << random() % 15;  // up to 16 KiB
      auto* const begin = static_cast<unsigned char*>(resource.allocate(bytes, alignment));
      ASSERT_NE(begin, nullptr);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(begin) % alignment, 0U);
      const auto value = static_cast<unsigned char>(random());
      std::memset(begin, value, bytes);
      held.push_back({begin, bytes, alignment, value});
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      const Block block = held.back();
      held.pop_back();
      ASSERT_TRUE(block.bytes == 0 ||
                  (block.begin[0] == block.value && block.begin[block.bytes - 1] == block.value));
      resource.deallocate(block.begin, block.bytes, block.alignment);
    }
  }
  for (const Block& block : held) resource.deallocate(block.begin, block.bytes, block.alignment);
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{});
}

TEST_P(HostMemoryResourceTest, RunningOutIsBadAllocWithTheReport) {
  try {
    (void)resource.allocate(mib(17).count, 8);
    FAIL() << "more than there is was given";
  } catch (const std::bad_alloc& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("17 MiB"));
    const auto& ours = dynamic_cast<const HostOutOfMemory&>(error);
    EXPECT_EQ(ours.cause().figures().asked, mib(17));
    EXPECT_STREQ(ours.what(), ours.cause().what());
  }
  // Volatile: the compiler would find it too large by itself.
  const volatile std::size_t most = std::numeric_limits<std::size_t>::max();
  EXPECT_THROW((void)resource.allocate(most, 8), std::bad_alloc);
  EXPECT_THROW((void)resource.allocate(most - 5, 4096), std::bad_alloc);
  EXPECT_NO_THROW(resource.deallocate(resource.allocate(mib(1).count), mib(1).count));
}

TEST_P(HostMemoryResourceTest, GivesABlockForZeroBytes) {
  void* const block = resource.allocate(0);
  EXPECT_NE(block, nullptr);
  EXPECT_NE(resource.allocate(0), block);
  resource.deallocate(block, 0);
}

TEST_P(HostMemoryResourceTest, IsEqualToOneOfTheSamePoolAndStream) {
  const HostMemoryResource same{pool, progress.stream()};
  const HostMemoryResource other{pool, StreamId::next()};
  EXPECT_EQ(resource, same);
  EXPECT_NE(resource, other);
  EXPECT_NE(resource, *std::pmr::new_delete_resource());
}

TEST_P(HostMemoryResourceTest, ServesSeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const std::pmr::vector<int> numbers(static_cast<std::size_t>(100 * (i + 1)), i, &resource);
        EXPECT_EQ(numbers.back(), i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{});
}

TEST(HostMemoryResourceOfAStream, BlocksAreReusedBehindTheStreamsWork) {
  HostUpstream upstream{mib(1)};
  testing::ManualProgress progress;
  Pool pool{{upstream, progress}, testing::options_of(mib(1))};
  const StreamId copies = StreamId::next();
  const StreamId other = StreamId::next();
  HostMemoryResource resource{pool, copies};
  HostMemoryResource elsewhere{pool, other};
  void* const block = resource.allocate(4096);
  progress.enqueue(copies);
  resource.deallocate(block, 4096);
  EXPECT_NE(elsewhere.allocate(4096), block) << "a copy still reads it";
  EXPECT_EQ(resource.allocate(4096), block);
}

}  // namespace
}  // namespace weir
