// The promises of every upstream, checked on each.

#include "allocator/memory/upstream.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include "support/print.hpp"

namespace weir {
namespace {

template <typename T>
class EveryUpstream : public ::testing::Test {};

using Upstreams = ::testing::Types<HostUpstream, MappedUpstream, SimulatedUpstream>;

class UpstreamNames {
 public:
  template <typename T>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): googletest's name
    if (std::is_same_v<T, HostUpstream>) return "host";
    return std::is_same_v<T, MappedUpstream> ? "mapped" : "simulated";
  }
};
TYPED_TEST_SUITE(EveryUpstream, Upstreams, UpstreamNames);

TYPED_TEST(EveryUpstream, GivesAlignedMemoryThatDoesNotOverlap) {
  TypeParam upstream(mib(1));
  std::map<std::uintptr_t, Bytes> live;
  for (const std::uint64_t size : {1U, 511U, 512U, 513U, 4096U, 100U, 5000U}) {
    void* pointer = upstream.allocate({size});
    ASSERT_NE(pointer, nullptr);
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    EXPECT_EQ(address % Upstream::kAlignment, 0U) << size;
    const auto after = live.lower_bound(address);
    if (after != live.end()) {
      EXPECT_LE(address + size, after->first);
    }
    if (after != live.begin()) {
      const auto before = std::prev(after);
      EXPECT_LE(before->first + before->second.count, address);
    }
    live[address] = {size};
  }
  for (const auto& [address, size] : live) {
    upstream.deallocate(reinterpret_cast<void*>(address), size);
  }
  EXPECT_EQ(upstream.used(), Bytes{0});
}

TYPED_TEST(EveryUpstream, HasRoomForItsCapacityAndNoMore) {
  TypeParam upstream(kib(16));
  EXPECT_EQ(upstream.capacity(), kib(16));
  void* most = upstream.allocate(kib(12));
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(upstream.allocate(kib(4) + Bytes{1}), nullptr);
  void* rest = upstream.allocate(kib(4));
  ASSERT_NE(rest, nullptr);
  EXPECT_EQ(upstream.allocate({1}), nullptr);
  EXPECT_EQ(upstream.used(), kib(16));
  upstream.deallocate(most, kib(12));
  EXPECT_EQ(upstream.used(), kib(4));
  void* again = upstream.allocate(kib(12));
  EXPECT_NE(again, nullptr);
  upstream.deallocate(again, kib(12));
  upstream.deallocate(rest, kib(4));
}

TYPED_TEST(EveryUpstream, RefusesWhatWouldOverflowItsCount) {
  TypeParam upstream(kib(16));
  void* some = upstream.allocate(kib(4));
  EXPECT_EQ(upstream.allocate({UINT64_MAX}), nullptr);
  EXPECT_EQ(upstream.allocate({UINT64_MAX - kib(4).count + 1}), nullptr);
  EXPECT_EQ(upstream.used(), kib(4));
  upstream.deallocate(some, kib(4));
}

TYPED_TEST(EveryUpstream, NeverExceedsItsCapacityFromManyThreads) {
  TypeParam upstream(kib(64));
  const auto work = [&upstream] {
    for (int i = 0; i < 2000; ++i) {
      void* pointer = upstream.allocate(kib(24));
      if (upstream.used() > upstream.capacity()) ADD_FAILURE() << "more in use than there is";
      if (pointer != nullptr) upstream.deallocate(pointer, kib(24));
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(upstream.used(), Bytes{0});
}

TEST(MappedUpstream, WhatTheSystemRefusesIsNotInUse) {
  constexpr Bytes kBeyondAllAddresses{std::uint64_t{1} << 60U};
  MappedUpstream upstream(kBeyondAllAddresses);
  EXPECT_EQ(upstream.allocate(kBeyondAllAddresses), nullptr);
  EXPECT_EQ(upstream.used(), Bytes{0});
}

TEST(SimulatedUpstream, NeverGivesAnAddressTwice) {
  SimulatedUpstream upstream(kib(4));
  std::uintptr_t last = 0;
  for (int i = 0; i < 100; ++i) {
    void* pointer = upstream.allocate(kib(4));
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    EXPECT_GE(address, last);
    last = address + kib(4).count;
    upstream.deallocate(pointer, kib(4));
  }
}

TEST(CapacityGauge, ARefusedRequestDoesNotShow) {
  CapacityGauge gauge(kib(4));
  EXPECT_TRUE(gauge.take(kib(3)));
  EXPECT_FALSE(gauge.take(kib(2)));
  EXPECT_EQ(gauge.used(), kib(3));
  EXPECT_TRUE(gauge.take(kib(1)));
}

}  // namespace
}  // namespace weir
