// The promises of every page source, checked on each source in this program's kit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/memory/page_source_kit.hpp"
#include "support/fault.hpp"
#include "support/faulty_page_source.hpp"
#include "support/print.hpp"
#include "support/refused.hpp"

namespace weir {
namespace {

using testing::Fault;
using testing::FaultyPageSource;
using testing::PagedUpstream;
using testing::PageKind;

/// The source is used through a fake that fails a test which misuses it.
class EveryPageSource : public ::testing::TestWithParam<PageKind> {
 protected:
  /// Makes room for as many pages, of the size on which the capacities here are based. Throws
  /// otherwise: the test cannot continue.
  void open(std::size_t pages) {
    paged = GetParam().make(mib(2) * pages);
    PageSource* const its = paged->upstream().pages();
    if (its == nullptr) throw Error("there are no pages");
    if (its->page_size() != mib(2)) throw Error("pages of " + format_bytes(its->page_size()));
    source = std::make_unique<FaultyPageSource>(*its);
    page = source->page_size();
  }
  [[nodiscard]] std::vector<Page> make(std::size_t count) {
    std::vector<Page> pages(count);
    EXPECT_EQ(source->create(pages), count);
    return pages;
  }
  [[nodiscard]] void* at(void* range, std::size_t n) const {
    return static_cast<std::byte*>(range) + n * page.count;
  }
  /// Page i at the place `first + i * step` of a range.
  [[nodiscard]] std::vector<Mapping> place(const std::vector<Page>& pages, void* range,
                                           std::size_t first = 0, std::size_t step = 1) const {
    std::vector<Mapping> mappings;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      mappings.push_back({at(range, first + i * step), pages[i]});
    }
    return mappings;
  }
  void map(const std::vector<Mapping>& mappings) {
    ASSERT_EQ(source->map(mappings), mappings.size());
  }
  void unmap(const std::vector<Mapping>& mappings) {
    ASSERT_EQ(source->unmap(mappings), mappings.size());
  }
  [[nodiscard]] bool holds(void* address, unsigned char value) {
    const auto bytes = paged->read(address, page.count);
    return !bytes.empty() && std::all_of(bytes.begin(), bytes.end(),
                                         [=](unsigned char byte) { return byte == value; });
  }

  std::unique_ptr<PagedUpstream> paged;
  std::unique_ptr<FaultyPageSource> source;
  Bytes page;
};

class EveryPageWithMemory : public EveryPageSource {};

TEST_P(EveryPageSource, IsTheSameEachTimeItIsAskedFor) {
  open(1);
  EXPECT_EQ(paged->upstream().pages(), paged->upstream().pages());
}

TEST_P(EveryPageSource, ReservesAlignedRangesThatDoNotOverlap) {
  open(4);
  std::vector<std::pair<std::uintptr_t, std::uint64_t>> ranges;
  for (const std::uint64_t pages : {1U, 3U, 1U, 64U, 1000U, 2U}) {
    void* const range = source->reserve(page * pages);
    ASSERT_NE(range, nullptr);
    ranges.emplace_back(reinterpret_cast<std::uintptr_t>(range), page.count * pages);
    EXPECT_EQ(ranges.back().first % page.count, 0U);
  }
  auto sorted = ranges;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    EXPECT_LE(sorted[i - 1].first + sorted[i - 1].second, sorted[i].first);
  }
  EXPECT_EQ(paged->used(), Bytes{}) << "addresses are no memory";
  for (const auto& [range, size] : ranges) {
    source->unreserve(reinterpret_cast<void*>(range), {size});
  }
}

TEST_P(EveryPageSource, ReservesFarMoreThanThereIsMemoryOrSaysThatItCannot) {
  open(1);
  const Bytes huge = GetParam().huge;
  void* const range = source->reserve(huge);
  if (range == nullptr) return;
  const auto last = place(make(1), range, huge.count / page.count - 1);
  map(last);
  unmap(last);
  source->destroy(std::vector{last.front().page});
  source->unreserve(range, huge);
}

TEST_P(EveryPageSource, RefusesAddressesThatNoMachineHas) {
  open(1);
  if (const char* const call = GetParam().reserve_call; call != nullptr) {
    testing::expect_refused(call, 2);  // out of memory
  }
  EXPECT_EQ(source->reserve({UINT64_MAX / page.count * page.count}), nullptr);
  EXPECT_EQ(source->reserve({std::uint64_t{1} << 63U}), nullptr);
}

