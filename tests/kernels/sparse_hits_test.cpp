#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/sparse/losses.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace {

using weir::count_hits;
using weir::UsageError;
using weir::reference::ClassLists;
using weir::reference::kNan;

float hits_of(const ClassLists& labels, const std::vector<float>& z) {
  std::array<float, 1> hits{kNan};
  count_hits(labels.view(), z, hits);
  return hits[0];
}

TEST(CountHits, CountsRowsWhoseLargestLogitIsOneOfTheirLabels) {
  const std::vector<float> z{3, 1, 2, -3, -1, -2, 0, 0.5F, 1e4F, -1e4F, -2e4F, -3e4F};
  EXPECT_EQ(hits_of({3, {0, 2, 4, 5, 6}, {0, 1, 1, 2, 2, 0}}, z), 4.0F);
  EXPECT_EQ(hits_of({3, {0, 2, 4, 4, 5}, {1, 2, 0, 1, 0}}, z), 2.0F);
  EXPECT_EQ(hits_of({3, {0, 1, 2, 3, 4}, {2, 2, 0, 1}}, z), 0.0F);
}

TEST(CountHits, OfEqualLogitsTheFirstIsTheLargest) {
  const std::vector<float> z{0, 7, 7, 7};
  EXPECT_EQ(hits_of({4, {0, 1}, {1}}, z), 1.0F);
  EXPECT_EQ(hits_of({4, {0, 2}, {2, 3}}, z), 0.0F);
  const std::vector<float> least(4, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(hits_of({4, {0, 1}, {0}}, least), 1.0F);
}

TEST(CountHits, ARowWithANanOrWithoutLabelsIsNoHit) {
  EXPECT_EQ(hits_of({3, {0, 0}, {}}, {1, 2, 3}), 0.0F);
  for (std::size_t at = 0; at < 3; ++at) {
    std::vector<float> z{1, 2, 3};
    z[at] = kNan;
    EXPECT_EQ(hits_of({3, {0, 3}, {0, 1, 2}}, z), 0.0F) << at;
  }
}

/// One logit after another, as the header says.
bool model_hit(const std::vector<float>& z, const std::vector<std::uint32_t>& labels) {
  std::size_t largest = 0;
  for (std::size_t j = 0; j < z.size(); ++j) {
    if (std::isnan(z[j])) return false;
    if (z[j] > z[largest]) largest = j;
  }
  return std::find(labels.begin(), labels.end(), largest) != labels.end();
}

TEST(CountHits, OfRowsOfAnyLengthWithManyEqualLogitsEqualsAModel) {
  std::mt19937 random(7);
  const auto draw = [&random](std::uint32_t below) {
    return static_cast<std::uint32_t>(random()) % below;
  };
  int hits = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::uint32_t classes = 1 + draw(100);
    std::vector<float> z(classes);
    for (float& value : z) value = static_cast<float>(draw(4)) - 1;
    if (draw(8) == 0) z[draw(classes)] = kNan;
    const std::vector<std::uint32_t> labels{draw(classes)};
    const bool expected = model_hit(z, labels);
    ASSERT_EQ(hits_of({classes, {0, 1}, labels}, z), expected ? 1.0F : 0.0F) << "draw " << i;
    hits += expected ? 1 : 0;
  }
  EXPECT_GT(hits, 100);
}

TEST(CountHits, RefusesSizesThatDoNotFitAndLeavesTheOutputAlone) {
  const ClassLists labels{3, {0, 1, 2}, {0, 2}};
  const ClassLists bad{3, {0, 1, 2}, {0, 3}};
  const std::vector<float> z(6, 1.0F);
  std::vector<float> out(2, 42.0F);
  const auto one = std::span(out).first(1);
  EXPECT_THROW(count_hits(labels.view(), std::span(z).first(5), one), UsageError);
  EXPECT_THROW(count_hits(labels.view(), z, out), UsageError);
  EXPECT_THROW(count_hits(bad.view(), z, one), UsageError);
  EXPECT_THROW(count_hits({}, {}, one), UsageError);
  EXPECT_EQ(out, std::vector<float>(2, 42.0F));
}

}  // namespace
