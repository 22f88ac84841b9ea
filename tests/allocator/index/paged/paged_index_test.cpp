// Plans and updates of paged's index that no pool shows.

#include "allocator/index/paged/paged_index.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

struct PagedIndexTest : ::testing::Test {
  PagedIndexTest() { index.add_region(reinterpret_cast<void*>(kRegion), kPage * 64, kib(1)); }
  /// A block of `pages` new pages, handed out to `stream`.
  Block* allocate(std::size_t pages) {
    PageMove move;
    EXPECT_EQ(index.plan(kPage * pages, kStream, {.most = 64}, move), PagedIndex::Plan::kMade);
    carry_out(move);
    Block* block = index.finish(move);
    EXPECT_NE(block, nullptr);
    index.hand_out(*block, kStream);
    return block;
  }
  void free_passed(Block& block) {
    block.home_sequence = 0;
    block.note_moved(++events);
    EXPECT_EQ(index.place_freed(block), BlockState::kCached);
  }
  [[nodiscard]] std::size_t pieces() const {
    std::size_t count = 0;
    index.for_each([&](const Block& /*piece*/) { ++count; });
    return count;
  }
  void carry_out(PageMove& move) {
    move.unmapped = move.unmap.size();
    for (const Mapping& each : move.unmap) move.pages.push_back(each.page);
    for (; move.created < move.create; ++move.created) move.pages.push_back(Page{++last_page});
    move.mapped = move.places.size();
  }

  static constexpr Bytes kPage = testing::kPage;
  static constexpr std::uintptr_t kRegion = std::uintptr_t{1} << 40U;
  static constexpr StreamId kStream{7};
  PagedIndex index{kPage};
  std::uint64_t last_page = 0;
  std::uint64_t events = 0;
};

TEST_F(PagedIndexTest, APlanSaysHowManyPagesAreMissing) {
  PageMove move;
  ASSERT_EQ(index.plan(kPage * 3, kStream, {.most = 64}, move), PagedIndex::Plan::kMade);
  EXPECT_EQ(move.create, 3U);
  EXPECT_EQ(move.places.size(), 3U);
  EXPECT_TRUE(move.unmap.empty());
  carry_out(move);
  const Block* block = index.finish(move);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->begin(), kRegion);
  EXPECT_EQ(block->size, kPage * 3);
}

TEST_F(PagedIndexTest, APlanThatNeedsMoreThanAllowedChangesNothing) {
  Block* block = allocate(4);
  free_passed(*block);
  const Bytes releasable = index.releasable();
  PageMove move;
  EXPECT_EQ(index.plan(kPage * 8, kStream, {.most = 3}, move), PagedIndex::Plan::kNoPages);
  EXPECT_EQ(move.promised, 0U);
  EXPECT_EQ(move.promised_pages, 0U);
  EXPECT_EQ(index.releasable(), releasable);
  EXPECT_EQ(index.plan(kPage * 100, kStream, {.most = 100}, move), PagedIndex::Plan::kNoAddresses);
  EXPECT_EQ(move.promised, 0U);
}

TEST_F(PagedIndexTest, WhatIsPlannedIsNobodyElses) {
  free_passed(*allocate(4));
  PageMove first;
  ASSERT_EQ(index.plan(kPage * 6, kStream, {.most = 64}, first), PagedIndex::Plan::kMade);
  EXPECT_EQ(first.create, 2U) << "beside the four that are there";
  EXPECT_EQ(index.releasable(), Bytes{});
  EXPECT_EQ(index.take_own(kPage, kStream), nullptr);
  PageMove second;
  ASSERT_EQ(index.plan(kPage * 6, kStream, {.most = 64}, second), PagedIndex::Plan::kMade);
  EXPECT_EQ(second.create, 6U);
  // In either order.
  carry_out(second);
  carry_out(first);
  const Block* of_second = index.finish(second);
  const Block* of_first = index.finish(first);
  EXPECT_EQ(of_first->begin(), kRegion);
  EXPECT_EQ(of_second->begin(), kRegion + kPage.count * 6);
}

TEST_F(PagedIndexTest, OfTwoPiecesTheOneIsCutOnWhosePagesSomethingLivesAlready) {
  free_passed(*allocate(8));
  std::vector<Block*> blocks;
  for (const Bytes size : {kib(4), kib(5), kib(9), kib(5) + Bytes{512}, kib(8) + Bytes{512}}) {
    blocks.push_back(index.take_own(size, kStream));
    ASSERT_NE(blocks.back(), nullptr);
    blocks.back()->state = BlockState::kAllocated;
    index.hand_out(*blocks.back(), kStream);
  }
  // The smaller one begins with a page of its own, the larger one lies on two that others pin.
  free_passed(*blocks[1]);
  const std::uintptr_t pinned = blocks[3]->begin();
  free_passed(*blocks[3]);
  const Block* block = index.take_own(kib(4) + Bytes{512}, kStream);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->begin(), pinned);
}

