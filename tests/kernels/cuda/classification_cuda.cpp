#include <array>

#include "allocator/base/error.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/loss.hpp"
#include "kernels/parts/philox.hpp"
#include "support/sanitized.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"

namespace {

using weir::LogitShape;
using weir::reference::kNan;
using weir::testing::DeviceArray;
using weir::testing::expect_same_bits;
using weir::testing::fresh_seed;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Few and many classes, around the sizes of a warp, a tile and two tiles; and rows beyond one pass
/// of the sum.
constexpr std::array<LogitShape, 13> kLogitShapes{{{1, 1},
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
                                                   {2, 100003},
                                                   {1, (1U << 20U) + 1029}}};

/// A row in double: its softmax and its loss.
struct ReferenceRow {
  std::vector<double> shares;
  double log_total = 0;

  explicit ReferenceRow(std::span<const float> z) {
    auto largest = static_cast<double>(z[0]);
    for (const float value : z) largest = std::max(largest, static_cast<double>(value));
    double total = 0;
    for (const float value : z) {
      shares.push_back(std::exp(static_cast<double>(value) - largest));
      total += shares.back();
    }
    for (double& share : shares) share /= total;
    log_total = largest + std::log(total);
  }
};

class ClassificationOnDevice : public weir::testing::GpuTest {
 protected:
  /// N(0, 4^2), so that rows have clear winners.
  std::vector<float> random_logits(LogitShape shape) {
    std::vector<float> z = random(shape.rows * shape.classes);
    weir::scale(4.0F, z);
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
    DeviceArray<float> loss(1);
    weir::cuda::softmax_cross_entropy(stream(), shape, DeviceArray<float>(z, offset).view(),
                                      DeviceArray<float>(labels, offset).view(), loss.span(),
                                      workspace());
    EXPECT_TRUE(loss.guards_hold());
    return loss.values()[0];
  }
  std::vector<float> gradient_of(LogitShape shape, const std::vector<float>& z,
                                 const std::vector<float>& labels, std::size_t offset = 0) {
    DeviceArray<float> dz(z.size(), offset);
    weir::cuda::softmax_cross_entropy_gradient(stream(), shape,
                                               DeviceArray<float>(z, offset).view(),
                                               DeviceArray<float>(labels).view(), dz.span());
    EXPECT_TRUE(dz.guards_hold());
    return dz.values();
  }
  float correct_of(LogitShape shape, const std::vector<float>& z,
                   const std::vector<float>& labels) {
    DeviceArray<float> correct(1);
    weir::cuda::count_correct(stream(), shape, DeviceArray<float>(z).view(),
                              DeviceArray<float>(labels).view(), correct.span(), workspace());
    EXPECT_TRUE(correct.guards_hold());
    return correct.values()[0];
  }
};

std::string describe(LogitShape shape) {
  return std::to_string(shape.rows) + " x " + std::to_string(shape.classes);
}

// A total errs by 1.5e-7 for its terms and 37 roundings for each pass of its sum, so its logarithm
// by 7e-6; the mean adds another 37 for each pass.
TEST_F(ClassificationOnDevice, LossHasTheCpusBitsAndEqualsTheFloat64Reference) {
  for (const LogitShape shape : kLogitShapes) {
    SCOPED_TRACE(describe(shape));
    const std::vector<float> z = random_logits(shape);
    const std::vector<float> labels = random_labels(shape);
    std::vector<float> expected(1);
    weir::softmax_cross_entropy(shape, z, labels, expected);
    double exact = 0;
    for (std::size_t i = 0; i < shape.rows; ++i) {
      const auto row = std::span<const float>(z).subspan(i * shape.classes, shape.classes);
      exact += (ReferenceRow(row).log_total -
                static_cast<double>(row[static_cast<std::size_t>(labels[i])])) /
               static_cast<double>(shape.rows);
    }
    for (const std::size_t offset : {0U, 3U}) {
      const float found = loss_of(shape, z, labels, offset);
      expect_same_bits({found}, expected);
      EXPECT_NEAR(found, exact, 1.5e-5 * (1 + exact));
    }
  }
}

TEST_F(ClassificationOnDevice, GradientHasTheCpusBitsAndEqualsTheFloat64Reference) {
  for (const LogitShape shape : kLogitShapes) {
    SCOPED_TRACE(describe(shape));
    const std::vector<float> z = random_logits(shape);
    const std::vector<float> labels = random_labels(shape);
    std::vector<float> expected(z.size());
    weir::softmax_cross_entropy_gradient(shape, z, labels, expected);
    const std::vector<float> found = gradient_of(shape, z, labels, 1);
    expect_same_bits(found, expected);
    const auto rows = static_cast<double>(shape.rows);
    for (std::size_t i = 0; i < shape.rows; ++i) {
      const ReferenceRow row{std::span<const float>(z).subspan(i * shape.classes, shape.classes)};
      for (std::size_t j = 0; j < shape.classes; ++j) {
        const double one = static_cast<std::size_t>(labels[i]) == j ? 1.0 : 0.0;
        ASSERT_NEAR(found[i * shape.classes + j], (row.shares[j] - one) / rows, 7e-6 / rows)
            << i << ", " << j;
      }
    }
  }
}

#if !WEIR_TEST_SANITIZED  // half a million rows, of which each is emulated by 32 threads
// Of the loss alone, which has the pieces in common with count_correct.
TEST_F(ClassificationOnDevice, RowsWhoseTermsDoNotFitAtOnceHaveTheCpusBits) {
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
TEST_F(ClassificationOnDevice, TheThirdPassOfARowsSumIsAPassOfItsOwn) {
  constexpr LogitShape kShape{1, (1U << 20U) + 1029};
  std::vector<float> z(kShape.classes, -200.0F);  // their exponentials are 0
  std::fill_n(z.begin(), 1024, 0.0F);
  z[1U << 20U] = -9.81F;  // 0.45 of the distance from 1024 to the next float
  z[(1U << 20U) + 1024] = -9.81F;
  const std::vector<float> labels{5};
  std::vector<float> expected(z.size());
  weir::softmax_cross_entropy_gradient(kShape, z, labels, expected);
  ASSERT_LT(expected[0], 0x1p-10F) << "the two were lost";
  expect_same_bits(gradient_of(kShape, z, labels), expected);
}

TEST_F(ClassificationOnDevice, GradientMayOverwriteTheLogits) {
  for (const LogitShape shape : {LogitShape{64, 10}, LogitShape{3, 1025}}) {
    const std::vector<float> z = random_logits(shape);
    const std::vector<float> labels = random_labels(shape);
    DeviceArray<float> both(z);
    weir::cuda::softmax_cross_entropy_gradient(stream(), shape, both.view(),
                                               DeviceArray<float>(labels).view(), both.span());
    expect_same_bits(both.values(), gradient_of(shape, z, labels));
  }
}

TEST_F(ClassificationOnDevice, CountsTheRowsWhoseLabelHasTheFirstOfTheLargestLogits) {
  for (const LogitShape shape : kLogitShapes) {
    SCOPED_TRACE(describe(shape));
    std::vector<float> z = random_logits(shape);
    std::vector<float> labels = random_labels(shape);
    // Whole numbers, so that the largest often occurs twice; half of the labels are right.
    for (float& value : z) value = std::nearbyint(value / 4);
    for (std::size_t i = 0; i < shape.rows; i += 2) {
      const auto row = z.begin() + static_cast<std::ptrdiff_t>(i * shape.classes);
      labels[i] = static_cast<float>(
          std::max_element(row, row + static_cast<std::ptrdiff_t>(shape.classes)) - row);
    }
    std::vector<float> expected(1);
    weir::count_correct(shape, z, labels, expected);
    const std::size_t right = (shape.rows + 1) / 2;
    EXPECT_GE(expected[0], static_cast<float>(right));
    EXPECT_EQ(correct_of(shape, z, labels), expected[0]);
  }
}

TEST_F(ClassificationOnDevice, NanAndInfinityAreTreatedAsOnTheCpu) {
  constexpr LogitShape kShape{2, 40};
  std::vector<float> plain = random_logits(kShape);
  const std::vector<float> labels{7, 33};
  plain[7] = 100;  // both labels win unless something is bad
  plain[73] = 100;
  const std::vector<float> minus(plain.size(), -kInfinity);
  std::vector<std::vector<float>> inputs{minus};
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (const std::size_t at : {0U, 7U, 39U, 73U}) {
      inputs.push_back(plain);
      inputs.back()[at] = bad;
    }
  }
  for (const std::vector<float>& z : inputs) {
    std::vector<float> loss(1);
    std::vector<float> dz(z.size());
    std::vector<float> correct(1);
    weir::softmax_cross_entropy(kShape, z, labels, loss);
    weir::softmax_cross_entropy_gradient(kShape, z, labels, dz);
    weir::count_correct(kShape, z, labels, correct);
    expect_same_bits({loss_of(kShape, z, labels)}, loss);
    expect_same_bits(gradient_of(kShape, z, labels), dz);
    EXPECT_EQ(correct_of(kShape, z, labels), correct[0]);
  }
  const std::vector<float> first{0, 0};
  EXPECT_EQ(correct_of(kShape, minus, first), 2.0F) << "the first of equal logits";
}

TEST_F(ClassificationOnDevice, ALabelThatIsNoClassGivesNanAndCountsAsWrong) {
  constexpr LogitShape kShape{3, 10};
  std::vector<float> z = random_logits(kShape);
  for (std::size_t i = 0; i < kShape.rows; ++i) z[i * kShape.classes] = 100.0F;  // class 0 wins
  const std::vector<float> good(3, 0.0F);
  const std::vector<float> expected = gradient_of(kShape, z, good);
  EXPECT_EQ(correct_of(kShape, z, good), 3.0F);
  for (const float bad : {-1.0F, 10.0F, 0.5F, kNan, kInfinity, -kInfinity, 1e30F, -0.25F}) {
    SCOPED_TRACE(bad);
    const std::vector<float> labels{0, bad, 0};
    EXPECT_TRUE(std::isnan(loss_of(kShape, z, labels)));
    EXPECT_EQ(correct_of(kShape, z, labels), 2.0F);
    const std::vector<float> found = gradient_of(kShape, z, labels);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool of_bad_row = i / kShape.classes == 1;
      EXPECT_TRUE(of_bad_row ? std::isnan(found[i]) : found[i] == expected[i]) << i;
    }
  }
}

