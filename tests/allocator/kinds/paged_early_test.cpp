// Pages that paged maps at a second place before the device has passed their free: whose pages, the
// state of the first place, and the state after a failed step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "allocator/index/paged/paged_index.hpp"
#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::expect_all_back;
using testing::expect_statistics_agree;
using testing::Fault;
using ::testing::IsEmpty;
using testing::options_of;

/// At most four pages: two freed, one live, one freed, of stream a. Three are in a row at the end
/// only if the first two move there.
struct PagedEarly : testing::PoolFixture {
  PagedEarly() {
    pool = std::make_unique<Pool>(memory(), options_of(testing::kPage * 4, PoolKind::kPaged));
    pool->set_limits(testing::kPage * 4, {.hand_over = false, .wait = false});
    source().before_unmap = [this](std::span<const Mapping> mappings) {
      for (const Mapping& each : mappings) unmapped.push_back(each.address);
    };
    hole = take(2, a);
    between = take(1, a);
    end = take(1, a);
  }
  [[nodiscard]] testing::FaultyPageSource& source() { return *upstream.pages(); }
  void* take(std::size_t pages, StreamId stream) {
    Attempt attempt;
    return pool->try_allocate(testing::kPage * pages, stream, {}, attempt);
  }
  void free(void* block) { pool->deallocate(block, a); }
  void free_both() {
    free(hole);
    free(end);
  }
  void pass(StreamId stream) {
    progress.pass_all(stream);
    pool->poll();
  }
  [[nodiscard]] void* second_page_of_hole() const {
    return static_cast<std::byte*>(hole) + testing::kPage.count;
  }

  std::vector<void*> unmapped;
  std::unique_ptr<Pool> pool;
  void* hole = nullptr;
  void* between = nullptr;
  void* end = nullptr;
};

TEST_F(PagedEarly, AStreamsOwnPagesServeItBeforeTheDeviceHasPassedTheirFree) {
  free_both();
  EXPECT_EQ(take(3, a), end);
  EXPECT_THAT(unmapped, IsEmpty()) << "the device may still use the old place";
  EXPECT_EQ(source().created(), 4U);
  EXPECT_EQ(source().mapped(), 6U) << "two of them at two places";
  expect_statistics_agree(*pool, upstream);
}

TEST_F(PagedEarly, AnotherStreamsPagesDoNot) {
  free_both();
  EXPECT_EQ(take(3, b), nullptr);
  pass(a);
  EXPECT_EQ(take(3, b), end);
  EXPECT_THAT(unmapped, ElementsAre(hole, second_page_of_hole()));
}

TEST_F(PagedEarly, PagesThatAwaitASecondStreamDoNot) {
  pool->record_use(hole, b);
  progress.enqueue(b);
  free_both();
  EXPECT_EQ(take(3, a), nullptr);
  pass(b);
  EXPECT_EQ(take(3, a), end) << "what is left to be passed is its own";
}

TEST_F(PagedEarly, TheRestOfAPageThatCameEarlyIsNoOtherStreamsEither) {
  free_both();
  Attempt attempt;
  const Bytes half{testing::kPage.count / 2};
  EXPECT_EQ(pool->try_allocate(testing::kPage * 2 + half, a, {}, attempt), end);
  EXPECT_EQ(pool->try_allocate(half, b, {}, attempt), nullptr)
      << "work on the old place may still write there";
  pass(a);
  EXPECT_EQ(pool->try_allocate(half, b, {}, attempt),
            static_cast<std::byte*>(end) + (testing::kPage * 2 + half).count);
}

TEST_F(PagedEarly, TheOldPlaceIsNobodysUntilItIsUnmapped) {
  free_both();
  void* const block = take(3, a);
  ASSERT_EQ(block, end);
  pool->deallocate(block, a);
  EXPECT_EQ(pool->largest_cached(), testing::kPage * 3) << "the old place is no piece";
  EXPECT_EQ(take(2, a), block);
  EXPECT_EQ(source().mapped(), 6U);
  EXPECT_THAT(unmapped, IsEmpty());
  pass(a);
  // The next move unmaps it; then it is a normal range of addresses.
  pool->set_limits(testing::kPage * 6, {.hand_over = false, .wait = false});
  EXPECT_NE(take(3, a), nullptr);
  EXPECT_THAT(unmapped, ElementsAre(hole, second_page_of_hole()));
  EXPECT_EQ(source().mapped(), source().created());
  expect_statistics_agree(*pool, upstream);
  pool->set_limits(testing::kPage * 8, {.hand_over = false, .wait = false});
  EXPECT_EQ(take(2, a), hole);
}

