#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/loss.hpp"
#include "kernels/parts/philox.hpp"
#include "support/message_of.hpp"
#include "tests/kernels/reference.hpp"

namespace {

using weir::count_correct;
using weir::LogitShape;
using weir::softmax_cross_entropy;
using weir::softmax_cross_entropy_gradient;
using weir::UsageError;
using weir::reference::kNan;
using weir::reference::random_numbers;
using weir::reference::unwritten;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::array<LogitShape, 7> kLogitShapes{
    {{1, 1}, {1, 10}, {3, 2}, {64, 10}, {7, 33}, {1500, 5}, {2, 3000}}};

std::vector<float> random_labels(LogitShape shape, std::uint32_t seed) {
  std::vector<float> labels(shape.rows);
  for (std::uint32_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<float>(weir::philox4x32({.x = i}, {.x = seed}).x % shape.classes);
  }
  return labels;
}

/// N(0, 4^2), so that rows have clear winners.
std::vector<float> random_logits(LogitShape shape, std::uint64_t seed) {
  std::vector<float> z = random_numbers(shape.rows * shape.classes, seed);
  weir::scale(4.0F, z);
  return z;
}

/// ln of the sum of a row's exponentials, and the row's probabilities, in double.
struct ReferenceRow {
  std::vector<double> probabilities;
  double log_total = 0;

  explicit ReferenceRow(std::span<const float> z) {
    auto largest = static_cast<double>(z[0]);
    for (const float value : z) largest = std::max(largest, static_cast<double>(value));
    double total = 0;
    for (const float value : z) {
      probabilities.push_back(std::exp(static_cast<double>(value) - largest));
      total += probabilities.back();
    }
    for (double& p : probabilities) p /= total;
    log_total = largest + std::log(total);
  }
};

double reference_loss(LogitShape shape, std::span<const float> z, std::span<const float> labels) {
  double loss = 0;
  for (std::size_t i = 0; i < shape.rows; ++i) {
    const std::span<const float> row = z.subspan(i * shape.classes, shape.classes);
    loss +=
        ReferenceRow(row).log_total - static_cast<double>(row[static_cast<std::size_t>(labels[i])]);
  }
  return loss / static_cast<double>(shape.rows);
}

float loss_of(LogitShape shape, std::span<const float> z, std::span<const float> labels) {
  std::array<float, 1> loss{kNan};
  softmax_cross_entropy(shape, z, labels, loss);
  return loss[0];
}
std::vector<float> gradient_of(LogitShape shape, std::span<const float> z,
                               std::span<const float> labels) {
  std::vector<float> dz = unwritten(z.size());
  softmax_cross_entropy_gradient(shape, z, labels, dz);
  return dz;
}
float correct_of(LogitShape shape, std::span<const float> z, std::span<const float> labels) {
  std::array<float, 1> correct{kNan};
  count_correct(shape, z, labels, correct);
  return correct[0];
}

// A total errs by 1.5e-7 for its terms and 74 roundings for two passes of the sum, so its logarithm
// by 4.6e-6; the mean adds another 37 for each pass.
TEST(SoftmaxCrossEntropy, EqualsTheFloat64ReferenceForEveryShape) {
  for (const LogitShape shape : kLogitShapes) {
    SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.classes));
    const std::vector<float> z = random_logits(shape, 1);
    const std::vector<float> labels = random_labels(shape, 2);
    const double expected = reference_loss(shape, z, labels);
    EXPECT_NEAR(loss_of(shape, z, labels), expected, 1e-5 * (1 + expected));
  }
}

TEST(SoftmaxCrossEntropyGradient, EqualsTheFloat64ReferenceForEveryShape) {
  for (const LogitShape shape : kLogitShapes) {
    SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.classes));
    const std::vector<float> z = random_logits(shape, 3);
    const std::vector<float> labels = random_labels(shape, 4);
    const std::vector<float> dz = gradient_of(shape, z, labels);
    const auto rows = static_cast<double>(shape.rows);
    for (std::size_t i = 0; i < shape.rows; ++i) {
      const ReferenceRow row{std::span<const float>(z).subspan(i * shape.classes, shape.classes)};
      for (std::size_t j = 0; j < shape.classes; ++j) {
        const double one = static_cast<std::size_t>(labels[i]) == j ? 1.0 : 0.0;
        ASSERT_NEAR(dz[i * shape.classes + j], (row.probabilities[j] - one) / rows, 5e-6 / rows)
            << i << ", " << j;
      }
    }
  }
}

