#include "kernels/sums/reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "allocator/base/error.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::squared_distance;
using weir::sum;
using weir::reference::kUnitRoundoff;
using weir::reference::random_numbers;
using weir::reference::rounded;

constexpr std::array<std::size_t, 16> kSizes{0,
                                             1,
                                             31,
                                             32,
                                             33,
                                             1023,
                                             1024,
                                             1025,
                                             3079,
                                             65537,
                                             1U << 20U,
                                             (1U << 20U) + 1,
                                             (1U << 20U) + 1025,
                                             7,
                                             2048,
                                             1500000};

static_assert(weir::kSumLanes == 32 && weir::kSumTile == 1024, "the stated error is for these");

/// The order of reduce.hpp, pass by pass, with every tile filled up with zeros.
float sum_as_written(std::vector<float> terms) {
  do {
    std::vector<float> sums;
    for (std::size_t begin = 0; begin < terms.size(); begin += weir::kSumTile) {
      std::array<float, weir::kSumTile> tile{};
      std::copy_n(terms.begin() + static_cast<std::ptrdiff_t>(begin),
                  std::min(weir::kSumTile, terms.size() - begin), tile.begin());
      std::array<float, weir::kSumLanes> lane{};
      for (std::size_t i = 0; i < tile.size(); ++i) lane.at(i % lane.size()) += tile.at(i);
      for (std::size_t half = lane.size() / 2; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) lane.at(l) += lane.at(l + half);
      }
      sums.push_back(lane[0]);
    }
    terms = sums;
  } while (terms.size() > 1);
  return terms.empty() ? 0.0F : terms[0];
}

TEST(Sum, AddsInTheOrderThatIsWritten) {
  for (const std::size_t size : kSizes) {
    const std::vector<float> x = random_numbers(size, size);
    EXPECT_EQ(sum(x), sum_as_written(x)) << size;
  }
}

TEST(Sum, IsTheSameForEveryAlignment) {
  const std::vector<float> x = random_numbers(5003, 1);
  for (std::size_t offset = 0; offset < 16; ++offset) {
    std::vector<float> moved(offset, 1.0F);
    moved.insert(moved.end(), x.begin(), x.end());
    EXPECT_EQ(sum(std::span<const float>(moved).subspan(offset)), sum(x)) << offset;
  }
}

TEST(Sum, ErrsWithinItsStatedBound) {
  for (const std::size_t size : kSizes) {
    double exact = 0;
    double magnitude = 0;
    const std::vector<float> x = random_numbers(size, size + 1);
    for (const float value : x) {
      exact += static_cast<double>(value);
      magnitude += std::abs(static_cast<double>(value));
    }
    const double passes = size <= (1U << 10U) ? 1 : (size <= (1U << 20U) ? 2 : 3);
    EXPECT_NEAR(sum(x), exact, 37 * passes * kUnitRoundoff * magnitude * 1.01) << size;
  }
}

TEST(Sum, IsAccurateWhereAPlainLoopIsNot) {
  const std::vector<float> x(std::size_t{1} << 22U, 0.1F);
  const double exact = static_cast<double>(x.size()) * static_cast<double>(0.1F);
  float plain = 0;
  for (const float value : x) plain += value;
  EXPECT_GT(std::abs(static_cast<double>(plain) - exact), 1e-3 * exact);
  EXPECT_NEAR(sum(x), exact, 1e-6 * exact);
}

TEST(Sum, CountsEveryElementOnce) {
  for (const std::size_t size : kSizes) {
    EXPECT_EQ(sum(std::vector<float>(size, 1.0F)), static_cast<float>(size)) << size;
  }
}

TEST(Sum, KeepsNanAndInfinity) {
  std::vector<float> x(2000, 1.0F);
  x[1999] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sum(x), std::numeric_limits<float>::infinity());
  x[3] = weir::reference::kNan;
  EXPECT_TRUE(std::isnan(sum(x)));
}

TEST(SquaredDistance, IsTheSumOfTheRoundedSquares) {
  for (const std::size_t size : kSizes) {
    const std::vector<float> x = random_numbers(size, 2);
    const std::vector<float> y = random_numbers(size, 3);
    std::vector<float> squares(size);
    for (std::size_t i = 0; i < size; ++i) {
      const float difference = rounded(static_cast<double>(x[i]) - static_cast<double>(y[i]));
      squares[i] = rounded(static_cast<double>(difference) * static_cast<double>(difference));
    }
    EXPECT_EQ(squared_distance(x, y), sum_as_written(squares)) << size;
  }
}

TEST(SquaredDistance, RefusesSizesThatDiffer) {
  EXPECT_THROW(static_cast<void>(squared_distance(std::vector<float>(3), std::vector<float>(4))),
               weir::UsageError);
}

}  // namespace