TEST_P(EveryPageSource, APageMayBeAtTwoPlacesAndEndsOnceItIsAtNone) {
  open(1);
  void* const range = source->reserve(page * 3);
  const auto pages = make(1);
  const auto first = place(pages, range);
  const auto second = place(pages, range, 2);
  map(first);
  map(second);
  if (GetParam().has_memory) {
    EXPECT_TRUE(paged->write(at(range, 0), 7, page.count));
    EXPECT_TRUE(holds(at(range, 2), 7));
  }
  unmap(first);
  if (GetParam().has_memory) {
    EXPECT_TRUE(holds(at(range, 2), 7)) << "it lives on at the other place";
  }
  EXPECT_EQ(paged->used(), page);
  unmap(second);
  source->destroy(pages);
  EXPECT_EQ(paged->used(), Bytes{});
  source->unreserve(range, page * 3);
}

TEST_P(EveryPageSource, MakesAsManyPagesAsThereIsRoomFor) {
  open(5);
  const auto three = make(3);
  EXPECT_EQ(paged->used(), page * 3);
  std::vector<Page> more(4);
  EXPECT_EQ(source->create(more), 2U);
  EXPECT_EQ(paged->used(), page * 5);
  EXPECT_EQ(source->create(more), 0U);
  source->destroy(three);
  EXPECT_EQ(paged->used(), page * 2);
  EXPECT_EQ(source->create(std::span(more).subspan(2)), 2U);
  source->destroy(more);
  EXPECT_EQ(paged->used(), Bytes{});
  EXPECT_EQ(source->create({}), 0U);
}

TEST_P(EveryPageSource, SharesItsCapacityWithWholeAllocations) {
  open(4);
  Upstream& upstream = paged->upstream();
  void* const block = upstream.allocate(page * 2 + Bytes{512});
  ASSERT_NE(block, nullptr);
  std::vector<Page> pages(4);
  EXPECT_EQ(source->create(pages), 1U) << "half a page is none";
  EXPECT_EQ(upstream.allocate(page), nullptr);
  upstream.deallocate(block, page * 2 + Bytes{512});
  EXPECT_EQ(source->create(std::span(pages).subspan(1)), 3U);
  EXPECT_EQ(upstream.allocate({512}), nullptr);
  source->destroy(pages);
  EXPECT_EQ(paged->used(), Bytes{});
}

TEST_P(EveryPageSource, NeverExceedsItsCapacityFromManyThreads) {
  open(10);
  const auto pages_of = [this](std::size_t count) {
    for (int i = 0; i < GetParam().rounds; ++i) {
      std::vector<Page> pages(count);
      pages.resize(source->create(pages));
      if (paged->used() > paged->upstream().capacity()) ADD_FAILURE() << "more than there is";
      source->destroy(pages);
    }
  };
  const auto blocks = [this] {
    for (int i = 0; i < GetParam().rounds; ++i) {
      void* const block = paged->upstream().allocate(page * 3);
      if (paged->used() > paged->upstream().capacity()) ADD_FAILURE() << "more than there is";
      if (block != nullptr) paged->upstream().deallocate(block, page * 3);
    }
  };
  std::vector<std::thread> threads;
  for (const std::size_t count : {1U, 4U, 7U}) threads.emplace_back(pages_of, count);
  threads.emplace_back(blocks);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(paged->used(), Bytes{});
  EXPECT_EQ(source->created(), 0U);
}

TEST_P(EveryPageSource, MapsAndUnmapsFromManyThreads) {
  constexpr std::size_t kThreads = 4;
  open(4 * kThreads);
  void* const range = source->reserve(page * 8 * kThreads);
  const auto work = [&](std::size_t thread) {
    const auto pages = make(4);
    for (std::size_t i = 0; i < 100; ++i) {
      const auto mappings = place(pages, range, thread * 8 + i % 4);
      EXPECT_EQ(source->map(mappings), 4U);
      EXPECT_EQ(source->unmap(mappings), 4U);
    }
    source->destroy(pages);
  };
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(source->mapped(), 0U);
  source->unreserve(range, page * 8 * kThreads);
}

TEST_P(EveryPageWithMemory, MappedPagesAreMemory) {
  open(3);
  void* const range = source->reserve(page * 3);
  const auto pages = make(3);
  const auto mappings = place(pages, range);
  map(mappings);
  EXPECT_TRUE(paged->write(range, 1, 3 * page.count));
  EXPECT_TRUE(paged->write(at(range, 1), 2, page.count));
  EXPECT_TRUE(holds(at(range, 0), 1));
  EXPECT_TRUE(holds(at(range, 1), 2));
  EXPECT_TRUE(holds(at(range, 2), 1));
  unmap(mappings);
  source->destroy(pages);
  source->unreserve(range, page * 3);
}