TEST(SoftmaxCrossEntropyGradient, IsTheSlopeOfTheFloat64Loss) {
  // Differences of the reference's loss, so that a common mistake in the formula would show.
  constexpr LogitShape kShape{3, 4};
  constexpr float kStep = 0x1p-10F;
  std::vector<float> z = random_logits(kShape, 5);
  const std::vector<float> labels = random_labels(kShape, 6);
  const std::vector<float> dz = gradient_of(kShape, z, labels);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const float before = z[i];
    z[i] = before + kStep;
    const double above = reference_loss(kShape, z, labels);
    const auto right = static_cast<double>(z[i]);
    z[i] = before - kStep;
    const double below = reference_loss(kShape, z, labels);
    const double width = right - static_cast<double>(z[i]);
    z[i] = before;
    EXPECT_NEAR(dz[i], (above - below) / width, 2e-6) << i;
  }
}

TEST(SoftmaxCrossEntropy, OfExtremeLogitsIsExact) {
  constexpr LogitShape kShape{2, 3};
  const std::vector<float> z{1e4F, -1e4F, 0, 1e4F, -1e4F, -1e4F};
  EXPECT_EQ(loss_of(kShape, z, std::vector<float>{0, 0}), 0.0F);
  EXPECT_EQ(loss_of(kShape, z, std::vector<float>{1, 0}), 1e4F);
  EXPECT_EQ(gradient_of(kShape, z, std::vector<float>{1, 0}),
            (std::vector<float>{0.5F, -0.5F, 0, 0, 0, 0}));
  const std::vector<float> equal(6, -1e4F);
  EXPECT_NEAR(loss_of(kShape, equal, std::vector<float>{2, 1}), std::log(3.0), 1e-6);
}

TEST(SoftmaxCrossEntropy, OfOneClassIsNothing) {
  constexpr LogitShape kShape{3, 1};
  const std::vector<float> z{1e4F, -3.0F, 0.5F};
  const std::vector<float> labels(3, 0.0F);
  EXPECT_EQ(loss_of(kShape, z, labels), 0.0F);
  EXPECT_EQ(gradient_of(kShape, z, labels), std::vector<float>(3, 0.0F));
  EXPECT_EQ(correct_of(kShape, z, labels), 3.0F);
}

TEST(SoftmaxCrossEntropy, OfInfinityOrNanIsNanAndTouchesNoOtherRowsGradient) {
  constexpr LogitShape kShape{2, 2};
  for (const float bad : {kNan, kInfinity}) {
    for (const std::size_t at : {0U, 1U}) {
      std::vector<float> z{1, 2, 3, 4};
      z[at] = bad;
      const std::vector<float> labels{0, 1};
      EXPECT_TRUE(std::isnan(loss_of(kShape, z, labels)));
      const std::vector<float> dz = gradient_of(kShape, z, labels);
      EXPECT_TRUE(std::isnan(dz[at]));
      EXPECT_TRUE(std::isfinite(dz[2]) && std::isfinite(dz[3]));
    }
  }
  const std::vector<float> z{1, -kInfinity, 3, 4};
  EXPECT_EQ(loss_of(kShape, z, std::vector<float>{1, 1}), kInfinity) << "an impossible label";
  EXPECT_TRUE(std::isfinite(loss_of(kShape, z, std::vector<float>{0, 1})));
}

TEST(SoftmaxCrossEntropyGradient, OfEqualLogitsFarBelowZeroIsThatOfEvenOdds) {
  constexpr LogitShape kShape{1, 4};
  const std::vector<float> z(4, -1e4F);
  EXPECT_EQ(gradient_of(kShape, z, std::vector<float>{2}),
            (std::vector<float>{0.25F, 0.25F, -0.75F, 0.25F}));
}

