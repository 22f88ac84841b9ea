#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/sparse/losses.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace {

using weir::logistic_loss;
using weir::logistic_loss_and_gradient;
using weir::SparseLabels;
using weir::UsageError;
using weir::reference::ClassLists;
using weir::reference::kNan;
using weir::reference::random_classes;
using weir::reference::Sparsity;
using weir::reference::unwritten;

constexpr float kInfinite = std::numeric_limits<float>::infinity();
/// One class; few and many, around a tile; rows with and without labels, none and all of them.
constexpr std::array<Sparsity, 8> kDecisions{{{1, 1, 1000},
                                              {7, 33, 60},
                                              {64, 10, 150},
                                              {2, 3000, 2},
                                              {3, 1024, 3},
                                              {3, 1025, 3},
                                              {5, 12, 0},
                                              {4, 9, 1000}}};

std::vector<float> spread_logits(Sparsity sizes, std::uint64_t seed) {
  std::vector<float> z = weir::reference::random_numbers(sizes.rows * sizes.columns, seed);
  weir::scale(4.0F, z);
  return z;
}

double softplus_reference(double a) {
  return (a > 0 ? a : 0) + std::log1p(std::exp(a > 0 ? -a : a));
}

struct LogisticReference {
  double loss = 0;
  std::vector<double> gradient;
};

LogisticReference logistic_reference(const ClassLists& labels, const std::vector<float>& z) {
  LogisticReference found;
  const auto rows = static_cast<double>(labels.rows());
  for (std::size_t i = 0; i < z.size(); ++i) {
    const auto value = static_cast<double>(z[i]);
    const double target = labels.has(i / labels.classes, i % labels.classes) ? 1 : 0;
    found.loss += (softplus_reference(value) - target * value) / rows;
    found.gradient.push_back((1 / (1 + std::exp(-value)) - target) / rows);
  }
  return found;
}

struct LogisticResult {
  float loss = kNan;
  std::vector<float> gradient;
};

/// Also checks that the loss alone has the same bits.
LogisticResult logistic_of(const ClassLists& labels, const std::vector<float>& z) {
  std::array<float, 1> loss{kNan};
  std::array<float, 1> alone{kNan};
  LogisticResult found{.gradient = unwritten(z.size())};
  logistic_loss_and_gradient(labels.view(), z, loss, found.gradient);
  logistic_loss(labels.view(), z, alone);
  EXPECT_TRUE(loss[0] == alone[0] || (std::isnan(loss[0]) && std::isnan(alone[0])));
  found.loss = loss[0];
  return found;
}

TEST(LogisticLoss, EqualsTheFloat64ReferenceForEveryShape) {
  for (const Sparsity sizes : kDecisions) {
    SCOPED_TRACE(std::to_string(sizes.rows) + " x " + std::to_string(sizes.columns));
    const ClassLists labels = random_classes(sizes, 1);
    const std::vector<float> z = spread_logits(sizes, 2);
    const LogisticReference expected = logistic_reference(labels, z);
    const LogisticResult found = logistic_of(labels, z);
    // 37 roundings for each of three passes at most, and 3e-7 of a term; no term is negative.
    EXPECT_NEAR(found.loss, expected.loss, 7e-6 * expected.loss);
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double slope = expected.gradient[i];
      ASSERT_NEAR(found.gradient[i], slope, 5e-7 * std::abs(slope)) << i;
    }
  }
}

TEST(LogisticLoss, GradientIsTheSlopeOfTheFloat64Loss) {
  constexpr Sparsity kBatch{4, 6, 400};
  constexpr float kStep = 0x1p-10F;
  const ClassLists labels = random_classes(kBatch, 3);
  std::vector<float> z = spread_logits(kBatch, 4);
  const std::vector<float> dz = logistic_of(labels, z).gradient;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const float before = z[i];
    z[i] = before + kStep;
    const double above = logistic_reference(labels, z).loss;
    const auto right = static_cast<double>(z[i]);
    z[i] = before - kStep;
    const double below = logistic_reference(labels, z).loss;
    const double width = right - static_cast<double>(z[i]);
    z[i] = before;
    EXPECT_NEAR(dz[i], (above - below) / width, 1e-6) << i;
  }
}

