#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/loss.hpp"
#include "kernels/sparse/losses.hpp"
#include "support/message_of.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace {

using weir::kSoftmaxStatistics;
using weir::softmax_gradient;
using weir::softmax_loss;
using weir::softmax_statistics;
using weir::SparseLabels;
using weir::UsageError;
using weir::reference::ClassLists;
using weir::reference::kNan;
using weir::reference::random_classes;
using weir::reference::Sparsity;
using weir::reference::unwritten;

constexpr float kEndless = std::numeric_limits<float>::infinity();
/// One class; few and many, around a tile; rows with and without labels, none and all of them.
constexpr std::array<Sparsity, 9> kLabelled{{{1, 1, 1000},
                                             {1, 10, 200},
                                             {7, 33, 60},
                                             {64, 10, 150},
                                             {2, 3000, 2},
                                             {3, 1024, 3},
                                             {3, 1025, 3},
                                             {5, 12, 0},
                                             {4, 9, 1000}}};

/// N(0, 4^2), so that rows have clear winners.
std::vector<float> wide_logits(Sparsity sizes, std::uint64_t seed) {
  std::vector<float> z = weir::reference::random_numbers(sizes.rows * sizes.columns, seed);
  weir::scale(4.0F, z);
  return z;
}

struct SoftmaxReference {
  double loss = 0;
  std::vector<double> gradient;
};

/// In double. Computes each row's labels as a dense target.
SoftmaxReference softmax_reference(const ClassLists& labels, const std::vector<float>& z) {
  SoftmaxReference found;
  const auto rows = static_cast<double>(labels.rows());
  for (std::size_t i = 0; i < labels.rows(); ++i) {
    const std::span<const float> row = std::span(z).subspan(i * labels.classes, labels.classes);
    const double count = labels.starts[i + 1] - labels.starts[i];
    const auto largest = static_cast<double>(*std::ranges::max_element(row));
    double total = 0;
    for (const float value : row) total += std::exp(static_cast<double>(value) - largest);
    for (std::size_t j = 0; j < row.size(); ++j) {
      const double log_share = static_cast<double>(row[j]) - largest - std::log(total);
      const double target = labels.has(i, j) ? 1 / count : 0;
      found.loss -= target * log_share / rows;
      found.gradient.push_back(count == 0 ? 0 : (std::exp(log_share) - target) / rows);
    }
  }
  return found;
}

std::vector<float> statistics_of(const ClassLists& labels, std::span<const float> z) {
  std::vector<float> statistics = unwritten(labels.rows() * kSoftmaxStatistics);
  softmax_statistics(labels.view(), z, statistics);
  return statistics;
}
float softmax_loss_of(const ClassLists& labels, std::span<const float> z) {
  std::array<float, 1> loss{kNan};
  softmax_loss(labels.view(), statistics_of(labels, z), loss);
  return loss[0];
}
std::vector<float> softmax_gradient_of(const ClassLists& labels, std::span<const float> z) {
  std::vector<float> dz = unwritten(z.size());
  softmax_gradient(labels.view(), z, statistics_of(labels, z), dz);
  return dz;
}

// As of the dense loss: a total errs by 1.5e-7 twice for its terms and 74 roundings for its sums.
TEST(SparseSoftmax, EqualsTheFloat64ReferenceForEveryShape) {
  for (const Sparsity sizes : kLabelled) {
    SCOPED_TRACE(std::to_string(sizes.rows) + " x " + std::to_string(sizes.columns));
    const ClassLists labels = random_classes(sizes, 1);
    const std::vector<float> z = wide_logits(sizes, 2);
    const SoftmaxReference expected = softmax_reference(labels, z);
    EXPECT_NEAR(softmax_loss_of(labels, z), expected.loss, 1e-5 * (1 + expected.loss));
    const std::vector<float> dz = softmax_gradient_of(labels, z);
    for (std::size_t i = 0; i < dz.size(); ++i) {
      ASSERT_NEAR(dz[i], expected.gradient[i], 6e-6 / static_cast<double>(sizes.rows)) << i;
    }
  }
}

