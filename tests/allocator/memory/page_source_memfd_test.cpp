// Promises of pages of a file in memory beyond the conformance suite: towards the operating system,
// and a child.

#include "allocator/memory/page_source_memfd.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "support/file_size_limit.hpp"
#include "support/forked.hpp"
#include "support/print.hpp"
#include "support/sanitized.hpp"
#include "support/touchable.hpp"

namespace weir {
namespace {

using testing::is_touchable;

constexpr Bytes kPage = MemfdPages::kPageSize;

std::size_t lines_of(const char* path) {
  std::ifstream file(path);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

/// Number of the operating system's mappings in the range.
std::size_t mappings_in(const void* range, Bytes size) {
  const auto start = reinterpret_cast<std::uintptr_t>(range);
  std::ifstream file("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    const std::uintptr_t from = std::stoull(line, nullptr, 16);
    const std::uintptr_t to = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    if (from < start + size.count && to > start) ++count;
  }
  return count;
}

/// Whether this process has any page of any source. The memory at a page's address would not say:
/// in a child it may already be somebody else's.
bool has_pages_mapped() {
  std::ifstream file("/proc/self/maps");
  const std::string all(std::istreambuf_iterator<char>(file), {});
  return all.find("memfd:weir-pages") != std::string::npos;
}

class MemfdPagesTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<Page> make(std::size_t count) {
    std::vector<Page> made(count);
    EXPECT_EQ(pages.create(made), count);
    return made;
  }
  static void* at(void* range, std::size_t n) {
    return static_cast<std::byte*>(range) + n * kPage.count;
  }
  static std::vector<Mapping> place(const std::vector<Page>& pages, void* range,
                                    std::size_t step = 1) {
    std::vector<Mapping> mappings;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      mappings.push_back({at(range, i * step), pages[i]});
    }
    return mappings;
  }

  CapacityGauge gauge{gib(80)};
  MemfdPages pages{gauge};
};

TEST_F(MemfdPagesTest, MemoryOfDestroyedPagesGoesBack) {
  void* const range = pages.reserve(kPage * 4);
  const auto made = make(4);
  const auto mappings = place(made, range);
  EXPECT_EQ(pages.resident(), Bytes{}) << "a page takes nothing until it is written to";
  ASSERT_EQ(pages.map(mappings), 4U);
  std::memset(range, 1, 4 * kPage.count);
  EXPECT_EQ(pages.resident(), kPage * 4);
  ASSERT_EQ(pages.unmap(mappings), 4U);
  EXPECT_EQ(pages.resident(), kPage * 4) << "who unmaps a page keeps what it holds";
  pages.destroy(std::vector{made[0], made[1], made[3]});
  EXPECT_EQ(pages.resident(), kPage);
  pages.destroy(std::vector{made[2]});
  EXPECT_EQ(pages.resident(), Bytes{});
  pages.unreserve(range, kPage * 4);
}

TEST_F(MemfdPagesTest, ANewPageIsTheLowestThatIsFree) {
  const auto made = make(6);
  pages.destroy(std::vector{made[4], made[1], made[3]});
  EXPECT_EQ(make(4), (std::vector{made[1], made[3], made[4], Page{made[5].id + 1}}));
}

TEST_F(MemfdPagesTest, ANewPageIsZeroAlsoWhereAnotherWasBefore) {
  void* const range = pages.reserve(kPage);
  const auto first = make(1);
  ASSERT_EQ(pages.map(place(first, range)), 1U);
  std::memset(range, 7, kPage.count);
  ASSERT_EQ(pages.unmap(place(first, range)), 1U);
  pages.destroy(first);
  const auto second = make(1);
  ASSERT_EQ(second, first);
  ASSERT_EQ(pages.map(place(second, range)), 1U);
  const auto* const bytes = static_cast<const char*>(range);
  EXPECT_EQ(std::count(bytes, bytes + kPage.count, 0), static_cast<std::ptrdiff_t>(kPage.count));
  ASSERT_EQ(pages.unmap(place(second, range)), 1U);
  pages.unreserve(range, kPage);
}

TEST_F(MemfdPagesTest, NeighboursAreOneMapping) {
  void* const range = pages.reserve(kPage * 64);
  const auto mappings = place(make(64), range);
  EXPECT_EQ(mappings_in(range, kPage * 64), 1U);
  ASSERT_EQ(pages.map(mappings), 64U);
  EXPECT_EQ(mappings_in(range, kPage * 64), 1U) << "mapped in one call";
  ASSERT_EQ(pages.unmap(mappings), 64U);
  EXPECT_EQ(mappings_in(range, kPage * 64), 1U);
  for (const Mapping& each : mappings) ASSERT_EQ(pages.map({&each, 1}), 1U);
  EXPECT_EQ(mappings_in(range, kPage * 64), 1U) << "mapped one by one";
  ASSERT_EQ(pages.unmap({&mappings[10], 1}), 1U);
  EXPECT_EQ(mappings_in(range, kPage * 64), 3U);
  ASSERT_EQ(pages.map({&mappings[10], 1}), 1U);
  EXPECT_EQ(mappings_in(range, kPage * 64), 1U);
  ASSERT_EQ(pages.unmap(mappings), 64U);
  pages.unreserve(range, kPage * 64);
}

TEST_F(MemfdPagesTest, ManyRemapsLeaveNoMappingsBehind) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitizer makes mappings of its own";
  constexpr std::size_t kCount = 100;
  void* const range = pages.reserve(kPage * 2 * kCount);
  const auto made = make(kCount);
  const std::size_t before = lines_of("/proc/self/maps");
  for (std::size_t round = 0; round < 200; ++round) {
    const auto mappings = place(made, at(range, round % 2), round % 3 == 0 ? 1 : 2);
    ASSERT_EQ(pages.map(mappings), kCount);
    ASSERT_EQ(pages.unmap(mappings), kCount);
  }
  EXPECT_EQ(mappings_in(range, kPage * 2 * kCount), 1U);
  EXPECT_LT(lines_of("/proc/self/maps"), before + 10) << "beside what the test itself takes";
  pages.unreserve(range, kPage * 2 * kCount);
}

