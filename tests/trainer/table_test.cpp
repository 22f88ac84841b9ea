#include "tools/program/table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weir::testing {
namespace {

TEST(Table, AlignsColumnsToTheirWidestCell) {
  EXPECT_EQ(format_table({{"policy", "batches/s", "result"},
                          {"backstop", "9.5", "finished"},
                          {"x", "10.25", "out"}}),
            "policy    batches/s  result\n"
            "backstop        9.5  finished\n"
            "x             10.25  out\n");
}

TEST(Table, HasNoSpacesAtTheEndsOfLines) {
  EXPECT_EQ(format_table({{"a", "long heading"}, {"b", "x"}}).find(" \n"), std::string::npos);
}

TEST(Table, TakesRowsOfDifferentLengths) {
  EXPECT_EQ(format_table({{"a"}, {"b", "c"}}), "a\nb  c\n");
}

TEST(Table, FormatsNumbersWithFixedDigits) {
  EXPECT_EQ(format_number(1.0 / 3, 2), "0.33");
  EXPECT_EQ(format_number(2, 0), "2");
  EXPECT_EQ(format_number(0.005, 3), "0.005");
}

TEST(Table, FormatsNanWithoutItsSign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(format_number(nan, 6), "nan");
  EXPECT_EQ(format_number(std::copysign(nan, -1.0), 6), "nan");
}

TEST(Table, CountsOneThingAndSeveral) {
  EXPECT_EQ(format_count(1, "batch", "es"), "1 batch");
  EXPECT_EQ(format_count(0, "batch", "es"), "0 batches");
  EXPECT_EQ(format_count(2, "pair"), "2 pairs");
}

}  // namespace
}  // namespace weir::testing
