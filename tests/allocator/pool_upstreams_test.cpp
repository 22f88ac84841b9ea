// Every kind of pool over every upstream of this program's kit: memory that is written, moved,
// exhausted and returned, and a random run against the model.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/memory/page_source_kit.hpp"
#include "allocator/pool_fixture.hpp"
#include "allocator/pool_random_run.hpp"
#include "support/log_capture.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using testing::expect_all_back;
using testing::expect_statistics_agree;
using testing::FaultyUpstream;
using testing::ManualProgress;
using testing::options_of;
using testing::PagedUpstream;
using testing::PageKind;
using testing::RandomRun;
using testing::RandomRunOptions;

constexpr Bytes kCapacity = mib(64);
constexpr Bytes kBudget = mib(32);  ///< sixteen pages

using PoolAndUpstream = std::tuple<PoolKind, PageKind>;

std::string pool_and_upstream_name(const ::testing::TestParamInfo<PoolAndUpstream>& info) {
  const auto& [pool, kind] = info.param;
  return std::string(to_string(pool)) + "_over_" + kind.name;
}

class PoolOverUpstream : public ::testing::TestWithParam<PoolAndUpstream> {
 protected:
  PoolOverUpstream()
      : over(std::get<PageKind>(GetParam()).make(kCapacity)), upstream(over->upstream()) {}
  ~PoolOverUpstream() override {
    pool.reset();
    expect_all_back(upstream);
    EXPECT_EQ(over->used(), used_before);
  }

  void open() {
    pool = std::make_unique<Pool>(DeviceMemory{upstream, progress}, options_of(kBudget, kind()));
  }
  [[nodiscard]] static PoolKind kind() { return std::get<PoolKind>(GetParam()); }
  [[nodiscard]] static bool has_memory() { return std::get<PageKind>(GetParam()).has_memory; }
  /// Sets all of a block, the last byte of its last page included.
  void fill(void* block, unsigned char value, Bytes size) {
    if (!has_memory()) return;
    ASSERT_TRUE(over->write(block, value, size.count)) << "no memory is there";
  }
  void expect_filled(void* block, unsigned char value, Bytes size) {
    if (!has_memory()) return;
    EXPECT_EQ(over->read(block, size.count), std::vector<unsigned char>(size.count, value));
  }
  void pass_all() {
    for (const StreamId stream : {a, b}) progress.pass_all(stream);
    pool->poll();
  }
  [[nodiscard]] RandomRunOptions run_options() {
    constexpr unsigned kScale = 7;
    return {.kind = kind(),
            .seed = testing::random_seed(),
            .steps = 2500,
            .budget = kBudget,
            .scale = kScale,
            .over = over.get(),
            .touch = has_memory()};
  }

  const testing::LogCapture log;  // receives the faults made on purpose
  const std::unique_ptr<PagedUpstream> over;
  const Bytes used_before = over->used();
  FaultyUpstream upstream;
  ManualProgress progress;
  std::unique_ptr<Pool> pool;
  const StreamId a = StreamId::next();
  const StreamId b = StreamId::next();
};

TEST_P(PoolOverUpstream, BlocksHoldWhatWasWrittenWhateverIsFreedBesideThem) {
  open();
  struct Block {
    void* pointer;
    Bytes size;
    unsigned char value;
  };
  std::vector<Block> blocks;
  const auto take = [&](Bytes size, StreamId stream) {
    const auto value = static_cast<unsigned char>(blocks.size() + 1);
    blocks.push_back({pool->allocate(size, stream), size, value});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().pointer) % Upstream::kAlignment, 0U);
    fill(blocks.back().pointer, value, size);
  };
  // Every second one is freed, and the next ones fit none of the holes.
  for (const std::uint64_t size : {3U << 20U, 2U << 20U, 700'000U, 4096U, 4U << 20U, 100'000U,
                                   5U << 20U, 2U << 20U, 1U << 20U, 513U, 2U << 20U, 300'000U}) {
    take({size}, blocks.size() % 3 == 0 ? b : a);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block block = blocks.at(i);
    expect_filled(block.pointer, block.value, block.size);
    pool->deallocate(block.pointer, a);
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
  }
  pass_all();
  for (const Bytes size : {mib(10), mib(4), kib(900)}) take(size, b);
  expect_statistics_agree(*pool, upstream);
  EXPECT_EQ(pool->statistics().unmapped_pages > 0, kind() == PoolKind::kPaged);
  for (const Block& block : blocks) {
    expect_filled(block.pointer, block.value, block.size);
    pool->deallocate(block.pointer, b);
  }
  pass_all();
  pool->trim();
  EXPECT_EQ(pool->statistics().reserved.current, Bytes{});
  EXPECT_EQ(over->used(), used_before);
}

TEST_P(PoolOverUpstream, ABlockIsNeverInTwoHands) {
  SCOPED_TRACE(testing::seed_message(testing::random_seed()));
  RandomRun(run_options()).run();
}

TEST_P(PoolOverUpstream, TheStatisticsAddUpWhateverBreaks) {
  SCOPED_TRACE(testing::seed_message(testing::random_seed()));
  RandomRunOptions options = run_options();
  options.faults = true;
  RandomRun(options).run();
}

INSTANTIATE_TEST_SUITE_P(Pages, PoolOverUpstream,
                         ::testing::Combine(::testing::ValuesIn(testing::kAllKinds),
                                            ::testing::ValuesIn(testing::page_kinds())),
                         pool_and_upstream_name);

constexpr std::array kWithoutPages{PoolKind::kUnpooled, PoolKind::kNaive, PoolKind::kRound,
                                   PoolKind::kBestFit};
INSTANTIATE_TEST_SUITE_P(WholeAllocations, PoolOverUpstream,
                         ::testing::Combine(::testing::ValuesIn(kWithoutPages),
                                            ::testing::ValuesIn(testing::kinds_without_pages())),
                         pool_and_upstream_name);

class UpstreamWithoutPages : public ::testing::TestWithParam<PageKind> {};
// A program may have none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UpstreamWithoutPages);

TEST_P(UpstreamWithoutPages, IsNoneForAPoolOverPages) {
  const auto over = GetParam().make(kCapacity);
  ManualProgress progress;
  EXPECT_THROW((Pool{{over->upstream(), progress}, options_of(kBudget, PoolKind::kPaged)}),
               UsageError);
  EXPECT_EQ(over->used(), Bytes{});
}

INSTANTIATE_TEST_SUITE_P(, UpstreamWithoutPages,
                         ::testing::ValuesIn(testing::kinds_without_pages()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace weir