/// Mappings that the operating system cannot join: each has its own object.
class OwnMappings {
 public:
  explicit OwnMappings(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      made_.push_back(mmap(nullptr, 1, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    }
  }
  ~OwnMappings() {
    for (void* mapping : made_) munmap(mapping, 1);
  }
  OwnMappings(const OwnMappings&) = delete;
  OwnMappings& operator=(const OwnMappings&) = delete;

 private:
  std::vector<void*> made_;
};

/// With so many other mappings: a page takes two, so the limit is met at another place for an even
/// and an odd number.
class AtTheLimitOnMappings : public MemfdPagesTest,
                             public ::testing::WithParamInterface<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Beside, AtTheLimitOnMappings, ::testing::Values(0U, 1U),
                         ::testing::PrintToStringParamName());

TEST_P(AtTheLimitOnMappings, FewerAreMappedAndNothingIsLost) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitizer would not survive the limit itself";
  std::size_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  const std::size_t count = limit / 2 + 100;
  if (count * kPage.count > gauge.capacity().count) GTEST_SKIP() << "the limit is out of reach";
  const OwnMappings beside(GetParam());
  void* const range = pages.reserve(kPage * 2 * count);
  ASSERT_NE(range, nullptr);
  const auto mappings = place(make(count), range, 2);
  const std::size_t done = pages.map(mappings);
  const std::size_t after = pages.map(std::span(mappings).subspan(done));
  // At the limit no assertion may take a mapping, so the observations are kept.
  const bool last_is_there = is_touchable(mappings[done - 1].address);
  const bool next_is_there = is_touchable(mappings[done].address);
  const std::size_t unmapped = pages.unmap(std::span(mappings).first(done));
  EXPECT_LT(done, count);
  EXPECT_GT(done, limit / 3);
  EXPECT_EQ(after, 0U);
  EXPECT_TRUE(last_is_there);
  EXPECT_FALSE(next_is_there);
  EXPECT_EQ(unmapped, done);
  EXPECT_EQ(mappings_in(range, kPage * 2 * count), 1U) << "no hole that others could take";
  ASSERT_EQ(pages.map({&mappings[done], 1}), 1U);
  ASSERT_EQ(pages.unmap({&mappings[done], 1}), 1U);
  pages.unreserve(range, kPage * 2 * count);
}

TEST_F(MemfdPagesTest, FilesThatMayNotBeLongHaveFewerPages) {
  CapacityGauge room(kPage * 8);
  std::vector<Page> some(8);
  {
    const testing::FileSizeLimit limit(3 * kPage.count + 1);
    MemfdPages few(room);
    EXPECT_EQ(few.create(some), 3U);
    EXPECT_EQ(room.used(), kPage * 3);
    few.destroy(std::span(some).first(3));
  }
  EXPECT_EQ(room.used(), Bytes{});
}

TEST_F(MemfdPagesTest, AChildHasNoneOfIt) {
  void* const range = pages.reserve(kPage * 2);
  const auto made = make(2);
  ASSERT_EQ(pages.map(place(made, range)), 2U);
  std::memset(range, 1, 2 * kPage.count);
  ASSERT_TRUE(has_pages_mapped());
  EXPECT_EQ(testing::run_forked([&] {
              std::vector<Page> one(1);
              const bool none = !has_pages_mapped() && pages.create(one) == 0 &&
                                pages.map(place(made, range)) == 0 &&
                                pages.reserve(kPage) == nullptr;
              // Like a pool that ends with the child.
              const bool ended = pages.unmap(place(made, range)) == 2;
              pages.destroy(made);
              pages.unreserve(range, kPage * 2);
              return none && ended ? 0 : 1;
            }),
            0);
  const auto* const bytes = static_cast<const char*>(range);
  EXPECT_EQ(std::count(bytes, bytes + 2 * kPage.count, 1),
            static_cast<std::ptrdiff_t>(2 * kPage.count))
      << "the parent's memory is as it was";
  ASSERT_EQ(pages.unmap(place(made, range)), 2U);
  pages.unreserve(range, kPage * 2);
}

}  // namespace
}  // namespace weir