TEST_F(PagedIndexTest, APlanToReleaseTakesSparePagesFirst) {
  PageMove failed;
  ASSERT_EQ(index.plan(kPage * 2, kStream, {.most = 64}, failed), PagedIndex::Plan::kMade);
  carry_out(failed);
  failed.mapped = 0;
  EXPECT_EQ(index.finish(failed), nullptr);
  EXPECT_EQ(index.spare().size(), 2U);
  PageMove move;
  index.plan_release(1, move);
  EXPECT_EQ(move.pages.size(), 1U);
  EXPECT_TRUE(move.unmap.empty());
  move.destroyed = 1;
  move.pages.clear();
  EXPECT_EQ(index.finish(move), nullptr);
  EXPECT_EQ(index.releasable(), kPage);
}

TEST_F(PagedIndexTest, APlanTakesAsMuchWorkAsItMovesPagesHoweverManyAreFree) {
  index.add_region(reinterpret_cast<void*>(kRegion * 2), kPage * 4096, kib(1));
  std::vector<Block*> blocks(2000);
  for (Block*& block : blocks) block = allocate(1);
  // Free blocks between live ones, the oldest in the middle.
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    free_passed(*blocks[(i + blocks.size() / 2) % blocks.size()]);
  }
  const auto oldest = blocks[blocks.size() / 2]->begin();
  PageMove move;
  ASSERT_EQ(index.plan(kPage * 2, kStream, {}, move), PagedIndex::Plan::kMade);
  ASSERT_EQ(move.unmap.size(), 2U);
  EXPECT_EQ(move.unmap[0].address, reinterpret_cast<void*>(oldest));
  EXPECT_LE(move.promised, 16U) << "blocks that finishing may need";
  EXPECT_EQ(index.releasable(), kPage * 998);
  carry_out(move);
  EXPECT_NE(index.finish(move), nullptr);
  PageMove release;
  index.plan_release(3, release);
  EXPECT_LE(release.promised, 16U);
  ASSERT_EQ(release.unmap.size(), 3U);
  EXPECT_EQ(index.releasable(), kPage * 995);
}

TEST_F(PagedIndexTest, ATableIsAsLargeAsWhatIsMappedHoweverManyAddressesThereAre) {
  PagedIndex vast{kPage};
  constexpr Bytes kPebibyte = gib(1024 * 1024);
  ASSERT_NO_THROW(vast.add_region(reinterpret_cast<void*>(kPebibyte.count), kPebibyte, kib(1)));
  PageMove move;
  ASSERT_EQ(vast.plan(kPage * 3, kStream, {.most = 3}, move), PagedIndex::Plan::kMade);
  carry_out(move);
  ASSERT_NE(vast.finish(move), nullptr);
  std::vector<void*> mapped;
  vast.for_each_mapping([&](Mapping mapping) { mapped.push_back(mapping.address); });
  EXPECT_EQ(mapped, move.places);
}

TEST_F(PagedIndexTest, APlanToReleaseNothingPromisesNothing) {
  free_passed(*allocate(4));
  PageMove move;
  index.plan_release(0, move);
  EXPECT_EQ(move.promised, 0U) << "nobody finishes it";
  EXPECT_EQ(index.releasable(), kPage * 4);
}

TEST_F(PagedIndexTest, APlanPromisesABlockForEachPieceThatItsEndLeaves) {
  std::vector<Block*> blocks(64);
  for (Block*& block : blocks) block = allocate(1);
  PageMove release;
  for (std::size_t i = 1; i < blocks.size(); i += 2) free_passed(*blocks[i]);
  index.plan_release(32, release);
  release.unmapped = release.unmap.size();
  release.destroyed = release.unmapped;
  EXPECT_EQ(index.finish(release), nullptr);
  for (std::size_t i = 0; i < blocks.size(); i += 2) free_passed(*blocks[i]);
  const std::size_t before = pieces();
  PageMove failed;
  ASSERT_EQ(index.plan(kPage * 64, kStream, {.most = 32}, failed), PagedIndex::Plan::kMade);
  ASSERT_EQ(pieces(), 1U) << "all pieces, and the voids between them";
  EXPECT_EQ(index.finish(failed), nullptr);
  EXPECT_EQ(pieces(), before);
  EXPECT_LE(before - 1, failed.promised);
}

}  // namespace
}  // namespace weir
