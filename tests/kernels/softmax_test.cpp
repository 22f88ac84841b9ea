// Softmax and cross-entropy of dense labels.

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/parts/philox.hpp"
#include "support/message_of.hpp"
#include "support/sanitized.hpp"
#include "tests/kernels/device.hpp"

namespace {

using weir::LogitShape;
using weir::UsageError;
using weir::reference::kNan;
using weir::testing::Array;
using weir::testing::expect_same_bits;
using weir::testing::fresh_seed;
using weir::testing::kOnCuda;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Few and many classes, around the sizes of a warp, a tile and two tiles; and rows beyond one pass
/// of the sum.
constexpr std::array<LogitShape, 14> kLogitShapes{{{1, 1},
                                                   {3, 1},
                                                   {1, 10},
                                                   {4, 31},
                                                   {5, 32},
                                                   {31, 33},
                                                   {1023, 3},
                                                   {1024, 10},
                                                   {1025, 4},
                                                   {3, 1024},
                                                   {2, 1025},
                                                   {2, 3000},
                                                   {2, 100003},
                                                   {1, (1U << 20U) + 1029}}};

/// A row in double: its softmax, and ln of the sum of its exponentials.
struct ReferenceRow {
  std::vector<double> shares;
  double log_total = 0;

  explicit ReferenceRow(std::span<const float> z) {
    const auto largest = static_cast<double>(*std::ranges::max_element(z));
    double total = 0;
    for (const float value : z) {
      shares.push_back(std::exp(static_cast<double>(value) - largest));
      total += shares.back();
    }
    for (double& share : shares) share /= total;
    log_total = largest + std::log(total);
  }
};

struct SoftmaxReference {
  double loss = 0;
  std::vector<double> gradient;

  SoftmaxReference(LogitShape shape, const std::vector<float>& z,
                   const std::vector<float>& labels) {
    const auto rows = static_cast<double>(shape.rows);
    for (std::size_t i = 0; i < shape.rows; ++i) {
      const std::span<const float> logits = std::span(z).subspan(i * shape.classes, shape.classes);
      const ReferenceRow row{logits};
      const auto label = static_cast<std::size_t>(labels[i]);
      loss += (row.log_total - static_cast<double>(logits[label])) / rows;
      for (std::size_t j = 0; j < shape.classes; ++j) {
        gradient.push_back((row.shares[j] - (j == label ? 1.0 : 0.0)) / rows);
      }
    }
  }
};

class SoftmaxCrossEntropy : public weir::testing::KernelTest {
 protected:
  /// N(0, 4^2), so that rows have clear winners.
  std::vector<float> random_logits(LogitShape shape) {
    std::vector<float> z = random(shape.rows * shape.classes);
    for (float& value : z) value *= 4;
    return z;
  }
  static std::vector<float> random_labels(LogitShape shape) {
    std::vector<float> labels(shape.rows);
    const auto seed = static_cast<std::uint32_t>(fresh_seed());
    for (std::uint32_t i = 0; i < labels.size(); ++i) {
      labels[i] = static_cast<float>(weir::philox4x32({.x = i}, {.x = seed}).x % shape.classes);
    }
    return labels;
  }

