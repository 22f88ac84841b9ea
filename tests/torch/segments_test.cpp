#include "tools/torch/books/segments.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>

namespace weir::testing {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kTensor = WEIR_ALLOCATED;

weir_block block(std::uint64_t segment, std::uint64_t address, std::uint64_t size,
                 std::uint32_t state) {
  return {.segment = segment,
          .segment_size = 0,
          .address = address,
          .size = size,
          .requested = 0,
          .stream = 0,
          .state = state,
          .unused = 0};
}

/// `address+size` of each piece with the tensor there, segment by segment.
std::vector<std::string> shown(const std::vector<weir_block>& memory,
                               const std::map<std::uint64_t, std::string>& tensors) {
  const auto segments = torch_plug::segments_of<std::string>(
      memory, [&tensors](std::uint64_t address) -> const std::string* {
        const auto found = tensors.find(address);
        return found == tensors.end() ? nullptr : &found->second;
      });
  std::vector<std::string> texts;
  for (const auto& pieces : segments) {
    std::string text;
    for (const auto& piece : pieces) {
      text += (text.empty() ? "" : " ") + std::to_string(piece.memory.address) + "+" +
              std::to_string(piece.memory.size);
      if (piece.block != nullptr) text += *piece.block;
    }
    texts.push_back(text);
  }
  return texts;
}

TEST(TorchSegments, HavePiecesWithoutGaps) {
  EXPECT_THAT(shown({block(0, 0, 10, kTensor), block(0, 10, 5, WEIR_CACHED),
                     block(0, 15, 5, WEIR_AWAITING), block(30, 30, 2, WEIR_CACHED)},
                    {{0, "a"}}),
              ElementsAre("0+10a 10+5 15+5", "30+2"));
}

TEST(TorchSegments, ThatTouchStayApart) {
  EXPECT_THAT(shown({block(0, 0, 10, WEIR_CACHED), block(10, 10, 5, WEIR_CACHED)}, {}),
              ElementsAre("0+10", "10+5"));
}

TEST(TorchSegments, EndWhereSomebodyElsesMemoryBegins) {
  EXPECT_THAT(shown({block(0, 0, 10, kTensor), block(0, 10, 5, kTensor), block(0, 15, 5, kTensor),
                     block(0, 20, 5, kTensor)},
                    {{0, "a"}, {15, "b"}}),
              ElementsAre("0+10a", "15+5b"));
  EXPECT_THAT(shown({}, {}), ElementsAre());
}

TEST(TorchSegments, AreReadWholeThoughTheyBecomeMore) {
  std::vector<weir_block> there(200, weir_block{});
  const std::vector<weir_block> memory =
      torch_plug::all_of([&there](weir_block* blocks, std::size_t count) {
        there.push_back(block(0, there.size(), 1, WEIR_CACHED));
        std::copy_n(there.begin(), std::min(count, there.size()), blocks);
        return there.size();
      });
  ASSERT_EQ(memory.size(), there.size());
  EXPECT_EQ(memory.back().address, there.size() - 1);
}

TEST(TorchSegments, AreReadInSoManyTriesThoughBlocksComeFasterThanTheyAreListed) {
  int calls = 0;
  std::size_t there = 0;
  const std::vector<weir_block> memory =
      torch_plug::all_of([&](weir_block* blocks, std::size_t count) {
        ++calls;
        there += 1000;
        for (std::size_t i = 0; i < count; ++i) blocks[i] = block(0, i, 1, WEIR_CACHED);
        return there;
      });
  EXPECT_LT(calls, 20);
  ASSERT_FALSE(memory.empty());
  EXPECT_LT(memory.size(), there);
  EXPECT_EQ(memory.back().address, memory.size() - 1);
}

TEST(TorchSegments, AreSplitWhereFreeBlocksLieBesideOthers) {
  const std::vector<weir_block> memory{
      block(0, 0, 10, kTensor),        block(0, 10, 5, WEIR_CACHED),
      block(0, 15, 7, WEIR_CACHED),    block(100, 100, 20, WEIR_CACHED),  // free as a whole
      block(200, 200, 3, WEIR_CACHED), block(200, 203, 4, WEIR_AWAITING)};
  const torch_plug::SegmentFigures found = torch_plug::figures_of(memory);
  EXPECT_EQ(found.segments, 3);
  EXPECT_EQ(found.split_blocks, 3);
  EXPECT_EQ(found.split_bytes, 15);
  EXPECT_EQ(torch_plug::figures_of({}).segments, 0);
}

}  // namespace
}  // namespace weir::testing