TEST_P(EveryPageWithMemory, APageKeepsItsBytesWhereverItIsMapped) {
  open(4);
  void* const range = source->reserve(page * 16);
  const auto pages = make(4);
  map(place(pages, range));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(paged->write(at(range, i), static_cast<unsigned char>(i + 1), page.count));
  }
  unmap(place(pages, range));
  // In another order, apart, and in another range.
  const std::vector<Page> turned(pages.rbegin(), pages.rend());
  void* const elsewhere = source->reserve(page * 2);
  std::vector<Mapping> moved = place({turned[0], turned[1]}, range, 5, 3);
  const auto others = place({turned[2], turned[3]}, elsewhere);
  moved.insert(moved.end(), others.begin(), others.end());
  map(moved);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(holds(moved[i].address, static_cast<unsigned char>(4 - i))) << i;
  }
  unmap(moved);
  source->destroy(pages);
  source->unreserve(elsewhere, page * 2);
  source->unreserve(range, page * 16);
}

TEST_P(EveryPageWithMemory, PagesThatWereNotMadeOneAfterTheOtherMayLieSideBySide) {
  open(3);
  void* const range = source->reserve(page * 3);
  const auto pages = make(3);
  map(place(pages, range));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(paged->write(at(range, i), static_cast<unsigned char>(i + 1), page.count));
  }
  unmap(place(pages, range));
  const auto mappings = place({pages[0], pages[2]}, range);
  map(mappings);
  EXPECT_TRUE(holds(at(range, 0), 1));
  EXPECT_TRUE(holds(at(range, 1), 3));
  unmap(mappings);
  source->destroy(pages);
  source->unreserve(range, page * 3);
}

TEST_P(EveryPageWithMemory, OnlyWhereAPageIsMappedCanBeTouched) {
  open(3);
  void* const range = source->reserve(page * 3);
  EXPECT_FALSE(paged->write(range, 1, 1));
  const auto pages = make(3);
  const auto mappings = place(pages, range);
  map(mappings);
  EXPECT_TRUE(paged->write(at(range, 1), 1, 1));
  unmap({mappings[1]});
  EXPECT_TRUE(paged->write(at(range, 0), 1, page.count));
  EXPECT_FALSE(paged->write(at(range, 1), 1, 1));
  EXPECT_TRUE(paged->read(at(range, 1), 1).empty());
  EXPECT_TRUE(paged->write(at(range, 2), 1, page.count));
  unmap({mappings[2], mappings[0]});
  EXPECT_FALSE(paged->write(at(range, 0), 1, 1));
  EXPECT_FALSE(paged->write(at(range, 2), 1, 1));
  source->destroy(pages);
  source->unreserve(range, page * 3);
}

TEST_P(EveryPageSource, UnmapsWhatWasMappedInOtherCalls) {
  open(6);
  void* const range = source->reserve(page * 6);
  const auto pages = make(6);
  const auto mappings = place(pages, range);
  map({mappings[0], mappings[1], mappings[2], mappings[3]});
  map({mappings[5]});
  map({mappings[4]});
  unmap({mappings[3], mappings[4], mappings[5]});
  unmap({mappings[1]});
  unmap({mappings[0], mappings[2]});
  map({mappings[2], mappings[1]});
  unmap({mappings[1], mappings[2]});
  source->destroy(pages);
  source->unreserve(range, page * 6);
}

TEST_P(EveryPageSource, ScattersManyPages) {
  const std::size_t many = GetParam().many;
  open(many);
  void* const range = source->reserve(page * 2 * many);
  ASSERT_NE(range, nullptr);
  const auto pages = make(many);
  const auto mappings = place(pages, range, 0, 2);
  map(mappings);
  if (GetParam().has_memory) {
    EXPECT_TRUE(paged->write(at(range, 2 * many - 2), 1, 1));
    EXPECT_FALSE(paged->write(at(range, 2 * many - 1), 1, 1));
  }
  std::vector<Mapping> backwards(mappings.rbegin(), mappings.rend());
  unmap(backwards);
  source->destroy(pages);
  source->unreserve(range, page * 2 * many);
}

TEST_P(EveryPageSource, WhatCameBeforeAFaultIsDoneAndTheRestIsNot) {
  open(4);
  void* const range = source->reserve(page * 4);
  const auto pages = make(4);
  const auto mappings = place(pages, range);
  source->refuse_map(Fault::at(3));
  EXPECT_EQ(source->map(mappings), 2U);
  source->refuse_unmap(Fault::at(2));
  EXPECT_EQ(source->unmap({mappings.begin(), 2}), 1U);
  map({mappings[0], mappings[2], mappings[3]});
  unmap(mappings);
  source->destroy(pages);
  source->unreserve(range, page * 4);
}

std::string name_of(const ::testing::TestParamInfo<PageKind>& each) { return each.param.name; }

std::vector<PageKind> kinds_with_memory() {
  std::vector<PageKind> kinds = testing::page_kinds();
  std::erase_if(kinds, [](const PageKind& kind) { return !kind.has_memory; });
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(, EveryPageSource, ::testing::ValuesIn(testing::page_kinds()), name_of);
INSTANTIATE_TEST_SUITE_P(, EveryPageWithMemory, ::testing::ValuesIn(kinds_with_memory()), name_of);

}  // namespace
}  // namespace weir