  float loss_of(LogitShape shape, const std::vector<float>& z, const std::vector<float>& labels,
                std::size_t offset = 0) {
    Array<float> loss(1);
    softmax_cross_entropy(shape, Array<float>(z, offset).view(),
                          Array<float>(labels, offset).view(), loss.span());
    return loss.front();
  }
  std::vector<float> gradient_of(LogitShape shape, const std::vector<float>& z,
                                 const std::vector<float>& labels, std::size_t offset = 0) {
    Array<float> dz(z.size(), offset);
    softmax_cross_entropy_gradient(shape, Array<float>(z, offset).view(),
                                   Array<float>(labels).view(), dz.span());
    return dz.values();
  }
  float correct_of(LogitShape shape, const std::vector<float>& z,
                   const std::vector<float>& labels) {
    Array<float> correct(1);
    count_correct(shape, Array<float>(z).view(), Array<float>(labels).view(), correct.span());
    return correct.front();
  }
  /// Compares all three with the CPU's, to the bit.
  void expect_cpus_bits(LogitShape shape, const std::vector<float>& z,
                        const std::vector<float>& labels) {
    std::vector<float> loss(1);
    std::vector<float> dz(z.size());
    std::vector<float> correct(1);
    weir::softmax_cross_entropy(shape, z, labels, loss);
    weir::softmax_cross_entropy_gradient(shape, z, labels, dz);
    weir::count_correct(shape, z, labels, correct);
    for (const std::size_t offset : {0U, 1U, 3U}) {
      expect_same_bits({loss_of(shape, z, labels, offset)}, loss);
      expect_same_bits(gradient_of(shape, z, labels, offset), dz);
    }
    EXPECT_EQ(correct_of(shape, z, labels), correct[0]);
  }
};

// A total errs by 1.5e-7 for its terms and 37 roundings for each pass of its sum, so its logarithm
// by 4.6e-6 of two passes; the mean adds another 37 for each pass. The bounds are those of two
// passes: the few shapes of three stay below them too.
TEST_F(SoftmaxCrossEntropy, EqualsTheFloat64ReferenceAndHasTheCpusBits) {
  for (const LogitShape shape : kLogitShapes) {
    SCOPED_TRACE(weir::testing::sizes({shape.rows, shape.classes}));
    const std::vector<float> z = random_logits(shape);
    const std::vector<float> labels = random_labels(shape);
    const SoftmaxReference expected(shape, z, labels);
    EXPECT_NEAR(loss_of(shape, z, labels), expected.loss, 1e-5 * (1 + expected.loss));
    const std::vector<float> dz = gradient_of(shape, z, labels, 1);
    for (std::size_t i = 0; i < dz.size(); ++i) {
      ASSERT_NEAR(dz[i], expected.gradient[i], 5e-6 / static_cast<double>(shape.rows)) << i;
    }
    expect_cpus_bits(shape, z, labels);
  }
}

TEST_F(SoftmaxCrossEntropy, GradientIsTheSlopeOfTheFloat64Loss) {
  constexpr LogitShape kShape{3, 4};
  std::vector<float> z = random_logits(kShape);
  const std::vector<float> labels = random_labels(kShape);
  weir::reference::expect_slopes(
      gradient_of(kShape, z, labels), z, [&] { return SoftmaxReference(kShape, z, labels).loss; },
      2e-6);
}

#if !WEIR_TEST_SANITIZED  // half a million rows, of which each is emulated by 32 threads
// Of the loss alone, which has the pieces in common with count_correct.
TEST_F(SoftmaxCrossEntropy, OfRowsWhoseTermsDoNotFitAtOnceHasTheCpusBits) {
  constexpr LogitShape kShape{(1U << 19U) + 1027, 2};
  const std::vector<float> z = random_logits(kShape);
  const std::vector<float> labels = random_labels(kShape);
  std::vector<float> expected(1);
  weir::softmax_cross_entropy(kShape, z, labels, expected);
  expect_same_bits({loss_of(kShape, z, labels)}, expected);
}
#endif

// Two tiles behind the first 1024 are lost if each is added to the first tile's sum, and not if
// they are first added to each other.
TEST_F(SoftmaxCrossEntropy, TheThirdPassOfARowsSumIsAPassOfItsOwn) {
  constexpr LogitShape kShape{1, (1U << 20U) + 1029};
  std::vector<float> z(kShape.classes, -200.0F);  // their exponentials are 0
  std::fill_n(z.begin(), 1024, 0.0F);
  z[1U << 20U] = -9.81F;  // 0.45 of the distance from 1024 to the next float
  z[(1U << 20U) + 1024] = -9.81F;
  EXPECT_LT(gradient_of(kShape, z, {5})[0], 0x1p-10F) << "the two were lost";
  expect_cpus_bits(kShape, z, {5});
}

TEST_F(SoftmaxCrossEntropy, OfExtremeLogitsIsExact) {
  const std::vector<float> z{1e4F, -1e4F, 0, 1e4F, -1e4F, -1e4F};
  EXPECT_EQ(loss_of({2, 3}, z, {0, 0}), 0.0F);
  EXPECT_EQ(loss_of({2, 3}, z, {1, 0}), 1e4F);
  EXPECT_EQ(gradient_of({2, 3}, z, {1, 0}), (std::vector<float>{0.5F, -0.5F, 0, 0, 0, 0}));
  EXPECT_NEAR(loss_of({2, 3}, std::vector<float>(6, -1e4F), {2, 1}), std::log(3.0), 1e-6);
  EXPECT_EQ(gradient_of({1, 4}, std::vector<float>(4, -1e4F), {2}),
            (std::vector<float>{0.25F, 0.25F, -0.75F, 0.25F}));
}

TEST_F(SoftmaxCrossEntropy, OfOneClassIsNothing) {
  const std::vector<float> z{1e4F, -3.0F, 0.5F};
  const std::vector<float> labels(3, 0.0F);
  EXPECT_EQ(loss_of({3, 1}, z, labels), 0.0F);
  EXPECT_EQ(gradient_of({3, 1}, z, labels), std::vector<float>(3, 0.0F));
  EXPECT_EQ(correct_of({3, 1}, z, labels), 3.0F);
}

TEST_F(SoftmaxCrossEntropy, OfInfinityOrNanIsNanAndTouchesNoOtherRowsGradient) {
  constexpr LogitShape kShape{2, 2};
  for (const float bad : {kNan, kInfinity}) {
    for (const std::size_t at : {0U, 1U}) {
      std::vector<float> z{1, 2, 3, 4};
      z[at] = bad;
      EXPECT_TRUE(std::isnan(loss_of(kShape, z, {0, 1})));
      const std::vector<float> dz = gradient_of(kShape, z, {0, 1});
      EXPECT_TRUE(std::isnan(dz[at]));
      EXPECT_TRUE(std::isfinite(dz[2]) && std::isfinite(dz[3]));
    }
  }
  const std::vector<float> z{1, -kInfinity, 3, 4};
  EXPECT_EQ(loss_of(kShape, z, {1, 1}), kInfinity) << "an impossible label";
  EXPECT_TRUE(std::isfinite(loss_of(kShape, z, {0, 1})));
}

TEST_F(SoftmaxCrossEntropy, OfNanAndInfinityInRowsOfAnyKindHasTheCpusBits) {
  constexpr LogitShape kShape{2, 40};
  std::vector<float> plain = random_logits(kShape);
  plain[7] = 100;  // both labels win unless something is bad
  plain[73] = 100;
  expect_cpus_bits(kShape, std::vector<float>(plain.size(), -kInfinity), {7, 33});
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (const std::size_t at : {0U, 7U, 39U, 73U}) {
      std::vector<float> z = plain;
      z[at] = bad;
      expect_cpus_bits(kShape, z, {7, 33});
    }
  }
}

