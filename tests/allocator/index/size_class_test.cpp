#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "allocator/index/size_class_index.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

constexpr std::uint64_t kLimit = std::uint64_t{1} << 63U;

// Checked at compile time: MXNet's own examples, page 4096, cutoff 24.
static_assert(round_block({1}, kib(4), 24) == Bytes{4096});
static_assert(round_block({4096}, kib(4), 24) == Bytes{4096});
static_assert(round_block({4097}, kib(4), 24) == Bytes{8192});
static_assert(round_block(mib(16), kib(4), 24) == mib(16));
static_assert(round_block(mib(16) + Bytes{1}, kib(4), 24) == mib(32));
static_assert(round_block(mib(33), kib(4), 24) == mib(48));
static_assert(round_block({32}, kib(4), 20) == round_block({4095}, kib(4), 20));
static_assert(round_block({2097153}, kib(4), 20) == round_block({3145728}, kib(4), 20));
static_assert(naive_block({1}, kib(4), mib(2)) == Bytes{4096});
static_assert(naive_block({4097}, kib(4), mib(2)) == Bytes{8192});
static_assert(naive_block(mib(2), kib(4), mib(2)) == mib(2));
static_assert(naive_block(mib(2) + Bytes{1}, kib(4), mib(2)) == mib(4));
static_assert(!round_block({kLimit + 1}, kib(4), 24));
static_assert(!naive_block({UINT64_MAX}, kib(4), mib(2)));

/// ceil(log2 s) by counting, as in the formula of `round`.
unsigned ceil_log2(std::uint64_t s) {
  unsigned log = 0;
  while ((std::uint64_t{1} << log) < s) ++log;
  return log;
}

std::uint64_t round_as_specified(std::uint64_t s, unsigned page_log2, unsigned cutoff) {
  const unsigned l = ceil_log2(s);
  if (l > cutoff) {
    const std::uint64_t unit = std::uint64_t{1} << cutoff;
    std::uint64_t units = s / unit;
    if (s % unit != 0) ++units;
    return units * unit;
  }
  return std::uint64_t{1} << (l > page_log2 ? l : page_log2);
}

std::uint64_t multiple_above(std::uint64_t s, std::uint64_t unit) {
  return s % unit == 0 ? s : s + (unit - s % unit);
}

std::uint64_t naive_as_specified(std::uint64_t s, std::uint64_t page, std::uint64_t large) {
  const std::uint64_t paged = multiple_above(s, page);
  return paged > large ? multiple_above(paged, large) : paged;
}

TEST(SizeClass, RoundFollowsItsFormulaForEverySmallSize) {
  for (const unsigned page_log2 : {5U, 12U, 20U}) {
    for (std::uint64_t s = 1; s <= (std::uint64_t{3} << 20U) + 1; ++s) {
      ASSERT_EQ(round_block({s}, {std::uint64_t{1} << page_log2}, 20),
                Bytes{round_as_specified(s, page_log2, 20)})
          << s << " bytes, page 2^" << page_log2;
    }
  }
}

TEST(SizeClass, RoundFollowsItsFormulaAroundEveryPowerOfTwo) {
  for (unsigned cutoff = 20; cutoff <= 34; ++cutoff) {
    for (unsigned log = 1; log < 63; ++log) {
      for (const std::uint64_t s : {(std::uint64_t{1} << log) - 1, std::uint64_t{1} << log,
                                    (std::uint64_t{1} << log) + 1}) {
        ASSERT_EQ(round_block({s}, kib(4), cutoff), Bytes{round_as_specified(s, 12, cutoff)})
            << s << " bytes, cutoff " << cutoff;
      }
    }
  }
}

TEST(SizeClass, NaiveFollowsItsFormulaForEverySmallSize) {
  for (const std::uint64_t page : {32U, 100U, 4096U}) {
    for (const std::uint64_t large : {1U, 5000U, 65536U}) {
      for (std::uint64_t s = 1; s <= 200'000; ++s) {
        ASSERT_EQ(naive_block({s}, {page}, {large}), Bytes{naive_as_specified(s, page, large)})
            << s << " bytes, page " << page << ", large " << large;
      }
    }
  }
}

TEST(SizeClass, NoRequestIsTooLargeForATable) {
  // The original indexed past its table here.
  EXPECT_EQ(round_block(gib(16) + Bytes{1}, kib(4), 24), gib(16) + mib(16));
  EXPECT_EQ(round_block(gib(17), kib(4), 34), gib(32));
  EXPECT_EQ(round_block(gib(100'000), kib(4), 24), gib(100'000));
  EXPECT_EQ(naive_block(gib(17) + Bytes{1}, kib(4), mib(2)), gib(17) + mib(2));
}

TEST(SizeClass, NothingIsLargerThanTwoToThe63) {
  for (const unsigned cutoff : {20U, 24U, 34U}) {
    EXPECT_EQ(round_block({kLimit}, kib(4), cutoff), Bytes{kLimit});
    EXPECT_EQ(round_block({kLimit - 1}, kib(4), cutoff), Bytes{kLimit});
    EXPECT_EQ(round_block({kLimit + 1}, kib(4), cutoff), std::nullopt);
    EXPECT_EQ(round_block({UINT64_MAX}, kib(4), cutoff), std::nullopt);
  }
  EXPECT_EQ(naive_block({kLimit}, kib(4), mib(2)), Bytes{kLimit});
  EXPECT_EQ(naive_block({kLimit + 1}, kib(4), mib(2)), std::nullopt);
  // The last multiple of a unit that does not divide 2^63 lies below it.
  EXPECT_EQ(round_up({kLimit}, {3}), std::nullopt);
  EXPECT_EQ(round_up({kLimit - 3}, {3}), Bytes{kLimit - 2});
  EXPECT_EQ(round_up({1}, {kLimit}), Bytes{kLimit});
  EXPECT_EQ(round_up({1}, {kLimit + 1}), std::nullopt);
}

}  // namespace
}  // namespace weir
