#include "tools/program/table.hpp"

#include <gtest/gtest.h>

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

TEST(Table, AlignsEachColumnAsTold) {
  EXPECT_EQ(
      format_table({{"name", "time", "peer", "n"}, {"a", "12 ns", "", "1"}, {"bc", "3 ns", "x"}},
                   "lrl"),
      "name   time  peer  n\n"
      "a     12 ns        1\n"
      "bc     3 ns  x\n");
}

}  // namespace
}  // namespace weir::testing