TEST_F(SoftmaxCrossEntropy, GradientMayOverwriteTheLogits) {
  for (const LogitShape shape : {LogitShape{64, 10}, LogitShape{3, 1025}}) {
    const std::vector<float> z = random_logits(shape);
    const std::vector<float> labels = random_labels(shape);
    Array<float> both(z);
    softmax_cross_entropy_gradient(shape, both.view(), Array<float>(labels).view(), both.span());
    expect_same_bits(both.values(), gradient_of(shape, z, labels));
  }
}

using CountCorrect = SoftmaxCrossEntropy;

TEST_F(CountCorrect, CountsRowsWhoseLabelHasTheFirstOfTheLargestLogits) {
  const std::vector<float> z{3, 1, 2, -3, -1, -2, 0, 0.5F, 1e4F, -1e4F, -2e4F, -3e4F};
  EXPECT_EQ(correct_of({4, 3}, z, {0, 1, 2, 0}), 4.0F);
  EXPECT_EQ(correct_of({4, 3}, z, {0, 1, 1, 2}), 2.0F);
  EXPECT_EQ(correct_of({4, 3}, z, {2, 2, 0, 1}), 0.0F);
  EXPECT_EQ(correct_of({1, 4}, {0, 7, 7, 7}, {1}), 1.0F);
  EXPECT_EQ(correct_of({1, 4}, {0, 7, 7, 7}, {2}), 0.0F);
  EXPECT_EQ(correct_of({2, 40}, std::vector<float>(80, -kInfinity), {0, 0}), 2.0F);
  for (const LogitShape shape : kLogitShapes) {
    SCOPED_TRACE(weir::testing::sizes({shape.rows, shape.classes}));
    std::vector<float> tied = random_logits(shape);
    std::vector<float> labels = random_labels(shape);
    // Whole numbers, so that the largest often occurs twice; half of the labels are right.
    for (float& value : tied) value = std::nearbyint(value / 4);
    std::size_t right = 0;
    for (std::size_t i = 0; i < shape.rows; ++i) {
      const auto row = std::span(tied).subspan(i * shape.classes, shape.classes);
      const auto first = static_cast<float>(std::ranges::max_element(row) - row.begin());
      if (i % 2 == 0) labels[i] = first;
      right += labels[i] == first ? 1U : 0U;
    }
    EXPECT_EQ(correct_of(shape, tied, labels), static_cast<float>(right));
  }
}