// At the start of a training all of many classes are improbable: together they are the loss.
TEST(LogisticLoss, KeepsWhatManyImprobableClassesAdd) {
  const ClassLists labels{.classes = 5000, .starts = {0, 0}};
  const std::vector<float> z(5000, -18.0F);
  const double expected = 5000 * std::log1p(std::exp(-18.0));
  EXPECT_NEAR(logistic_of(labels, z).loss, expected, 7e-6 * expected);
}

TEST(LogisticLoss, OfHugeLogitsIsExact) {
  const ClassLists labels{.classes = 4, .starts = {0, 2}, .indices = {0, 1}};
  const LogisticResult found = logistic_of(labels, {3e38F, -1e4F, -3e38F, 2e4F});
  EXPECT_EQ(found.loss, 3e4F);
  EXPECT_EQ(found.gradient, (std::vector<float>{-0.0F, -1, 0, 1}));
  const LogisticResult right = logistic_of(labels, {kInfinite, kInfinite, -kInfinite, -kInfinite});
  EXPECT_EQ(right.loss, 0.0F);
  EXPECT_EQ(right.gradient, std::vector<float>(4, 0.0F));
  EXPECT_EQ(logistic_of(labels, {0, 0, kInfinite, 0}).loss, kInfinite);
}

TEST(LogisticLoss, OfANanIsNanAndTouchesNoOtherSlope) {
  const ClassLists labels{.classes = 2, .starts = {0, 1, 1}, .indices = {1}};
  for (std::size_t at = 0; at < 4; ++at) {
    std::vector<float> z{1, 2, 3, 4};
    z[at] = kNan;
    const LogisticResult found = logistic_of(labels, z);
    EXPECT_TRUE(std::isnan(found.loss));
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(found.gradient[i]), i == at) << i;
  }
}

TEST(LogisticLoss, GradientMayOverwriteTheLogits) {
  constexpr Sparsity kBatch{5, 1030, 4};
  const ClassLists labels = random_classes(kBatch, 6);
  std::vector<float> z = spread_logits(kBatch, 7);
  const LogisticResult expected = logistic_of(labels, z);
  std::array<float, 1> loss{kNan};
  logistic_loss_and_gradient(labels.view(), z, loss, z);
  EXPECT_EQ(z, expected.gradient);
  EXPECT_EQ(loss[0], expected.loss);
}

TEST(LogisticLoss, RefusesSizesThatDoNotFitAndLeavesTheOutputsAlone) {
  const ClassLists labels{.classes = 3, .starts = {0, 1, 2}, .indices = {0, 2}};
  const SparseLabels own = labels.view();
  const SparseLabels no_rows{.classes = 3, .starts = own.starts.first(1), .indices = {}};
  const SparseLabels no_classes{.classes = 0, .starts = own.starts, .indices = own.indices};
  const ClassLists bad{.classes = 3, .starts = {0, 1, 2}, .indices = {0, 3}};
  const std::vector<float> z(6, 1.0F);
  std::vector<float> out(7, 42.0F);
  const auto refused = [&](const SparseLabels& given, std::span<const float> logits,
                           std::size_t scalars, std::size_t slopes) {
    const auto loss = std::span(out).first(scalars);
    const auto dz = std::span(out).first(slopes);
    EXPECT_THROW(logistic_loss_and_gradient(given, logits, loss, dz), UsageError);
    if (slopes == 6) {
      EXPECT_THROW(logistic_loss(given, logits, loss), UsageError);
    }
  };
  refused(own, std::span(z).first(5), 1, 6);
  refused(own, z, 2, 6);
  refused(own, z, 1, 7);
  refused(no_rows, z, 1, 6);
  refused(no_classes, z, 1, 6);
  refused(bad.view(), z, 1, 6);
  EXPECT_EQ(out, std::vector<float>(7, 42.0F));
}

}  // namespace
