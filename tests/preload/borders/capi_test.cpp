#define WEIR_LINKED
#include <gmock/gmock.h>

#include <array>
#include <cstddef>
#include <string>
#include <thread>

#include "tests/preload/borders/fake_api.hpp"
#include "tools/preload/borders/weir.h"
#include "tools/preload/driver/marks.hpp"

namespace weir::preload {
namespace {

using fake::take_calls;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CApi : public ::testing::Test {
 protected:
  CApi() { start(); }
  ~CApi() override { start(); }

 private:
  static void start() {
    fake::answer({});
    (void)take_calls();
  }
};

TEST_F(CApi, BatchesReachTheInside) {
  EXPECT_EQ(weir_batch_begin("train"), 1);
  weir_batch_end();
  EXPECT_THAT(take_calls(), ElementsAre("begin train", "end"));
}

TEST_F(CApi, ABatchWithoutAKindHasAnEmptyOne) {
  EXPECT_EQ(weir_batch_begin(nullptr), 1);
  weir_batch_end();
  EXPECT_THAT(take_calls(), ElementsAre("begin ", "end"));
}

TEST_F(CApi, EndsOnlyWhatBegan) {
  EXPECT_EQ(weir_batch_begin("outer"), 1);
  fake::answer({.begins = false});
  EXPECT_EQ(weir_batch_begin("passed over"), 0);
  weir_batch_end();
  EXPECT_THAT(take_calls(), ElementsAre("begin outer", "begin passed over"));
  weir_batch_end();
  EXPECT_THAT(take_calls(), ElementsAre("end"));
}

TEST_F(CApi, AnEndTooManyIsNone) {
  weir_batch_end();
  EXPECT_THAT(take_calls(), IsEmpty());
  EXPECT_EQ(weir_batch_begin("train"), 1);
  weir_batch_end();
  weir_batch_end();
  EXPECT_THAT(take_calls(), ElementsAre("begin train", "end"));
}

TEST_F(CApi, AnotherThreadEndsNothing) {
  EXPECT_EQ(weir_batch_begin("train"), 1);
  std::thread(weir_batch_end).join();
  EXPECT_THAT(take_calls(), ElementsAre("begin train"));
  weir_batch_end();
  EXPECT_THAT(take_calls(), ElementsAre("end"));
}

TEST_F(CApi, NestingDeeperThanIsRememberedJoins) {
  for (int depth = 0; depth < 64; ++depth) EXPECT_EQ(weir_batch_begin("train"), 1);
  EXPECT_EQ(weir_batch_begin("too deep"), 0);
  EXPECT_EQ(take_calls().size(), 64U);
  weir_batch_end();
  EXPECT_THAT(take_calls(), IsEmpty());
  for (int depth = 0; depth < 64; ++depth) weir_batch_end();
  EXPECT_EQ(take_calls().size(), 64U);
}

TEST_F(CApi, MemoryIsFilledIn) {
  weir_memory memory{};
  memory.size = sizeof memory;
  ASSERT_EQ(weir_memory_info(1, &memory), 1);
  EXPECT_THAT(take_calls(), ElementsAre("memory 1"));
  EXPECT_EQ(memory.size, sizeof memory);
  EXPECT_EQ(memory.total, 800U);
  EXPECT_EQ(memory.budget, 640U);
  EXPECT_EQ(memory.allocated, 100U);
  EXPECT_EQ(memory.awaiting, 20U);
  EXPECT_EQ(memory.cached, 3U);
  EXPECT_EQ(memory.reserved, 123U);
  EXPECT_EQ(memory.passed, 50U);
  EXPECT_EQ(memory.allocated_peak, 400U);
  EXPECT_EQ(memory.reserved_peak, 500U);
}

// Its 8 fields end with `passed`.
TEST_F(CApi, AStructOfAnEarlierVersionIsFilledToItsEnd) {
  weir_memory memory{};
  memory.allocated_peak = 77;
  memory.size = 8 * sizeof(std::uint64_t) + 7;
  ASSERT_EQ(weir_memory_info(1, &memory), 1);
  EXPECT_EQ(memory.size, 8 * sizeof(std::uint64_t));
  EXPECT_EQ(memory.passed, 50U);
  EXPECT_EQ(memory.allocated_peak, 77U);
}

TEST_F(CApi, AStructOfALaterVersionIsFilledAsFarAsItIsKnown) {
  struct Later {
    weir_memory known;
    std::uint64_t added;
  } later{.known = {}, .added = 77};
  later.known.size = sizeof later;
  ASSERT_EQ(weir_memory_info(0, &later.known), 1);
  EXPECT_EQ(later.known.size, sizeof(weir_memory));
  EXPECT_EQ(later.known.passed, 50U);
  EXPECT_EQ(later.added, 77U);
}

TEST_F(CApi, MemoryIsLeftAloneWhereNothingCanBeSaid) {
  weir_memory memory{};
  memory.total = 7;
  EXPECT_EQ(weir_memory_info(0, nullptr), 0);
  memory.size = 8 * sizeof(std::uint64_t) - 1;
  EXPECT_EQ(weir_memory_info(0, &memory), 0);
  memory.size = sizeof memory;
  EXPECT_EQ(weir_memory_info(-1, &memory), 0);
  EXPECT_THAT(take_calls(), IsEmpty());
  fake::answer({.knows = false});
  EXPECT_EQ(weir_memory_info(0, &memory), 0);
  EXPECT_EQ(memory.total, 7U);
  EXPECT_EQ(memory.size, sizeof memory);
}

TEST_F(CApi, TrimNamesADeviceOrAll) {
  EXPECT_EQ(weir_trim(2), std::uint64_t{5} << 32U);
  EXPECT_EQ(weir_trim(-1), std::uint64_t{5} << 32U);
  EXPECT_EQ(weir_trim(-2), 0U);
  EXPECT_THAT(take_calls(), ElementsAre("trim 2", "trim -1"));
}

TEST_F(CApi, ABudgetIsOfADeviceOrAll) {
  EXPECT_EQ(weir_set_budget(2, std::uint64_t{5} << 32U), 1);
  EXPECT_EQ(weir_set_budget(-1, 7), 1);
  EXPECT_EQ(weir_set_budget(-2, 7), 0);
  fake::answer({.knows = false});
  EXPECT_EQ(weir_set_budget(0, 7), 0);
  EXPECT_THAT(take_calls(), ElementsAre("budget 2 21474836480", "budget -1 7", "budget 0 7"));
}

TEST_F(CApi, AFractionAndAResetNameADevice) {
  EXPECT_EQ(weir_set_fraction(2, 0.25), 1);
  EXPECT_EQ(weir_set_fraction(-1, 0.25), 0);
  EXPECT_EQ(weir_reset_peaks(2), 1);
  EXPECT_EQ(weir_reset_peaks(-1), 0);
  fake::answer({.knows = false});
  EXPECT_EQ(weir_set_fraction(0, 1), 0);
  EXPECT_EQ(weir_reset_peaks(0), 0);
  EXPECT_THAT(take_calls(),
              ElementsAre("fraction 2 0.25", "reset peaks 2", "fraction 0 1", "reset peaks 0"));
}

TEST_F(CApi, MemoryIsAllocatedUsedAndFreedInTheOrderOfStreams) {
  std::array<void*, 3> streams{};
  for (std::size_t i = 0; i < streams.size(); ++i) streams.at(i) = reinterpret_cast<void*>(i + 7);
  void* const pointer = weir_allocate(1, 64, streams[0]);
  EXPECT_EQ(pointer, fake::memory());
  weir_record_use(pointer, streams[1]);
  weir_free(1, pointer, streams[2]);
  EXPECT_THAT(take_calls(), ElementsAre("allocate 64 block on 1 stream 7",
                                        "use block on -1 stream 8", "free block on 1 stream 9"));
}

TEST_F(CApi, NothingIsAllocatedOrFreedWhereThereIsNothing) {
  EXPECT_EQ(weir_allocate(1, 0, nullptr), nullptr);
  EXPECT_EQ(weir_allocate(-1, 64, nullptr), nullptr);
  weir_free(1, nullptr, nullptr);
  weir_free(-1, fake::memory(), nullptr);
  weir_record_use(nullptr, nullptr);
  EXPECT_THAT(take_calls(), IsEmpty());
  fake::answer({.allocates = false});
  EXPECT_EQ(weir_allocate(1, 64, nullptr), nullptr);
}

TEST_F(CApi, BlocksAreWrittenAsSnprintfWould) {
  EXPECT_EQ(weir_blocks(1, nullptr, 0, sizeof(weir_block)), 3U);
  std::array<weir_block, 4> blocks{};
  blocks[3].size = 77;
  ASSERT_EQ(weir_blocks(1, blocks.data(), blocks.size(), sizeof(weir_block)), 3U);
  EXPECT_EQ(blocks[0].segment, 4096U);
  EXPECT_EQ(blocks[0].segment_size, 1536U);
  EXPECT_EQ(blocks[0].address, 4096U);
  EXPECT_EQ(blocks[0].size, 512U);
  EXPECT_EQ(blocks[0].requested, 500U);
  EXPECT_EQ(blocks[0].stream, 7U);
  EXPECT_EQ(blocks[0].state, std::uint32_t{WEIR_ALLOCATED});
  EXPECT_EQ(blocks[1].segment, 4096U);
  EXPECT_EQ(blocks[1].state, std::uint32_t{WEIR_AWAITING});
  EXPECT_EQ(blocks[2].address, 8192U);
  EXPECT_EQ(blocks[2].state, std::uint32_t{WEIR_CACHED});
  EXPECT_EQ(blocks[3].size, 77U);

  blocks[1].size = 77;
  EXPECT_EQ(weir_blocks(1, blocks.data(), 1, sizeof(weir_block)), 3U);
  EXPECT_EQ(blocks[1].size, 77U);
}

TEST_F(CApi, BlocksOfALaterVersionAreFilledAsFarAsTheyAreKnown) {
  struct Later {
    weir_block known;
    std::uint64_t added;
  };
  std::array<Later, 3> blocks{};
  for (Later& each : blocks) each.added = 77;
  ASSERT_EQ(weir_blocks(1, &blocks[0].known, blocks.size(), sizeof(Later)), 3U);
  EXPECT_EQ(blocks[2].known.address, 8192U);
  EXPECT_EQ(blocks[2].added, 0U);
}

TEST_F(CApi, NoBlocksAreListedWhereNothingCanBeSaid) {
  weir_block block{};
  EXPECT_EQ(weir_blocks(-1, &block, 1, sizeof block), 0U);
  EXPECT_EQ(weir_blocks(1, &block, 1, sizeof block - 1), 0U);
  EXPECT_THAT(take_calls(), IsEmpty());
  fake::answer({.knows = false});
  EXPECT_EQ(weir_blocks(1, &block, 1, sizeof block), 0U);
}

TEST_F(CApi, MemoryIsSharedWithTheFilesThatThereIsRoomFor) {
  weir_allow_sharing();
  weir_shared shared{};
  EXPECT_EQ(weir_share(fake::memory(), &shared, nullptr, 0), 0) << "it has no size";
  EXPECT_EQ(weir_share(fake::memory(), nullptr, nullptr, 0), 0);
  EXPECT_THAT(take_calls(), ElementsAre("allow sharing"));
  shared.size = sizeof shared;
  ASSERT_EQ(weir_share(fake::memory(), &shared, nullptr, 0), 1);
  EXPECT_EQ(shared.base, 2048U);
  EXPECT_EQ(shared.bytes, 6144U);
  EXPECT_EQ(shared.page, 2048U);
  EXPECT_EQ(shared.handle[5], 'h');
  std::array<int, 4> files{};
  ASSERT_EQ(weir_share(fake::memory(), &shared, files.data(), 2), 1);
  EXPECT_THAT(files, ElementsAre(11, 12, 0, 0));
  ASSERT_EQ(weir_share(fake::memory(), &shared, files.data(), 4), 1);
  EXPECT_THAT(files, ElementsAre(11, 12, 13, 0));
  fake::answer({.knows = false});
  EXPECT_EQ(weir_share(fake::memory(), &shared, files.data(), 4), 0);
}

TEST_F(CApi, SettingsAreWrittenAsSnprintfWould) {
  const std::string all =
      "budget=80% (WEIR_BUDGET)\nsummary=a (1).json (WEIR_SUMMARY)\npool=round (default)";
  EXPECT_EQ(weir_settings(nullptr, 0), all.size());

  std::array<char, 100> text{};
  text.fill('?');
  EXPECT_EQ(weir_settings(text.data(), text.size()), all.size());
  EXPECT_EQ(std::string(text.data()), all);

  text.fill('?');
  EXPECT_EQ(weir_settings(text.data(), 7), all.size());
  EXPECT_EQ(std::string(text.data()), "budget");
  EXPECT_EQ(text[7], '?');

  EXPECT_EQ(weir_settings(text.data(), 1), all.size());
  EXPECT_EQ(std::string(text.data()), "");
  text.fill('?');
  EXPECT_EQ(weir_settings(text.data(), 0), all.size());
  EXPECT_EQ(text[0], '?');
  EXPECT_EQ(weir_settings(nullptr, 10), all.size());
}

TEST_F(CApi, TimelinesAreBegunAndStopped) {
  EXPECT_EQ(weir_timeline_start("run.json"), 1);
  weir_timeline_stop();
  EXPECT_EQ(weir_timeline_start(nullptr), 1);
  fake::answer({.begins = false});
  EXPECT_EQ(weir_timeline_start("other.json"), 0);
  EXPECT_THAT(take_calls(), ElementsAre("timeline run.json", "timeline stop", "timeline ",
                                        "timeline other.json"));
}

TEST_F(CApi, HasAVersion) { EXPECT_EQ(weir_api_version(), WEIR_API_VERSION); }

TEST(Marks, ComeBackInTheOrderOfAStack) {
  Marks marks;
  EXPECT_FALSE(marks.pop());
  for (std::uint32_t level = 0; level < 70; ++level) EXPECT_EQ(marks.push(level % 3 == 0), level);
  for (std::uint32_t level = 70; level-- > 0;) {
    EXPECT_EQ(marks.pop(), level < 64 && level % 3 == 0) << level;
  }
  EXPECT_EQ(marks.depth(), 0U);
  EXPECT_FALSE(marks.pop());
}

TEST(Marks, OfAClosedScopeAreForgotten) {
  Marks marks;
  marks.push(true);
  EXPECT_TRUE(marks.pop());
  marks.push(false);
  EXPECT_FALSE(marks.pop());
}

}  // namespace
}  // namespace weir::preload
