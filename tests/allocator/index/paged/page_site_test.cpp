// Where paged puts a block among voids and pieces, in hand-made cases: sizes are in pages.

#include "allocator/index/paged/page_site.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace weir {
namespace {

struct PageSiteTest : ::testing::Test {
  PageSiteTest() { voids.reserve(gib(1024)); }

  Block& add(std::size_t pages, BlockState state) { return add(kPage * pages, state); }
  Block& add(Bytes size, BlockState state) {
    Block* const previous = blocks.empty() ? nullptr : &blocks.back();
    Block& block = blocks.emplace_back();
    block.pointer = reinterpret_cast<void*>(next);
    block.size = size;
    block.state = state;
    block.neighbours.previous = previous;
    if (previous != nullptr) previous->neighbours.next = &block;
    if (state == BlockState::kVoid) voids.insert(block);
    next = block.end();
    return block;
  }
  Block& hole(std::size_t pages) { return add(pages, BlockState::kVoid); }
  void live() { add(1, BlockState::kAllocated); }
  Block& piece(std::size_t pages, FreeOwner& owner) { return piece(kPage * pages, owner); }
  Block& piece(Bytes size, FreeOwner& owner) {
    Block& block = add(size, BlockState::kCached);
    block.owner = &owner;
    return block;
  }
  [[nodiscard]] PageSite find(std::size_t pages, SiteOrder order = SiteOrder::kFewestNew) const {
    return find_page_site(voids, kPage * pages, PageGrid(kPage), {.own = &own, .common = &common},
                          order);
  }

  static constexpr Bytes kPage = mib(2);
  static constexpr std::uintptr_t kBegin = std::uintptr_t{1} << 40U;

  std::deque<Block> blocks;
  std::uintptr_t next = kBegin;
  FreeBins voids;
  FreeOwner own;
  FreeOwner common;
  FreeOwner strange;
};

TEST_F(PageSiteTest, ThePlaceWithTheFewestNewPagesIsTaken) {
  (void)hole(8);
  live();
  const Block& first = piece(3, common);
  (void)hole(4);
  live();
  const PageSite site = find(5);
  EXPECT_EQ(site.at, first.begin());
  EXPECT_EQ(site.new_pages, 2U);
}

TEST_F(PageSiteTest, ASmallHeapTakesThePlaceThatPinsTheFewestPages) {
  (void)piece(3, common);
  (void)hole(1);
  const Bytes half{kPage.count / 2};
  (void)add(half, BlockState::kAllocated);
  const Block& first = piece(half, common);
  (void)hole(3);
  (void)piece(half, common);
  (void)add(half, BlockState::kAllocated);
  EXPECT_EQ(find(4).at, kBegin);
  EXPECT_EQ(find(4).new_pages, 1U);
  EXPECT_EQ(find(4).pinned_pages, 4U);
  const PageSite site = find(4, SiteOrder::kFewestPinned);
  EXPECT_EQ(site.at, first.begin());
  EXPECT_EQ(site.pinned_pages, 3U) << "half of the first page and of the last has something on it";
  EXPECT_EQ(site.new_pages, 3U);
}

TEST_F(PageSiteTest, ABlockMayEndWithWhatIsMapped) {
  (void)hole(9);
  const Block& last = piece(3, own);
  live();
  const PageSite site = find(5);
  EXPECT_EQ(site.at, last.end() - (kPage * 5).count);
  EXPECT_EQ(site.new_pages, 2U);
}

TEST_F(PageSiteTest, AnotherStreamsPieceIsInTheWay) {
  (void)hole(2);
  (void)piece(3, strange);
  (void)hole(2);
  EXPECT_EQ(find(4).first, nullptr);
}

TEST_F(PageSiteTest, OfTwoVoidsOfARunEitherIsFound) {
  (void)hole(2);
  (void)piece(1, common);
  (void)hole(2);
  const PageSite site = find(5);
  EXPECT_EQ(site.at, kBegin);
  EXPECT_EQ(site.new_pages, 4U);
}

TEST_F(PageSiteTest, ItLooksAtSoManyBlocksHoweverManyThereAre) {
  for (std::size_t i = 0; i < 3 * kSiteSteps; ++i) {
    (void)piece(1, common);
    (void)hole(1 + i % 3);
    live();
  }
  const PageSite site = find(3);
  EXPECT_EQ(site.new_pages, 2U);
  EXPECT_GE(site.looked_at, kSiteSteps);
  EXPECT_LE(site.looked_at, kSiteSteps + 100) << "and the run that it was at";
}

TEST_F(PageSiteTest, ItLooksAtSoManyBlocksAlsoWhereThereIsNoPlace) {
  for (std::size_t i = 0; i < 100'000; ++i) {
    (void)hole(1);
    live();
  }
  const PageSite site = find(2);
  EXPECT_EQ(site.first, nullptr);
  EXPECT_LE(site.looked_at, kSiteSteps + kLastSiteSteps);
}

TEST_F(PageSiteTest, ItLooksAtSoManyBlocksOfARunThatIsTooShort) {
  (void)hole(1);
  for (std::size_t i = 0; i < 100'000; ++i) (void)piece(1, i % 2 == 0 ? common : own);
  (void)hole(1);
  const PageSite site = find(200'000);
  EXPECT_EQ(site.first, nullptr);
  EXPECT_LE(site.looked_at, kSiteSteps + kLastSiteSteps);
}

TEST_F(PageSiteTest, TheOnlyPlaceIsFoundHoweverManyVoidsAreTooSmall) {
  for (std::size_t i = 0; i < 3 * kSiteSteps; ++i) {
    (void)hole(2);
    live();
  }
  const Block& only = piece(2, common);
  (void)hole(1);
  live();
  EXPECT_EQ(find(3).at, only.begin());
}

TEST_F(PageSiteTest, ARunIsFoundHoweverManyPiecesItTakes) {
  for (std::size_t i = 0; i < 100; ++i) {
    (void)piece(1, i % 2 == 0 ? common : own);
    (void)hole(1);
  }
  live();
  const PageSite site = find(200);
  EXPECT_EQ(site.at, kBegin);
  EXPECT_EQ(site.new_pages, 100U);
}

}  // namespace
}  // namespace weir