TEST(SparseSoftmax, GradientIsTheSlopeOfTheFloat64Loss) {
  constexpr Sparsity kBatch{4, 6, 400};
  constexpr float kStep = 0x1p-10F;
  const ClassLists labels = random_classes(kBatch, 3);
  std::vector<float> z = wide_logits(kBatch, 4);
  const std::vector<float> dz = softmax_gradient_of(labels, z);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const float before = z[i];
    z[i] = before + kStep;
    const double above = softmax_reference(labels, z).loss;
    const auto right = static_cast<double>(z[i]);
    z[i] = before - kStep;
    const double below = softmax_reference(labels, z).loss;
    const double width = right - static_cast<double>(z[i]);
    z[i] = before;
    EXPECT_NEAR(dz[i], (above - below) / width, 2e-6) << i;
  }
}

TEST(SparseSoftmax, OfOneLabelARowIsTheDenseLoss) {
  constexpr weir::LogitShape kShape{5, 40};
  ClassLists labels{.classes = kShape.classes};
  std::vector<float> dense_labels;
  for (std::uint32_t i = 0; i < kShape.rows; ++i) {
    labels.indices.push_back(7 * i);
    labels.end_row();
    dense_labels.push_back(static_cast<float>(7 * i));
  }
  const std::vector<float> z = wide_logits({kShape.rows, kShape.classes}, 5);
  std::array<float, 1> loss{kNan};
  weir::softmax_cross_entropy(kShape, z, dense_labels, loss);
  EXPECT_NEAR(softmax_loss_of(labels, z), loss[0], 1e-6 * (1 + loss[0]));
  std::vector<float> dz = unwritten(z.size());
  weir::softmax_cross_entropy_gradient(kShape, z, dense_labels, dz);
  const std::vector<float> found = softmax_gradient_of(labels, z);
  for (std::size_t i = 0; i < dz.size(); ++i) EXPECT_NEAR(found[i], dz[i], 1e-7) << i;
}

TEST(SparseSoftmax, OfExtremeLogitsIsExact) {
  const ClassLists labels{.classes = 3, .starts = {0, 2, 3}, .indices = {0, 1, 0}};
  const std::vector<float> z{1e4F, -1e4F, 0, 3e38F, -3e38F, -1e4F};
  EXPECT_EQ(softmax_loss_of(labels, z), 5e3F);
  EXPECT_EQ(softmax_gradient_of(labels, z), (std::vector<float>{0.25F, -0.25F, 0, 0, 0, 0}));
}

TEST(SparseSoftmax, OfARowWithoutLabelsIsNothingWhateverItsLogits) {
  const ClassLists labels{.classes = 2, .starts = {0, 0, 1, 1}, .indices = {1}};
  const std::vector<float> z{kNan, 1, 0, 0, kEndless, 2};
  EXPECT_NEAR(softmax_loss_of(labels, z), std::log(2.0) / 3, 1e-7);
  const std::vector<float> dz = softmax_gradient_of(labels, z);
  EXPECT_EQ((std::vector<float>{dz[0], dz[1], dz[4], dz[5]}), std::vector<float>(4, 0.0F));
  EXPECT_NEAR(dz[2], 1.0 / 6, 1e-7);
  EXPECT_NEAR(dz[3], -1.0 / 6, 1e-7);
}

TEST(SparseSoftmax, OfNanOrInfinityIsNanAndTouchesNoOtherRowsGradient) {
  const ClassLists labels{.classes = 2, .starts = {0, 1, 2}, .indices = {0, 1}};
  for (const float bad : {kNan, kEndless}) {
    for (const std::size_t at : {0U, 1U}) {
      std::vector<float> z{1, 2, 3, 4};
      z[at] = bad;
      EXPECT_TRUE(std::isnan(softmax_loss_of(labels, z)));
      const std::vector<float> dz = softmax_gradient_of(labels, z);
      EXPECT_TRUE(std::isnan(dz[0]) && std::isnan(dz[1]));
      EXPECT_TRUE(std::isfinite(dz[2]) && std::isfinite(dz[3]));
    }
  }
  EXPECT_EQ(softmax_loss_of(labels, std::vector<float>{-kEndless, 1, 3, 4}), kEndless);
  EXPECT_TRUE(std::isfinite(softmax_loss_of(labels, std::vector<float>{1, -kEndless, 3, 4})));
  EXPECT_TRUE(std::isnan(softmax_loss_of(labels, std::vector<float>{-kEndless, -kEndless, 3, 4})));
}

