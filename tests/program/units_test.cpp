#include "tools/program/units.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::testing {
namespace {

using ::testing::ElementsAre;
using Sizes = std::vector<std::optional<Bytes>>;
using Times = std::vector<std::optional<double>>;

TEST(Units, AColumnHasTheUnitOfItsLargestSize) {
  const UnitColumn column = in_one_unit(Sizes{mib(121), Bytes{1'698'693}, std::nullopt, Bytes{}});
  EXPECT_EQ(column.unit, "MiB");
  EXPECT_THAT(column.cells, ElementsAre("121.00", "1.62", "-", "0.00"));
}

TEST(Units, WholeNumbersAndLargeOnesHaveNoPoint) {
  EXPECT_THAT(in_one_unit(Sizes{gib(2), gib(40)}).cells, ElementsAre("2", "40"));
  EXPECT_THAT(in_one_unit(Sizes{kib(129) * 1024, mib(400) + kib(300)}).cells,
              ElementsAre("129", "400"));
  EXPECT_THAT(in_one_unit(Sizes{kib(11) * 1000, mib(50)}).cells, ElementsAre("10.7", "50.0"));
}

TEST(Units, ASmallerUnitShowsSmallSizesBesideLargeOnes) {
  const UnitColumn column = in_one_unit(Sizes{gib(9), mib(50)});
  EXPECT_EQ(column.unit, "MiB");
  EXPECT_THAT(column.cells, ElementsAre("9216", "50"));
}

TEST(Units, NoNumberHasMoreThanFourDigitsForTheSakeOfASmallerOne) {
  const UnitColumn column = in_one_unit(Sizes{gib(16), mib(60), Bytes{1}});
  EXPECT_EQ(column.unit, "GiB");
  EXPECT_THAT(column.cells, ElementsAre("16.00", "0.06", "<0.01"));
}

TEST(Units, NothingIsZeroBytesInBytes) {
  EXPECT_EQ(in_one_unit(Sizes{std::nullopt}).unit, "");
  EXPECT_EQ(in_one_unit(Sizes{Bytes{}}).unit, "B");
  EXPECT_THAT(in_one_unit(Sizes{Bytes{}, std::nullopt}).cells, ElementsAre("0", "-"));
}

TEST(Units, TheLargestSizeThatThereIsFits) {
  const UnitColumn column = in_one_unit(Sizes{Bytes{UINT64_MAX}});
  EXPECT_EQ(column.unit, "TiB");
  EXPECT_THAT(column.cells, ElementsAre("16777216"));
}

using Columns = std::vector<std::vector<std::optional<double>>>;

/// Returns the first cell of each column, with its unit.
std::vector<std::string> first_cells(const Columns& columns) {
  const std::vector<Scale> scales = scales_of(Measure::kBytes, columns);
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    cells.push_back(scales[i].format(columns[i].front()) + " " + scales[i].unit);
  }
  return cells;
}

TEST(Units, ColumnsTooSmallForTheSmallestUnitHaveAnEnd) {
  EXPECT_THAT(first_cells({{0.001}, {0.002}}), ElementsAre("<0.01 B", "<0.01 B"));
}

TEST(Units, ComparedColumnsHaveOneUnitAndTheSameDigits) {
  EXPECT_THAT(first_cells({{0x1p30}, {0x1p29}}), ElementsAre("1.00 GiB", "0.50 GiB"));
  EXPECT_THAT(first_cells({{122.59 * 0x1p20}, {1.62 * 0x1p20}, {0x1p22}}),
              ElementsAre("122.59 MiB", "1.62 MiB", "4.00 MiB"));
  EXPECT_THAT(first_cells({{0x1p20}, {std::nullopt}, {0.0}}),
              ElementsAre("1 MiB", "- MiB", "0 MiB"));
  EXPECT_THAT(first_cells({{80 * 0x1p30}, {16.5 * 0x1p20}}),
              ElementsAre("81920.0 MiB", "16.5 MiB"));
}

TEST(Units, AColumnOfMuchSmallerSizesHasItsOwn) {
  EXPECT_THAT(first_cells({{400 * 0x1p30}, {0x1p20}, {3 * 0x1p20}}),
              ElementsAre("400 GiB", "1 MiB", "3 MiB"));
  EXPECT_THAT(first_cells({{0x1p40}, {0x1p20}, {1.0}}), ElementsAre("1 TiB", "1 MiB", "1 B"));
}

TEST(Units, TimesHaveOneUnitToo) {
  const UnitColumn column = times_in_one_unit(Times{1.5e6, 2.25e5, std::nullopt});
  EXPECT_EQ(column.unit, "ms");
  EXPECT_THAT(column.cells, ElementsAre("1.50", "0.23", "-"));
  EXPECT_EQ(times_in_one_unit(Times{12.0, 999.0}).unit, "ns");
  EXPECT_EQ(times_in_one_unit(Times{3.6e12}).cells.front(), "3600");
}

}  // namespace
}  // namespace weir::testing