TEST_F(CountCorrect, ARowWithANanIsWrongWhateverItsLabel) {
  for (std::size_t at = 0; at < 3; ++at) {
    std::vector<float> z{1, 2, 3};
    z[at] = kNan;
    for (const float label : {0.0F, 1.0F, 2.0F}) {
      EXPECT_EQ(correct_of({1, 3}, z, {label}), 0.0F) << at << ", " << label;
    }
  }
}

// On a device nobody looks at the labels first.
TEST_F(SoftmaxCrossEntropy, ALabelThatIsNoClassIsRefusedByItsPlaceOrGivesNanAndCountsAsWrong) {
  constexpr LogitShape kShape{3, 10};
  std::vector<float> z = random_logits(kShape);
  for (std::size_t i = 0; i < kShape.rows; ++i) z[i * kShape.classes] = 100.0F;  // class 0 wins
  const std::vector<float> good(3, 0.0F);
  const std::vector<float> expected = gradient_of(kShape, z, good);
  EXPECT_EQ(correct_of(kShape, z, good), 3.0F);
  for (const float bad : {-1.0F, 10.0F, 0.5F, kNan, kInfinity, -kInfinity, 1e30F, -0.25F}) {
    SCOPED_TRACE(bad);
    const std::vector<float> labels{0, bad, 0};
    if (!kOnCuda) {
      const std::string message =
          weir::testing::message_of<UsageError>([&] { loss_of(kShape, z, labels); });
      EXPECT_NE(message.find("labels[1]"), std::string::npos) << message;
      EXPECT_THROW(gradient_of(kShape, z, labels), UsageError);
      EXPECT_THROW(correct_of(kShape, z, labels), UsageError);
      continue;
    }
    EXPECT_TRUE(std::isnan(loss_of(kShape, z, labels)));
    EXPECT_EQ(correct_of(kShape, z, labels), 2.0F);
    const std::vector<float> found = gradient_of(kShape, z, labels);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool of_bad_row = i / kShape.classes == 1;
      EXPECT_TRUE(of_bad_row ? std::isnan(found[i]) : found[i] == expected[i]) << i;
    }
  }
}

TEST_F(SoftmaxCrossEntropy, OfSizesThatDoNotFitIsRefusedAndNothingChanges) {
  const Array<float> z(random(8));
  const Array<float> labels(std::vector<float>{0, 1});
  Array<float> out(8);
  const auto refused = [&](LogitShape shape, auto logits, auto classes, std::size_t scalars,
                           std::size_t slopes) {
    const auto scalar = out.span().first(scalars);
    EXPECT_THROW(softmax_cross_entropy(shape, logits, classes, scalar), UsageError);
    EXPECT_THROW(count_correct(shape, logits, classes, scalar), UsageError);
    EXPECT_THROW(softmax_cross_entropy_gradient(shape, logits, classes, out.span().first(slopes)),
                 UsageError);
  };
  const auto all = z.view();
  const auto two = labels.view();
  refused({0, 4}, all.first(0), two.first(0), 1, 8);
  refused({2, 0}, all.first(0), two, 1, 8);
  refused({2, (1U << 30U) + 1}, all, two, 1, 8);
  refused({2, 4}, all.first(7), two, 1, 8);
  refused({2, 4}, all, two.first(1), 1, 8);
  refused({2, 4}, all, two, 8, 7);
  EXPECT_TRUE(out.is_unwritten());
}

}  // namespace