TEST_F(PagedEarly, AMapThatFailsHalfWayLeavesTheRestWhereItLives) {
  free_both();
  source().refuse_map(Fault::at(2));
  EXPECT_EQ(take(3, a), nullptr);
  EXPECT_EQ(source().mapped(), 5U);
  expect_statistics_agree(*pool, upstream);
  source().refuse_map(Fault::never());
  EXPECT_EQ(take(3, a), end);
  EXPECT_EQ(source().mapped(), 6U);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(PagedEarly, APageWithAnOldPlaceLeftIsNotDestroyed) {
  free_both();
  free(take(3, a));
  pass(a);
  source().refuse_unmap(Fault::at(2));  // one of the two old places, and all that follow
  EXPECT_EQ(pool->trim(), testing::kPage * 2)
      << "three are free, and one of them is mapped at its old place";
  expect_statistics_agree(*pool, upstream);
  source().refuse_unmap(Fault::never());
  EXPECT_EQ(pool->trim(), testing::kPage);
  EXPECT_EQ(source().mapped(), 1U);
  expect_statistics_agree(*pool, upstream);
}

TEST_F(PagedEarly, AllPlacesAreUnmappedAtTheEnd) {
  free_both();
  free(take(3, a));
  free(between);
  pool.reset();
  expect_all_back(upstream);
}

TEST_F(PagedEarly, AnOldPlaceThatCannotBeUnmappedAtTheEndKeepsAllPages) {
  free_both();
  free(take(3, a));
  free(between);
  source().refuse_unmap(Fault::at(1));
  pool.reset();
  EXPECT_EQ(source().created(), 4U) << "which of them it is, nobody knows then";
  EXPECT_GT(source().reserved(), Bytes{0});
}

/// The index alone, with a device that passes a point during a move.
struct PagedIndexEarly : ::testing::Test {
  PagedIndexEarly() {
    index.add_region(reinterpret_cast<void*>(kRegion), testing::kPage * 64, testing::kPage);
  }
  [[nodiscard]] Block* allocate(std::size_t pages, std::size_t mapped = 64) {
    PageMove move;
    if (index.plan(testing::kPage * pages, stream, {.most = most}, move) !=
        PagedIndex::Plan::kMade) {
      return nullptr;
    }
    if (in_between) in_between();
    move.retired_pages = move.retire.size();
    move.unmapped = move.unmap.size();
    for (const Mapping& each : move.unmap) move.pages.push_back(each.page);
    for (; move.created < move.create; ++move.created) move.pages.push_back({next_page++});
    move.mapped = std::min(mapped, move.places.size());
    Block* block = index.finish(move);
    if (block != nullptr) index.hand_out(*block, stream);
    return block;
  }
  /// Frees three pages in a row, at point 2. Two of them are still mapped at old places, from point
  /// 1.
  void free_with_two_old_places() {
    Block* const hole = allocate(2);
    (void)allocate(1);
    free_at(*hole, 1);
    most = 1;
    Block* const early = allocate(3);
    ASSERT_NE(early, nullptr);
    ASSERT_EQ(index.stale_pages(), 2U);
    free_at(*early, 2);
  }
  void free_at(Block& block, std::uint64_t sequence) {
    block.home_sequence = sequence;
    ASSERT_EQ(index.place_freed(block), BlockState::kCached);
  }

  static constexpr std::uintptr_t kRegion = 0x10000000000;
  const StreamId stream = StreamId::next();
  PagedIndex index{testing::kPage};
  std::size_t most = 4;
  std::uint64_t next_page = 1;
  std::function<void()> in_between;
};

TEST_F(PagedIndexEarly, APieceWhosePointIsPassedDuringAMoveThatFailsIsEverybodysThen) {
  free_at(*allocate(4), 1);
  in_between = [this] { (void)index.note_passed(stream, 1); };
  // All of it is the target, and one page is missing: nothing is mapped.
  most = 1;
  EXPECT_EQ(allocate(5, 0), nullptr);
  EXPECT_EQ(index.releasable(), testing::kPage * 5) << "four free ones and a spare one";
}

TEST_F(PagedIndexEarly, AsManyPiecesLendAsABlockNeedsPages) {
  index.add_region(reinterpret_cast<void*>(kRegion * 2), testing::kPage * 4096, testing::kPage);
  index.add_region(reinterpret_cast<void*>(kRegion * 3), testing::kPage * 4096,
                   testing::kPage * 600);
  std::vector<Block*> blocks(1200);
  for (Block*& block : blocks) block = allocate(1);
  std::uint64_t point = 0;
  for (std::size_t i = 0; i < blocks.size(); i += 2) free_at(*blocks.at(i), ++point);
  most = 0;
  EXPECT_NE(allocate(600, 600), nullptr) << "each of 600 holes has one page";
  EXPECT_EQ(index.stale_pages(), 600U);
}

TEST_F(PagedIndexEarly, APlaceThatNeedsNoMorePagesThanThereAreIsFoundBesideAShorterRun) {
  free_with_two_old_places();
  // A run of four pages pins as many, but all new: two may be lent, and one be created.
  index.add_region(reinterpret_cast<void*>(kRegion * 2), testing::kPage * 4, testing::kPage);
  const Block* const block = allocate(4);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->begin(), kRegion + testing::kPage.count * 3);
}

