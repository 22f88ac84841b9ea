// The fake itself: it fails on demand, counts, and finds each misuse.

#include "support/faulty_page_source.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/faulty_upstream.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

using testing::FaultyPageSource;
using testing::FaultyUpstream;

class FaultyPages : public ::testing::Test {
 protected:
  FaultyPages() { EXPECT_EQ(source.create(pages), pages.size()); }
  [[nodiscard]] Mapping at(std::size_t n, std::size_t page) const {
    return {static_cast<std::byte*>(range) + n * mib(2).count, pages.at(page)};
  }
  std::size_t map(std::vector<Mapping> mappings) { return source.map(mappings); }
  std::size_t unmap(std::vector<Mapping> mappings) { return source.unmap(mappings); }

  SimulatedUpstream raw{mib(64)};
  FaultyUpstream upstream{raw};
  FaultyPageSource& source = *upstream.pages();
  void* const range = source.reserve(mib(16));
  std::vector<Page> pages = std::vector<Page>(4);
};

TEST_F(FaultyPages, FindWhatIsMappedWrongly) {
  ASSERT_EQ(map({at(0, 0)}), 1U);
  EXPECT_NONFATAL_FAILURE((void)map({at(0, 1)}), "map over a mapping");
  EXPECT_NONFATAL_FAILURE((void)map({at(8, 2)}), "map where nothing is reserved");
  EXPECT_NONFATAL_FAILURE((void)map({{at(2, 0).address, Page{1000}}}), "map of what is no page");
}

TEST_F(FaultyPages, FindWhatIsUnmappedOrGivenBackWrongly) {
  ASSERT_EQ(map({at(0, 0)}), 1U);
  EXPECT_NONFATAL_FAILURE((void)unmap({at(1, 1)}), "page 2, which is not mapped at");
  EXPECT_NONFATAL_FAILURE(source.unreserve(range, mib(16)), "unreserve where pages are mapped");
  EXPECT_NONFATAL_FAILURE(source.unreserve(range, mib(16)), "unreserve of what was not reserved");
  EXPECT_NONFATAL_FAILURE((void)unmap({at(0, 1)}), "page 2, which is not mapped at");
  EXPECT_NONFATAL_FAILURE(source.destroy(std::vector{pages[1], pages[1]}), "destroy of what is no");
}

TEST_F(FaultyPages, FindAPageThatIsDestroyedWhileItIsMapped) {
  ASSERT_EQ(map({at(0, 0)}), 1U);
  EXPECT_NONFATAL_FAILURE(source.destroy(std::vector{pages[0]}),
                          "destroy of a page that is mapped");
}

TEST_F(FaultyPages, FindALockThatIsHeld) {
  Mutex mutex(LockRank::kLeaf);
  const Lock lock(mutex);
  EXPECT_NONFATAL_FAILURE((void)map({at(0, 0)}), "while a lock is held");
  EXPECT_NONFATAL_FAILURE((void)unmap({at(0, 0)}), "while a lock is held");
  EXPECT_NONFATAL_FAILURE((void)source.reserve(mib(2)), "while a lock is held");
  EXPECT_NONFATAL_FAILURE((void)source.create({}), "while a lock is held");
  EXPECT_NONFATAL_FAILURE(source.destroy({}), "while a lock is held");
}

}  // namespace
}  // namespace weir