// A tile of nothing but minus infinity beside one with numbers.
TEST(SparseSoftmax, OfATileOfMinusInfinityIsThatOfTheOthers) {
  const ClassLists labels{.classes = 1030, .starts = {0, 1}, .indices = {1025}};
  std::vector<float> z(1030, -kEndless);
  std::fill_n(z.begin() + 1024, 2, 5.0F);
  EXPECT_NEAR(softmax_loss_of(labels, z), std::log(2.0), 1e-7);
  std::vector<float> expected(1030);
  expected[1024] = 0.5F;
  expected[1025] = -0.5F;
  EXPECT_EQ(softmax_gradient_of(labels, z), expected);
}

TEST(SparseSoftmax, GradientMayOverwriteTheLogits) {
  constexpr Sparsity kBatch{5, 1030, 4};
  const ClassLists labels = random_classes(kBatch, 6);
  std::vector<float> z = wide_logits(kBatch, 7);
  const std::vector<float> dz = softmax_gradient_of(labels, z);
  const std::vector<float> statistics = statistics_of(labels, z);
  softmax_gradient(labels.view(), z, statistics, z);
  EXPECT_EQ(z, dz);
}

TEST(SparseSoftmax, RefusesSizesThatDoNotFitAndLeavesTheOutputAlone) {
  const ClassLists labels{.classes = 3, .starts = {0, 1, 2}, .indices = {0, 2}};
  const SparseLabels own = labels.view();
  const SparseLabels no_rows{.classes = 3, .starts = own.starts.first(1), .indices = {}};
  const SparseLabels no_classes{.classes = 0, .starts = own.starts, .indices = own.indices};
  const std::vector<float> z(6, 1.0F);
  const std::vector<float> statistics(8, 1.0F);
  std::vector<float> out(9, 42.0F);
  const auto eight = std::span(out).first(8);
  const auto six = std::span(out).first(6);
  const auto five = std::span(z).first(5);
  const auto seven = std::span(statistics).first(7);
  EXPECT_THROW(softmax_statistics(own, five, eight), UsageError);
  EXPECT_THROW(softmax_statistics(own, z, out), UsageError);
  EXPECT_THROW(softmax_statistics(no_rows, {}, {}), UsageError);
  EXPECT_THROW(softmax_statistics(no_classes, {}, eight), UsageError);
  EXPECT_THROW(softmax_loss(own, seven, std::span(out).first(1)), UsageError);
  EXPECT_THROW(softmax_loss(own, statistics, six), UsageError);
  EXPECT_THROW(softmax_loss(no_rows, {}, std::span(out).first(1)), UsageError);
  EXPECT_THROW(softmax_gradient(own, five, statistics, six), UsageError);
  EXPECT_THROW(softmax_gradient(own, z, seven, six), UsageError);
  EXPECT_THROW(softmax_gradient(own, z, statistics, out), UsageError);
  EXPECT_EQ(out, std::vector<float>(9, 42.0F));
}

TEST(SparseSoftmax, RefusesLabelsThatAreNoClassOrOutOfOrderByTheirPlace) {
  const std::vector<float> z(6, 1.0F);
  std::vector<float> out(8, 42.0F);
  const auto message = [&](const ClassLists& labels) {
    return weir::testing::message_of<UsageError>(
        [&] { softmax_statistics(labels.view(), z, out); });
  };
  EXPECT_EQ(message({.classes = 3, .starts = {0, 1, 2}, .indices = {2, 3}}),
            "softmax_statistics: label 1 is 3, expected a number below 3");
  EXPECT_EQ(message({.classes = 3, .starts = {0, 2, 1}, .indices = {0, 1}}),
            "softmax_statistics: the labels' starts do not ascend");
  EXPECT_EQ(message({.classes = 3, .starts = {0, 1, 3}, .indices = {0, 1}}),
            "softmax_statistics: the labels' starts do not ascend");
  EXPECT_EQ(message({.classes = 3, .starts = {0, 1, 1}, .indices = {0, 1}}),
            "softmax_statistics: labels has 2 elements, expected 1");
  EXPECT_EQ(out, std::vector<float>(8, 42.0F));
}

}  // namespace
