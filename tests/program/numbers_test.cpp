#include "tools/program/numbers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tools/program/median.hpp"

namespace weir::testing {
namespace {

TEST(Numbers, FormatsNumbersWithFixedDigits) {
  EXPECT_EQ(format_number(1.0 / 3, 2), "0.33");
  EXPECT_EQ(format_number(2, 0), "2");
  EXPECT_EQ(format_number(0.005, 3), "0.005");
}

TEST(Numbers, FormatsNanWithoutItsSign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(format_number(nan, 6), "nan");
  EXPECT_EQ(format_number(std::copysign(nan, -1.0), 6), "nan");
}

TEST(Numbers, CountsOneThingAndSeveral) {
  EXPECT_EQ(format_count(1, "batch", "es"), "1 batch");
  EXPECT_EQ(format_count(0, "batch", "es"), "0 batches");
  EXPECT_EQ(format_count(2, "pair"), "2 pairs");
}

TEST(Numbers, KeepsThreeDigitsAlsoWhereRoundingAddsOne) {
  EXPECT_EQ(format_three_digits(1.234), "1.23");
  EXPECT_EQ(format_three_digits(9.996), "10.0");
  EXPECT_EQ(format_three_digits(99.96), "100");
  EXPECT_EQ(format_three_digits(1234.4), "1234");
}

TEST(Numbers, ATimeHasTheUnitThatSuitsIt) {
  EXPECT_EQ(format_nanoseconds(27.6), "27.6 ns");
  EXPECT_EQ(format_nanoseconds(999.6), "1.00 us");
  EXPECT_EQ(format_nanoseconds(12'345), "12.3 us");
  EXPECT_EQ(format_nanoseconds(2.5e6), "2.50 ms");
  EXPECT_EQ(format_nanoseconds(3e9), "3.00 s");
}

TEST(Numbers, HexHasAtLeastTheDigitsThatAreAskedFor) {
  EXPECT_EQ(format_hex(0x801, 8), "0x00000801");
  EXPECT_EQ(format_hex(0x123456789ab), "0x123456789ab");
  EXPECT_EQ(format_hex(0), "0x0");
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoThere) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(quantile({2, 0.5, 1}, 0.25), 0.75);
  EXPECT_EQ(quantile({2, 0.5, 1}, 0.75), 1.5);
  EXPECT_EQ(quantile({7}, 0.75), 7);
  EXPECT_EQ(quantile({}, 0.25), 0);
}

}  // namespace
}  // namespace weir::testing