TEST_F(ClassificationOnDevice, BadSizesAreRefusedAndNothingChanges) {
  constexpr LogitShape kShape{2, 4};
  const DeviceArray<float> z(random(8));
  const DeviceArray<float> labels(std::vector<float>{0, 1});
  DeviceArray<float> one(1);
  DeviceArray<float> dz(8);
  const auto refused = [&](LogitShape shape, auto logits, auto classes, auto scalar, auto gradient,
                           auto scratch) {
    using weir::UsageError;
    EXPECT_THROW(
        weir::cuda::softmax_cross_entropy(stream(), shape, logits, classes, scalar, scratch),
        UsageError);
    EXPECT_THROW(weir::cuda::count_correct(stream(), shape, logits, classes, scalar, scratch),
                 UsageError);
    if (scratch.size() != workspace().size()) return;
    EXPECT_THROW(
        weir::cuda::softmax_cross_entropy_gradient(stream(), shape, logits, classes, gradient),
        UsageError);
  };
  const auto all = dz.span();
  refused({0, 4}, z.view().first(0), labels.view().first(0), one.span(), all, workspace());
  refused({2, 0}, z.view().first(0), labels.view(), one.span(), all, workspace());
  refused({2, (1U << 30U) + 1}, z.view(), labels.view(), one.span(), all, workspace());
  refused(kShape, z.view().first(7), labels.view(), one.span(), all, workspace());
  refused(kShape, z.view(), labels.view().first(1), one.span(), all, workspace());
  refused(kShape, z.view(), labels.view(), dz.span(), all.first(7), workspace());
  refused(kShape, z.view(), labels.view(), one.span(), all, workspace().first(1000));
  EXPECT_TRUE(std::isnan(one.values()[0]));
  for (const float value : dz.values()) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
