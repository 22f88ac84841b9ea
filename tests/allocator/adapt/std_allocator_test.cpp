#include "allocator/adapt/std_allocator.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "allocator/pool_fixture.hpp"
#include "allocator/progress/host_progress.hpp"

namespace weir {
namespace {

using Numbers = std::vector<int, StdAllocator<int>>;
using Traits = std::allocator_traits<StdAllocator<int>>;
static_assert(std::is_same_v<Traits::rebind_alloc<char>, StdAllocator<char>>);
static_assert(std::is_convertible_v<StdAllocator<char>, StdAllocator<int>>);
static_assert(std::is_nothrow_copy_constructible_v<StdAllocator<int>>);

struct StdAllocatorTest : ::testing::Test {
  [[nodiscard]] Numbers numbers_of(HostMemoryResource& of, std::size_t count) const {
    return Numbers(count, 7, StdAllocator<int>{of});
  }
  HostUpstream upstream{mib(1)};
  HostProgress progress;
  Pool pool{{upstream, progress}, testing::options_of(mib(1))};
  HostMemoryResource resource{pool, progress.stream()};
  HostMemoryResource other{pool, StreamId::next()};
};

TEST_F(StdAllocatorTest, ServesContainersThatRebindIt) {
  {
    std::list<int, StdAllocator<int>> numbers{StdAllocator<int>{resource}};
    for (int i = 0; i < 10; ++i) numbers.push_back(i);
    EXPECT_EQ(numbers.back(), 9);
    EXPECT_GE(pool.statistics().requested.current, Bytes{10 * sizeof(int)});
  }
  EXPECT_EQ(pool.statistics().requested.current, Bytes{});
}

TEST_F(StdAllocatorTest, IsEqualWhereTheResourceIs) {
  HostMemoryResource same{pool, progress.stream()};
  EXPECT_TRUE(StdAllocator<int>{resource} == StdAllocator<int>{same});
  EXPECT_TRUE(StdAllocator<int>{resource} == StdAllocator<char>{resource});
  EXPECT_TRUE(StdAllocator<int>{resource} != StdAllocator<int>{other});
}

TEST_F(StdAllocatorTest, AMovedContainerTakesItsMemoryAlong) {
  Numbers from = numbers_of(resource, 100);
  const int* const memory = from.data();
  Numbers to = numbers_of(other, 1);
  to = std::move(from);
  EXPECT_EQ(to.data(), memory);
  EXPECT_EQ(&to.get_allocator().resource(), &resource);
  Numbers third = numbers_of(other, 1);
  std::swap(to, third);
  EXPECT_EQ(third.data(), memory);
  EXPECT_EQ(&to.get_allocator().resource(), &other);
}

TEST_F(StdAllocatorTest, ACopyIsWhereTheOriginalIsAndAnAssignedContainerStaysWhereItWas) {
  const Numbers from = numbers_of(resource, 100);
  const Numbers copy = from;
  EXPECT_EQ(&copy.get_allocator().resource(), &resource);
  Numbers to = numbers_of(other, 1);
  to = from;
  EXPECT_EQ(to, from);
  EXPECT_EQ(&to.get_allocator().resource(), &other);
}

TEST_F(StdAllocatorTest, KeepsTheAlignmentOfTheType) {
  struct alignas(4096) Page {
    char bytes[4096];
  };
  std::vector<Page, StdAllocator<Page>> pages(3, StdAllocator<Page>{resource});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.data()) % 4096, 0U);
}

TEST_F(StdAllocatorTest, RefusesACountWhoseBytesDoNotFit) {
  StdAllocator<int> allocator{resource};
  EXPECT_THROW((void)allocator.allocate(std::numeric_limits<std::size_t>::max() / 2),
               std::bad_array_new_length);
  EXPECT_THROW((void)allocator.allocate(mib(1).count), HostOutOfMemory);
}

}  // namespace
}  // namespace weir