TEST(SoftmaxCrossEntropyGradient, MayOverwriteTheLogits) {
  constexpr LogitShape kShape{64, 10};
  std::vector<float> z = random_logits(kShape, 7);
  const std::vector<float> labels = random_labels(kShape, 8);
  const std::vector<float> dz = gradient_of(kShape, z, labels);
  softmax_cross_entropy_gradient(kShape, z, labels, z);
  EXPECT_EQ(z, dz);
}

TEST(CountCorrect, CountsRowsWhoseLabelHasTheLargestLogit) {
  constexpr LogitShape kShape{4, 3};
  const std::vector<float> z{3, 1, 2, -3, -1, -2, 0, 0.5F, 1e4F, -1e4F, -2e4F, -3e4F};
  EXPECT_EQ(correct_of(kShape, z, std::vector<float>{0, 1, 2, 0}), 4.0F);
  EXPECT_EQ(correct_of(kShape, z, std::vector<float>{0, 1, 1, 2}), 2.0F);
  EXPECT_EQ(correct_of(kShape, z, std::vector<float>{2, 2, 0, 1}), 0.0F);
}

TEST(CountCorrect, OfEqualLogitsTheFirstIsTheLargest) {
  constexpr LogitShape kShape{1, 4};
  const std::vector<float> z{0, 7, 7, 7};
  EXPECT_EQ(correct_of(kShape, z, std::vector<float>{1}), 1.0F);
  EXPECT_EQ(correct_of(kShape, z, std::vector<float>{2}), 0.0F);
}

TEST(CountCorrect, ARowWithANanIsWrongWhateverItsLabel) {
  for (std::size_t at = 0; at < 3; ++at) {
    std::vector<float> z{1, 2, 3};
    z[at] = kNan;
    for (const float label : {0.0F, 1.0F, 2.0F}) {
      EXPECT_EQ(correct_of({1, 3}, z, std::vector<float>{label}), 0.0F) << at << ", " << label;
    }
  }
}

TEST(Classification, RefusesSizesThatDoNotFitAndLeavesTheOutputAlone) {
  constexpr LogitShape kShape{2, 3};
  const std::vector<float> z(6, 1.0F);
  const std::vector<float> labels(2, 1.0F);
  std::vector<float> out(6, 42.0F);
  const std::span<float> one = std::span(out).first(1);
  const std::span<const float> short_z = std::span(z).first(5);
  const std::span<const float> short_labels = std::span(labels).first(1);
  EXPECT_THROW(softmax_cross_entropy(kShape, short_z, labels, one), UsageError);
  EXPECT_THROW(softmax_cross_entropy(kShape, z, short_labels, one), UsageError);
  EXPECT_THROW(softmax_cross_entropy(kShape, z, labels, out), UsageError);
  EXPECT_THROW(softmax_cross_entropy({0, 3}, {}, {}, one), UsageError);
  EXPECT_THROW(softmax_cross_entropy({2, 0}, {}, labels, one), UsageError);
  EXPECT_THROW(softmax_cross_entropy_gradient(kShape, short_z, labels, out), UsageError);
  EXPECT_THROW(softmax_cross_entropy_gradient(kShape, z, labels, one), UsageError);
  EXPECT_THROW(count_correct(kShape, z, short_labels, one), UsageError);
  EXPECT_THROW(count_correct(kShape, z, labels, out), UsageError);
  EXPECT_EQ(out, std::vector<float>(6, 42.0F));
}

TEST(Classification, RefusesALabelThatIsNoClassByItsPlace) {
  const std::vector<float> z(6, 1.0F);
  std::vector<float> out(6, 42.0F);
  for (const float bad : {3.0F, -1.0F, 0.5F, kNan, kInfinity, 1e30F}) {
    const std::vector<float> labels{2, bad};
    const std::string message = weir::testing::message_of<UsageError>([&] {
      softmax_cross_entropy({2, 3}, z, labels, std::span(out).first(1));
    });
    EXPECT_NE(message.find("labels[1]"), std::string::npos) << message;
    EXPECT_THROW(softmax_cross_entropy_gradient({2, 3}, z, labels, out), UsageError);
    EXPECT_THROW(count_correct({2, 3}, z, labels, std::span(out).first(1)), UsageError);
  }
  EXPECT_EQ(out, std::vector<float>(6, 42.0F));
}

}  // namespace
