// Series for a screen.

#include "tools/timeline/analysis/reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/random_seed.hpp"

namespace weir::timeline {
namespace {

std::vector<Point> random_points(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<Point> points;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    at += random() % 100;
    points.push_back({at, random() % 1000});
  }
  return points;
}

/// The value in force at a time; 0 before the first.
std::uint64_t value_at(const std::vector<Point>& points, std::uint64_t at) {
  std::uint64_t value = 0;
  for (const Point& point : points) {
    if (point.at > at) break;
    value = point.value;
  }
  return value;
}

TEST(TimelineReduce, EachColumnKeepsItsLowestHighestAndLastValue) {
  const std::uint64_t seed = weir::testing::random_seed();
  SCOPED_TRACE(weir::testing::seed_message(seed));
  constexpr std::uint32_t kColumns = 20;
  for (std::uint64_t round = 0; round < 50; ++round) {
    const auto points = random_points(seed + round, 500);
    const std::uint64_t length = (points.back().at / kColumns + 1) * kColumns;
    const auto reduced = reduce(points, {0, length}, kColumns);
    ASSERT_LE(reduced.size(), 4U * kColumns);
    EXPECT_TRUE(std::ranges::is_sorted(reduced, {}, &Point::at));
    for (std::uint64_t column = 0; column < kColumns; ++column) {
      const std::uint64_t from = column * (length / kColumns);
      const std::uint64_t to = from + length / kColumns;
      const auto in_column = [&](const std::vector<Point>& all) {
        std::pair<std::uint64_t, std::uint64_t> range{value_at(all, from), value_at(all, from)};
        for (const Point& point : all) {
          if (point.at < from || point.at >= to) continue;
          range.first = std::min(range.first, point.value);
          range.second = std::max(range.second, point.value);
        }
        return range;
      };
      ASSERT_EQ(in_column(reduced), in_column(points));
      ASSERT_EQ(value_at(reduced, to - 1), value_at(points, to - 1));
    }
  }
}

TEST(TimelineReduce, AShortSeriesStaysAsItIs) {
  const std::vector<Point> points{{5, 1}, {9, 7}, {12, 3}};
  EXPECT_EQ(reduce(points, {0, 100}, 1000), points);
}

TEST(TimelineReduce, APartBeginsWithTheValueBeforeIt) {
  const std::vector<Point> points{{5, 1}, {9, 7}, {12, 3}};
  EXPECT_EQ(reduce(points, {10, 11}, 10), (std::vector<Point>{{10, 7}}));
  EXPECT_EQ(reduce(points, {0, 4}, 10), (std::vector<Point>{}));
}

TEST(TimelineReduce, TheWholeRangeOfTimesIsNoOverflow) {
  const std::vector<Point> points{{0, 1}, {UINT64_MAX, UINT64_MAX}};
  EXPECT_EQ(reduce(points, {0, UINT64_MAX}, 3), points);
  EXPECT_EQ(reduce(points, {7, 3}, 0).size(), 1U);
}

TEST(TimelineReduce, TilesRefineUntilNothingIsLeftOut) {
  const auto points = random_points(1, 3000);
  const Span all{0, points.back().at + 1};
  const auto made = tiles(points, all, {.columns = 50, .split = 4, .most_points = 1000000});
  ASSERT_GT(made.size(), 4U);
  EXPECT_EQ(made.front().span, all);
  EXPECT_FALSE(made.front().exact);
  for (const Point& point : points) {
    const Tile* tile = &made.front();
    for (const Tile& one : made) {
      const bool in = point.at > one.span.begin && point.at <= one.span.end;
      if (in && one.level > tile->level) tile = &one;
    }
    if (tile->span.length() >= 200) {
      ASSERT_EQ(value_at(tile->points, point.at), value_at(points, point.at)) << point.at;
    }
  }
}

TEST(TimelineReduce, TilesKeepToTheirMostPoints) {
  const auto points = random_points(2, 3000);
  const auto made = tiles(points, {0, points.back().at}, {.columns = 50, .most_points = 900});
  std::size_t sum = 0;
  for (std::size_t i = 1; i < made.size(); ++i) sum += made[i].points.size();
  EXPECT_GT(sum, 0U);
  EXPECT_LE(sum, 900U);
}

}  // namespace
}  // namespace weir::timeline
