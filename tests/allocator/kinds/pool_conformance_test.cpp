// The promises of every kind of pool, checked on each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/pool_fixture.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using ::testing::AllOf;
using testing::expect_all_back;
using testing::expect_blocks_agree;
using testing::expect_statistics_agree;
using ::testing::HasSubstr;
using testing::options_of;

struct EveryPool : testing::PoolFixture, ::testing::WithParamInterface<PoolKind> {
  [[nodiscard]] PoolOptions options(Bytes budget) const { return options_of(budget, GetParam()); }
  [[nodiscard]] bool keeps_blocks() const { return GetParam() != PoolKind::kUnpooled; }
  [[nodiscard]] bool splits() const { return testing::splits_blocks(GetParam()); }
  /// Number of pieces (segments or pages) for `bytes` in one block of 2 MiB or more.
  [[nodiscard]] std::uint64_t pieces_of(Bytes bytes) const {
    return GetParam() == PoolKind::kPaged ? bytes.count / testing::kPage.count : 1;
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryPool, ::testing::ValuesIn(testing::kAllKinds),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST_P(EveryPool, GivesNullForZeroBytesAndTakesItBack) {
  Pool pool(memory(), options(mib(1)));
  EXPECT_EQ(pool.allocate({0}, a), nullptr);
  Attempt attempt;
  EXPECT_EQ(pool.try_allocate({0}, a, {}, attempt), nullptr);
  pool.deallocate(nullptr, a);
  pool.record_use(nullptr, a);
  EXPECT_EQ(upstream.calls(), 0U);
  EXPECT_EQ(pool.statistics().failures, 0U);
}

TEST_P(EveryPool, GivesAlignedMemoryThatHoldsTheRequest) {
  HostUpstream host(mib(16));
  Pool pool({host, progress}, options(mib(16)));
  std::vector<void*> held;
  for (const std::uint64_t size : {1U, 31U, 512U, 4095U, 4096U, 4097U, 100'000U, 3'000'000U}) {
    void* pointer = pool.allocate({size}, a);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % Upstream::kAlignment, 0U);
    EXPECT_GE(*pool.block_size({size}), Bytes{size});
    std::memset(pointer, 0x5a, size);
    held.push_back(pointer);
  }
  for (void* pointer : held) pool.deallocate(pointer, a);
}

TEST_P(EveryPool, RefusesToFreeTwiceAndWhatItDoesNotKnow) {
  Pool pool(memory(), options(mib(1)));
  void* pointer = pool.allocate(kib(4), a);
  int foreign = 0;
  EXPECT_THROW(pool.deallocate(&foreign, a), UsageError);
  EXPECT_THROW(pool.deallocate(static_cast<char*>(pointer) + 64, a), UsageError);
  pool.deallocate(pointer, a);
  EXPECT_THROW(pool.deallocate(pointer, a), UsageError);
  EXPECT_THROW(pool.record_use(pointer, b), UsageError);
  progress.pass_all(a);
  pool.poll();
  EXPECT_THROW(pool.deallocate(pointer, a), UsageError);
  EXPECT_THROW(pool.record_use(&foreign, b), UsageError);
  expect_statistics_agree(pool, upstream);
}

TEST_P(EveryPool, FindsWhoHasAnAddress) {
  HostUpstream host(mib(64));
  Pool pool({host, progress}, options(mib(64)));
  const auto begin_at = [&](const void* base, std::uint64_t into) -> const void* {
    const auto found = pool.find_around(static_cast<const char*>(base) + into);
    return found ? found->begin : nullptr;
  };
  std::vector<void*> small;
  for (int i = 0; i < 40; ++i) small.push_back(pool.allocate({700}, a));
  void* const large = pool.allocate(mib(3), a);  // more look-ups than there are blocks
  for (const void* each : small) {
    EXPECT_EQ(begin_at(each, 0), each);
    EXPECT_EQ(begin_at(each, 699), each);
    EXPECT_EQ(begin_at(each, 700), nullptr) << "behind what was asked for";
  }
  EXPECT_EQ(begin_at(large, mib(3).count - 1), large);
  EXPECT_EQ(pool.find_around(large)->requested, mib(3));
  int foreign = 0;
  EXPECT_EQ(pool.find_around(&foreign), std::nullopt);
  EXPECT_EQ(pool.find_around(nullptr), std::nullopt);
  pool.deallocate(large, a);
  EXPECT_EQ(begin_at(large, 5), nullptr);
  EXPECT_EQ(begin_at(small.back(), 5), small.back());
  for (void* each : small) pool.deallocate(each, a);
}

TEST_P(EveryPool, StatisticsAddUpAfterEveryStep) {
  Pool pool(memory(), options(mib(1)));
  void* one = pool.allocate({3000}, a, "one");
  expect_statistics_agree(pool, upstream);
  void* two = pool.allocate({5000}, b, "two");
  expect_statistics_agree(pool, upstream);
  const Bytes blocks = *pool.block_size({3000}) + *pool.block_size({5000});
  EXPECT_EQ(pool.statistics().requested.current, Bytes{8000});
  EXPECT_EQ(pool.statistics().allocated.current, blocks);
  pool.record_use(one, b);
  expect_statistics_agree(pool, upstream);
  EXPECT_EQ(pool.deallocate(one, a), Freed::kAwaiting);
  expect_statistics_agree(pool, upstream);
  EXPECT_EQ(pool.statistics().awaiting.current, *pool.block_size({3000}));
  EXPECT_EQ(pool.statistics().held.current, blocks);
  pool.deallocate(two, b);
  expect_statistics_agree(pool, upstream);
  EXPECT_EQ(pool.statistics().requested.current, Bytes{0});
  EXPECT_EQ(pool.statistics().allocated.current, Bytes{0});
  progress.pass_all(a);
  progress.pass_all(b);
  pool.poll();
  expect_statistics_agree(pool, upstream);
  const Bytes reserved = pool.statistics().reserved.current;
  EXPECT_TRUE(splits() || reserved == blocks);
  EXPECT_GE(reserved, blocks);
  EXPECT_EQ(pool.statistics().held.current, Bytes{0});
  EXPECT_EQ(pool.statistics().cached.current, reserved);
  EXPECT_EQ(pool.trim(), reserved);
  expect_statistics_agree(pool, upstream);
  EXPECT_EQ(pool.statistics().reserved.current, Bytes{0});
}

TEST_P(EveryPool, ListsAllOfItsMemory) {
  Pool pool(memory(), options(mib(8)));
  EXPECT_TRUE(pool.blocks().empty());
  void* const one = pool.allocate({3000}, a);
  const std::vector<PoolBlock> blocks = pool.blocks();
  const auto found =
      std::ranges::find(blocks, reinterpret_cast<std::uintptr_t>(one), &PoolBlock::begin);
  ASSERT_NE(found, blocks.end());
  EXPECT_EQ(found->size, *pool.block_size({3000}));
  EXPECT_EQ(found->requested, Bytes{3000});
  EXPECT_EQ(found->home, a);
  EXPECT_EQ(found->state, PoolBlock::State::kAllocated);
  EXPECT_TRUE(blocks.front().begins_segment);

  std::minstd_rand random(7);
  std::vector<void*> held{one};
  for (int i = 0; i < 400; ++i) {
    if (held.size() < 20 || random() % 2 == 0) {
      Attempt attempt;
      void* const got =
          pool.try_allocate({1 + random() % 200'000}, random() % 2 == 0 ? a : b, {}, attempt);
      if (got != nullptr) held.push_back(got);
    }
    if (held.size() > 10) {
      std::swap(held[random() % held.size()], held.back());
      if (random() % 3 == 0) pool.record_use(held.back(), c);
      pool.deallocate(held.back(), a);
      held.pop_back();
    }
    if (random() % 4 == 0) progress.pass_all(a);
    if (random() % 4 == 0) progress.pass_all(b);
    if (random() % 4 == 0) progress.pass_all(c);
    if (random() % 30 == 0) pool.trim();
    expect_blocks_agree(pool);
  }
  EXPECT_NE(pool.statistics().awaiting.peak, Bytes{0}) << "otherwise little was shown";
}

TEST_P(EveryPool, PeaksAreTheHighestSinceTheyWereReset) {
  Pool pool(memory(), options(mib(1)));
  void* one = pool.allocate(kib(64), a);
  void* two = pool.allocate(kib(32), a);
  const Statistics high = pool.statistics();
  EXPECT_TRUE(splits() || high.reserved.current == kib(96));
  pool.record_use(one, b);
  pool.deallocate(one, a);
  progress.pass_all(a);
  progress.pass_all(b);
  pool.poll();
  pool.trim();
  Statistics s = pool.statistics();
  EXPECT_EQ(s.allocated.current, kib(32));
  EXPECT_EQ(s.allocated.peak, kib(96));
  EXPECT_EQ(s.requested.peak, kib(96));
  EXPECT_EQ(s.held.peak, kib(96));
  EXPECT_EQ(s.awaiting.peak, kib(64));
  EXPECT_EQ(s.reserved.peak, high.reserved.current);
  // A pool that splits cuts its first block from memory that is cached from then on.
  EXPECT_EQ(s.cached.peak, std::max(high.cached.peak, high.reserved.current - kib(32)));
  pool.reset_peaks();
  s = pool.statistics();
  EXPECT_EQ(s.allocated.peak, kib(32));
  EXPECT_EQ(s.requested.peak, kib(32));
  EXPECT_EQ(s.held.peak, kib(32));
  EXPECT_EQ(s.awaiting.peak, Bytes{0});
  EXPECT_EQ(s.reserved.peak, s.reserved.current);
  EXPECT_EQ(s.cached.peak, s.cached.current);
  EXPECT_TRUE(splits() || s.reserved.current == kib(32));
  pool.deallocate(two, a);
}

TEST_P(EveryPool, AFailedRequestChangesNothingAndASmallerOneStillWorks) {
  Pool pool(memory(), options(kib(64)));
  void* held = pool.allocate(kib(32), a);
  const Statistics before = pool.statistics();
  const Bytes addresses = upstream.pages()->reserved();
  EXPECT_THROW((void)pool.allocate(kib(64), a), OutOfMemory);
  EXPECT_THROW((void)pool.allocate(gib(100), b), OutOfMemory);
  EXPECT_THROW((void)pool.allocate({UINT64_MAX}, b), OutOfMemory);
  const Statistics after = pool.statistics();
  EXPECT_EQ(after.failures, 3U);
  EXPECT_EQ(after.allocated.current, before.allocated.current);
  EXPECT_EQ(after.requested.current, before.requested.current);
  EXPECT_EQ(after.reserved.peak, before.reserved.peak);
  EXPECT_EQ(after.misses, before.misses);
  EXPECT_EQ(upstream.pages()->reserved(), addresses);
  expect_statistics_agree(pool, upstream);
  void* small = pool.allocate(kib(32), b);
  EXPECT_NE(small, nullptr);
  pool.deallocate(small, b);
  pool.deallocate(held, a);
}

TEST_P(EveryPool, GivesEverythingBackWhenItEnds) {
  {
    Pool pool(memory(), options(mib(1)));
    void* cached = pool.allocate(kib(4), a);
    void* awaiting = pool.allocate(kib(8), a);
    void* leaked = pool.allocate(kib(16), b);
    pool.deallocate(cached, a);
    pool.record_use(awaiting, b);
    pool.deallocate(awaiting, a);
    pool.record_use(leaked, c);
    EXPECT_GT(upstream.used(), Bytes{0});
  }
  expect_all_back(upstream);
}

TEST_P(EveryPool, WaitsForTheDeviceBeforeItEnds) {
  Point use;
  const auto expect_passed = [&](Bytes) {
    EXPECT_GE(progress.passed_by_device(use.stream), use.sequence);
  };
  {
    Pool pool(memory(), options(mib(1)));
    void* leaked = pool.allocate(kib(16), a);
    pool.record_use(leaked, b);
    use = progress.enqueue(b);
    upstream.after_deallocate = expect_passed;
    upstream.pages()->before_unmap = [&](std::span<const Mapping>) { expect_passed({}); };
  }
  expect_all_back(upstream);
}

TEST_P(EveryPool, KeepsMemoryThatTheDeviceMayStillUseWhenItEnds) {
  Bytes kept;
  {
    Pool pool(memory(), options(mib(1)));
    (void)pool.allocate(kib(16), a);
    progress.fail_waits(testing::Fault::always());
    const Bytes reserved = pool.statistics().reserved.current;
    EXPECT_GE(reserved, kib(16));
    kept = reserved;
  }
  EXPECT_EQ(upstream.used(), kept);
}

TEST_P(EveryPool, ABlockUsedOnASecondStreamIsNobodysUntilThatStreamHasPassed) {
  Pool pool(memory(), options(mib(1)));
  void* pointer = pool.allocate(kib(4), a);
  pool.record_use(pointer, b);
  EXPECT_EQ(pool.deallocate(pointer, a), Freed::kAwaiting);
  progress.pass_all(a);
  for (const StreamId stream : {a, b, c}) {
    EXPECT_NE(pool.allocate(kib(4), stream), pointer);
  }
  EXPECT_EQ(pool.trim(), Bytes{0});
  EXPECT_EQ(pool.statistics().awaiting.current, kib(4));
  progress.pass_all(b);
  pool.poll();
  EXPECT_EQ(pool.statistics().awaiting.current, Bytes{0});
  if (keeps_blocks()) {
    EXPECT_EQ(pool.allocate(kib(4), a), pointer);
  }
}

TEST_P(EveryPool, AFreeOnAnotherStreamCountsAsAUseThere) {
  Pool pool(memory(), options(mib(1)));
  void* pointer = pool.allocate(kib(4), a);
  EXPECT_EQ(pool.deallocate(pointer, b), Freed::kAwaiting);
  progress.pass_all(a);
  EXPECT_NE(pool.allocate(kib(4), a), pointer);
  EXPECT_EQ(pool.statistics().awaiting.current, kib(4));
}

TEST_P(EveryPool, RecordsPointsWhenABlockIsFreedAndNotWhenItIsUsed) {
  Pool pool(memory(), options(mib(1)));
  void* pointer = pool.allocate(kib(4), a);
  pool.record_use(pointer, b);
  pool.record_use(pointer, b);
  pool.record_use(pointer, c);
  pool.record_use(pointer, a);
  EXPECT_EQ(progress.records(), 0U);
  const Point late_use = progress.enqueue(b);
  pool.deallocate(pointer, a);
  EXPECT_EQ(progress.records(), 3U);
  // Covers work that was enqueued between the use and the free.
  progress.pass_all(a);
  progress.pass_all(c);
  progress.pass(late_use);
  pool.poll();
  EXPECT_EQ(pool.statistics().awaiting.current, kib(4));
}

TEST_P(EveryPool, BlocksOfAStreamThatIsGoneGoToOthers) {
  {
    Pool pool(memory(), options(kib(8)));
    void* one = pool.allocate(kib(4), a);
    void* two = pool.allocate(kib(4), a);
    pool.record_use(two, b);
    pool.deallocate(one, a);
    pool.deallocate(two, a);
    progress.destroy(a);
    progress.destroy(b);
    EXPECT_NE(pool.allocate(kib(4), c), nullptr);
    EXPECT_NE(pool.allocate(kib(4), c), nullptr);
    EXPECT_EQ(progress.waits().size(), 0U);
    expect_statistics_agree(pool, upstream);
  }
  expect_all_back(upstream);
}

TEST_P(EveryPool, GivesBackTheBlocksOfAStreamThatIsGoneWhenItEnds) {
  {
    Pool pool(memory(), options(mib(1)));
    void* pointer = pool.allocate(kib(4), a);
    pool.record_use(pointer, b);
    pool.deallocate(pointer, a);
    progress.destroy(a);
    progress.destroy(b);
  }
  expect_all_back(upstream);
}

TEST_P(EveryPool, TrimGivesBackWhatTheDeviceHasPassedAndNothingElse) {
  Pool pool(memory(), options(mib(64)));
  void* passed = pool.allocate(mib(4), a);
  void* unpassed = pool.allocate(mib(8), b);
  pool.deallocate(passed, a);
  pool.deallocate(unpassed, b);
  progress.pass_all(a);
  EXPECT_EQ(pool.trim(), mib(4));
  EXPECT_EQ(pool.statistics().reserved.current, mib(8));
  EXPECT_EQ(pool.statistics().releases, pieces_of(mib(4)));
  expect_statistics_agree(pool, upstream);
}

TEST_P(EveryPool, TrimKeepsSoMuchWhenItIsTold) {
  Pool pool(memory(), options(mib(64)));
  void* first = pool.allocate(mib(4), a);
  void* second = pool.allocate(mib(4), a);
  pool.record_use(first, b);  // otherwise an unpooled pool would release it at once
  pool.record_use(second, b);
  pool.deallocate(second, a);
  pool.deallocate(first, a);
  progress.pass_all(a);
  progress.pass_all(b);
  EXPECT_EQ(pool.trim(mib(8)), Bytes{0});
  EXPECT_EQ(pool.trim(mib(4)), mib(4));
  EXPECT_EQ(pool.statistics().reserved.current, mib(4));
  expect_statistics_agree(pool, upstream);
  EXPECT_EQ(pool.trim(), mib(4));
  EXPECT_EQ(pool.trim(), Bytes{0});
  expect_statistics_agree(pool, upstream);
}

TEST_P(EveryPool, WorksOnADeviceWhosePointsAreNotEntries) {
  progress.record_without_entries();
  Pool pool(memory(), options(kib(8)));
  for (int i = 0; i < 10; ++i) {
    void* pointer = pool.allocate(kib(8), i % 2 == 0 ? a : b);
    progress.enqueue(i % 2 == 0 ? a : b);
    pool.record_use(pointer, c);
    progress.enqueue(c);
    pool.deallocate(pointer, i % 2 == 0 ? a : b);
    expect_statistics_agree(pool, upstream);
  }
  EXPECT_EQ(pool.statistics().failures, 0U);
}

TEST_P(EveryPool, RefusesABudgetThatTheDeviceDoesNotHave) {
  PoolOptions options;
  options.kind = GetParam();
  options.budget = {BudgetRequest{.bytes = gib(2)}, "WEIR_BUDGET"};
  EXPECT_THAT(testing::message_of<UsageError>([&] { const Pool pool(memory(), options); }),
              AllOf(HasSubstr("WEIR_BUDGET"), HasSubstr("2 GiB"), HasSubstr("1 GiB")));
  Pool pool(memory(), options_of(mib(1), GetParam()));
  EXPECT_THROW(pool.set_limits(gib(2), {}), UsageError);
  EXPECT_THROW(pool.set_limits({0}, {}), UsageError);
  EXPECT_EQ(pool.budget(), mib(1));
  pool.set_limits(mib(2), {});
  EXPECT_EQ(pool.budget(), mib(2));
}

TEST_P(EveryPool, ALoweredBudgetReleasesNothingAndStopsGrowth) {
  Pool pool(memory(), options(mib(64)));
  void* held = pool.allocate(mib(32), a);
  pool.set_limits(mib(16), {});
  EXPECT_EQ(pool.statistics().reserved.current, mib(32));
  EXPECT_THROW((void)pool.allocate({1}, a), OutOfMemory);
  pool.deallocate(held, a);
  EXPECT_NE(pool.allocate(mib(16), a), nullptr);
  // A split needs no other segment and no other page.
  EXPECT_LE(pool.statistics().reserved.current, splits() ? mib(32) : mib(16));
}

}  // namespace
}  // namespace weir