TEST_F(PagedIndexEarly, APageIsKeptThatAnotherStreamHasPassedAndTheStreamOfItsOldPlaceNot) {
  ASSERT_NO_FATAL_FAILURE(free_with_two_old_places());
  Block* const handed_over = index.take_unpassed(testing::kPage * 3);
  ASSERT_NE(handed_over, nullptr);
  const StreamId other = StreamId::next();
  index.hand_out(*handed_over, other);
  free_at(*handed_over, 1);
  (void)index.note_passed(other, 1);
  ASSERT_EQ(index.releasable(), testing::kPage * 3);

  PageMove move;
  index.plan_release(64, move);
  EXPECT_EQ(move.unmap.size(), 3U);
  EXPECT_EQ(move.kept.size(), 2U) << "those that are mapped at their old places, too";
  move.unmapped = move.unmap.size();
  for (const Mapping& each : move.unmap) move.pages.push_back(each.page);
  EXPECT_EQ(index.finish(move), nullptr);
}

TEST_F(PagedIndexEarly, APageIsKeptWhoseOldPlaceAnotherMoveIsAboutToUnmap) {
  ASSERT_NO_FATAL_FAILURE(free_with_two_old_places());
  (void)index.note_passed(stream, 2);

  PageMove other;
  ASSERT_EQ(index.plan(testing::kPage, stream, {.rather = 1, .most = 1}, other),
            PagedIndex::Plan::kMade);
  ASSERT_EQ(other.retire.size(), 2U);
  PageMove release;
  index.plan_release(64, release);
  EXPECT_TRUE(release.retire.empty());
  EXPECT_EQ(release.kept.size(), 2U) << "they are still mapped there";
  for (PageMove* move : {&other, &release}) {
    move->retired_pages = move->retire.size();
    move->unmapped = move->unmap.size();
    for (const Mapping& each : move->unmap) move->pages.push_back(each.page);
    for (; move->created < move->create; ++move->created) move->pages.push_back({next_page++});
    move->mapped = move->places.size();
    EXPECT_EQ(index.finish(*move) != nullptr, move == &other);
  }
  EXPECT_EQ(index.stale_pages(), 0U);
}

TEST_F(PagedIndexEarly, NoMorePlacesAreOldThanThereArePages) {
  std::uint64_t point = 0;
  std::vector<Block*> blocks;
  for (std::size_t i = 0; i < 8; ++i) blocks.push_back(allocate(1));
  for (std::size_t i = 0; i < 8; i += 2) free_at(*blocks.at(i), ++point);
  most = 0;
  // Each round leaves three free pages that are not neighbours, so the next goes elsewhere.
  Block* middle = nullptr;
  std::size_t rounds = 0;
  for (Block* run = allocate(3); run != nullptr && rounds < 10; run = allocate(3), ++rounds) {
    EXPECT_LE(index.stale_pages(), 8U);
    free_at(*run, ++point);
    Block* const first = allocate(1);
    if (middle != nullptr) free_at(*middle, ++point);
    middle = allocate(1);
    free_at(*allocate(1), ++point);
    free_at(*first, ++point);
  }
  EXPECT_GT(rounds, 1U);
  EXPECT_LT(rounds, 10U) << "it would go on for ever";
  EXPECT_EQ(index.note_passed(stream, point), Bytes{}) << "cached they were";
  EXPECT_NE(allocate(3), nullptr);
  EXPECT_EQ(index.stale_pages(), 0U);
}

}  // namespace
}  // namespace weir
