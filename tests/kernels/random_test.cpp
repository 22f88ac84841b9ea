#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "kernels/elementwise/elementwise.hpp"

namespace {

using weir::fill_normal;

constexpr std::size_t kSample = std::size_t{1} << 22U;

std::vector<float> draw(std::uint64_t seed, std::uint64_t stream, std::size_t count,
                        std::uint64_t first = 0) {
  std::vector<float> numbers(count);
  fill_normal(seed, stream, numbers, first);
  return numbers;
}

const std::vector<float>& sample() {
  static const std::vector<float> kNumbers = draw(20240817, 3, kSample);
  return kNumbers;
}

double central_moment(const std::vector<float>& numbers, double mean, int power) {
  double total = 0;
  for (const float x : numbers) total += std::pow(static_cast<double>(x) - mean, power);
  return total / static_cast<double>(numbers.size());
}

double correlation(const std::vector<float>& a, const std::vector<float>& b, std::size_t lag) {
  double total = 0;
  for (std::size_t i = lag; i < a.size(); ++i) {
    total += static_cast<double>(a[i]) * static_cast<double>(b[i - lag]);
  }
  return total / static_cast<double>(a.size() - lag);
}

/// The share of N(0, 1) below x.
double normal_share_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// A second, independent implementation of the same steps, in Python with each result rounded to
// float, gives these bits too.
TEST(RandomNumbers, DrawsTheBitsThatEveryDeviceMustDraw) {
  constexpr std::array<std::uint32_t, 8> kStart{0x3f5977c1, 0xbe4c2c43, 0xbfd2c2a9, 0xbeccdada,
                                                0xbd819087, 0x3ecb0c8d, 0xbeb21a1e, 0x3f99fc15};
  const std::vector<float> found = draw(0x0123456789ABCDEF, 0xFEDCBA9876543210, kStart.size());
  for (std::size_t i = 0; i < kStart.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(found[i]), kStart.at(i)) << i;
  }
}

TEST(RandomNumbers, DrawsAMillionNumbersWithTheBitsThatEveryDeviceMustDraw) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a over the words
  for (const float x : draw(1, 2, 1000003)) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(x)) * 1099511628211U;
  }
  EXPECT_EQ(hash, 0x7b6aa6a160b6a84cU);
}

TEST(RandomNumbers, ElementsDependOnTheirIndexAndNotOnThePieces) {
  const std::vector<float> whole = draw(5, 6, 3001);
  for (const std::size_t cut : {1U, 2U, 3U, 4U, 255U, 256U, 257U, 1500U, 2999U}) {
    std::vector<float> pieces = draw(5, 6, cut);
    const std::vector<float> rest = draw(5, 6, whole.size() - cut, cut);
    pieces.insert(pieces.end(), rest.begin(), rest.end());
    EXPECT_EQ(pieces, whole) << "cut at " << cut;
  }
}

TEST(RandomNumbers, EveryBitOfSeedAndStreamMatters) {
  const std::vector<float> base = draw(0, 0, 4);
  for (unsigned bit = 0; bit < 64; ++bit) {
    EXPECT_NE(draw(std::uint64_t{1} << bit, 0, 4), base) << "seed bit " << bit;
    EXPECT_NE(draw(0, std::uint64_t{1} << bit, 4), base) << "stream bit " << bit;
  }
}

// The bounds on moments are five standard deviations of the moment of a sample of this size.
TEST(RandomNumbers, HasTheMomentsOfTheNormalDistribution) {
  const auto n = static_cast<double>(kSample);
  double mean = 0;
  for (const float x : sample()) mean += static_cast<double>(x) / n;
  const double variance = central_moment(sample(), mean, 2);
  EXPECT_NEAR(mean, 0.0, 5.0 * std::sqrt(1.0 / n));
  EXPECT_NEAR(variance, 1.0, 5.0 * std::sqrt(2.0 / n));
  EXPECT_NEAR(central_moment(sample(), mean, 3) / std::pow(variance, 1.5), 0.0,
              5.0 * std::sqrt(6.0 / n));
  EXPECT_NEAR(central_moment(sample(), mean, 4) / (variance * variance), 3.0,
              5.0 * std::sqrt(24.0 / n));
}

TEST(RandomNumbers, HasTheTailsOfTheNormalDistribution) {
  for (const double limit : {1.0, 2.0, 3.0, 4.0, 4.5}) {
    for (const double side : {-1.0, 1.0}) {
      const auto beyond = std::count_if(sample().begin(), sample().end(), [&](float x) {
        return side * static_cast<double>(x) > limit;
      });
      const double expected = normal_share_below(-limit) * static_cast<double>(kSample);
      EXPECT_NEAR(static_cast<double>(beyond), expected, 5.0 * std::sqrt(expected)) << side * limit;
    }
  }
}

// Kolmogorov and Smirnov: sup |F_n - F| sqrt(n) exceeds 1.95 in one of a thousand samples.
TEST(RandomNumbers, HasTheDistributionFunctionOfTheNormalDistribution) {
  std::vector<float> sorted(sample().begin(), sample().begin() + (1U << 20U));
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double distance = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double share = normal_share_below(static_cast<double>(sorted[i]));
    distance = std::max({distance, std::abs(share - static_cast<double>(i) / n),
                         std::abs(share - static_cast<double>(i + 1) / n)});
  }
  EXPECT_LE(distance * std::sqrt(n), 1.95);
}

TEST(RandomNumbers, NeighboursStreamsAndSeedsAreUncorrelated) {
  const std::vector<float> base = draw(1, 1, std::size_t{1} << 20U);
  const double bound = 5.0 / std::sqrt(static_cast<double>(base.size()));
  for (const std::size_t lag : {1U, 2U, 3U, 4U, 256U}) {
    EXPECT_NEAR(correlation(base, base, lag), 0.0, bound) << "lag " << lag;
  }
  EXPECT_NEAR(correlation(base, draw(1, 2, base.size()), 0), 0.0, bound);
  EXPECT_NEAR(correlation(base, draw(2, 1, base.size()), 0), 0.0, bound);
}

}  // namespace
