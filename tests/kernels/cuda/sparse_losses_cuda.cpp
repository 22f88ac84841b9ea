#include <array>
#include <limits>

#include "allocator/base/error.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/sparse/losses.hpp"
#include "support/sanitized.hpp"
#include "tests/kernels/cuda/device_sparse_cuda.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"

namespace {

using weir::kSoftmaxStatistics;
using weir::kTopLogit;
using weir::SparseLabels;
using weir::reference::ClassLists;
using weir::reference::kNan;
using weir::reference::Sparsity;
using weir::testing::DeviceArray;
using weir::testing::DeviceLabels;
using weir::testing::expect_same_bits;
using weir::testing::fresh_seed;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Few and many classes, around the sizes of a warp, a tile and two tiles; rows beyond one pass of
/// the sum over rows, and tiles beyond one pass of the sum over a row.
constexpr std::array<Sparsity, 12> kLabelSizes{{{1, 1, 1000},
                                                {3, 1, 500},
                                                {4, 31, 100},
                                                {5, 32, 100},
                                                {31, 33, 60},
                                                {1025, 4, 300},
                                                {3, 1023, 3},
                                                {3, 1024, 500},
                                                {2, 1025, 1000},
                                                {4, 2100, 0},
                                                {2, 100003, 1},
                                                {1, (1U << 20U) + 1029, 1}}};

/// What the three losses give, on the CPU or on the device, and what two ranks with these logits
/// each would make of it.
struct Results {
  std::vector<float> statistics;
  std::vector<float> scalars = std::vector<float>(5, kNan);
  std::vector<float> softmax_dz;
  std::vector<float> logistic_dz;
  std::vector<float> tops;
  std::vector<float> merged;
};

std::vector<float> twice(const std::vector<float>& values) {
  std::vector<float> two = values;
  two.insert(two.end(), values.begin(), values.end());
  return two;
}

Results on_cpu(const ClassLists& labels, const std::vector<float>& z) {
  Results found{.statistics = std::vector<float>(labels.rows() * kSoftmaxStatistics),
                .softmax_dz = std::vector<float>(z.size()),
                .logistic_dz = std::vector<float>(z.size()),
                .tops = std::vector<float>(labels.rows() * kTopLogit),
                .merged = std::vector<float>(labels.rows() * kSoftmaxStatistics)};
  const SparseLabels own = labels.view();
  const auto scalar = [&found](std::size_t i) { return std::span(found.scalars).subspan(i, 1); };
  weir::softmax_statistics(own, z, found.statistics);
  weir::softmax_loss(own, found.statistics, scalar(0));
  weir::softmax_gradient(own, z, found.statistics, found.softmax_dz);
  weir::logistic_loss_and_gradient(own, z, scalar(1), found.logistic_dz);
  weir::logistic_loss(own, z, scalar(2));
  weir::count_hits(own, z, scalar(3));
  weir::top_logits(own, z, found.tops);
  weir::merge_hits(twice(found.tops), labels.rows(), scalar(4));
  weir::merge_softmax_statistics(twice(found.statistics), found.merged);
  return found;
}

class SparseLossesOnDevice : public weir::testing::GpuTest {
 protected:
  /// N(0, 4^2), rounded to quarters so that the largest is sometimes there twice.
  std::vector<float> random_logits(std::size_t count) {
    std::vector<float> z = random(count);
    for (float& value : z) value = std::nearbyint(value * 16) / 4;
    return z;
  }
  static ClassLists random_labels(Sparsity sizes) {
    return random_classes(sizes, static_cast<std::uint32_t>(fresh_seed()));
  }

  Results on_device(const ClassLists& labels, const std::vector<float>& z, std::size_t offset) {
    const DeviceLabels device_labels(labels);
    const DeviceArray<float> device_z(z, offset);
    DeviceArray<float> statistics(labels.rows() * kSoftmaxStatistics, offset);
    DeviceArray<float> scalars(5, offset);
    DeviceArray<float> tops(labels.rows() * kTopLogit, offset);
    DeviceArray<float> merged(labels.rows() * kSoftmaxStatistics, offset);
    DeviceArray<float> softmax_dz(z.size(), offset);
    DeviceArray<float> logistic_dz(z.size(), offset);
    const SparseLabels own = device_labels.view();
    const auto scalar = [&scalars](std::size_t i) { return scalars.span().subspan(i, 1); };
    weir::cuda::softmax_statistics(stream(), own, device_z.view(), statistics.span(), workspace());
    weir::cuda::softmax_loss(stream(), own, statistics.view(), scalar(0), workspace());
    weir::cuda::softmax_gradient(stream(), own, device_z.view(), statistics.view(),
                                 softmax_dz.span());
    weir::cuda::logistic_loss_and_gradient(stream(), own, device_z.view(), scalar(1),
                                           logistic_dz.span(), workspace());
    weir::cuda::logistic_loss(stream(), own, device_z.view(), scalar(2), workspace());
    weir::cuda::count_hits(stream(), own, device_z.view(), scalar(3), workspace());
    weir::cuda::top_logits(stream(), own, device_z.view(), tops.span(), workspace());
    const DeviceArray<float> two_tops(twice(tops.values()));
    const DeviceArray<float> two_statistics(twice(statistics.values()));
    weir::cuda::merge_hits(stream(), two_tops.view(), labels.rows(), scalar(4), workspace());
    weir::cuda::merge_softmax_statistics(stream(), two_statistics.view(), merged.span());
    EXPECT_TRUE(tops.guards_hold() && merged.guards_hold());
    EXPECT_TRUE(statistics.guards_hold() && scalars.guards_hold());
    EXPECT_TRUE(softmax_dz.guards_hold() && logistic_dz.guards_hold());
    return {statistics.values(),  scalars.values(), softmax_dz.values(),
            logistic_dz.values(), tops.values(),    merged.values()};
  }

  /// Returns the device's results after comparing them with the CPU's.
  Results expect_cpus_bits(const ClassLists& labels, const std::vector<float>& z,
                           std::size_t offset = 0) {
    const Results expected = on_cpu(labels, z);
    Results found = on_device(labels, z, offset);
    expect_same_bits(found.statistics, expected.statistics);
    expect_same_bits(found.scalars, expected.scalars);
    expect_same_bits(found.softmax_dz, expected.softmax_dz);
    expect_same_bits(found.logistic_dz, expected.logistic_dz);
    expect_same_bits(found.tops, expected.tops);
    expect_same_bits(found.merged, expected.merged);
    return found;
  }
};

TEST_F(SparseLossesOnDevice, HaveTheCpusBits) {
  for (const Sparsity sizes : kLabelSizes) {
    SCOPED_TRACE(std::to_string(sizes.rows) + " x " + std::to_string(sizes.columns));
    expect_cpus_bits(random_labels(sizes), random_logits(sizes.rows * sizes.columns), 1);
  }
}

// The CPU's own test compares more with float64; this one also sees a mistake that both share.
TEST_F(SparseLossesOnDevice, EqualTheFloat64Reference) {
  constexpr Sparsity kBatch{6, 3000, 2};
  const ClassLists labels = random_labels(kBatch);
  const std::vector<float> z = random_logits(kBatch.rows * kBatch.columns);
  const Results found = on_device(labels, z, 0);
  double softmax = 0;
  double logistic = 0;
  for (std::size_t i = 0; i < kBatch.rows; ++i) {
    const auto row = std::span(z).subspan(i * kBatch.columns, kBatch.columns);
    double total = 0;
    double at_labels = 0;
    for (std::size_t j = 0; j < row.size(); ++j) {
      const auto value = static_cast<double>(row[j]);
      total += std::exp(value);
      if (labels.has(i, j)) at_labels += value;
      logistic += std::log1p(std::exp(value));
    }
    logistic -= at_labels;
    const double count = labels.starts[i + 1] - labels.starts[i];
    if (count > 0) softmax += std::log(total) - at_labels / count;
  }
  const double rows = kBatch.rows;
  EXPECT_NEAR(found.scalars[0], softmax / rows, 1e-5 * (1 + softmax / rows));
  EXPECT_NEAR(found.scalars[1], logistic / rows, 1e-5 * logistic / rows);
}

#if !WEIR_TEST_SANITIZED  // 32,771 rows, of which each is emulated by 32 threads
TEST_F(SparseLossesOnDevice, OfMoreRowsThanFitTheWorkspaceHaveTheCpusBits) {
  constexpr Sparsity kBatch{(1U << 15U) + 3, 1, 500};
  expect_cpus_bits(random_labels(kBatch), random_logits(kBatch.rows * kBatch.columns));
}
#endif

TEST_F(SparseLossesOnDevice, GradientsMayOverwriteTheLogits) {
  constexpr Sparsity kBatch{3, 1030, 4};
  const ClassLists labels = random_labels(kBatch);
  const std::vector<float> z = random_logits(kBatch.rows * kBatch.columns);
  const Results expected = on_device(labels, z, 0);
  const DeviceLabels own(labels);
  DeviceArray<float> softmax(z);
  weir::cuda::softmax_gradient(stream(), own.view(), softmax.view(),
                               DeviceArray<float>(expected.statistics).view(), softmax.span());
  expect_same_bits(softmax.values(), expected.softmax_dz);
  DeviceArray<float> logistic(z);
  DeviceArray<float> loss(1);
  weir::cuda::logistic_loss_and_gradient(stream(), own.view(), logistic.view(), loss.span(),
                                         logistic.span(), workspace());
  expect_same_bits(logistic.values(), expected.logistic_dz);
  expect_same_bits(loss.values(), {expected.scalars[1]});
}

TEST_F(SparseLossesOnDevice, NanInfinityAndZerosOfBothSignsAreTreatedAsOnTheCpu) {
  constexpr Sparsity kBatch{3, 1100, 2};
  const ClassLists labels{kBatch.columns, {0, 2, 2, 3}, {7, 1050, 1099}};
  const std::vector<float> plain = random_logits(kBatch.rows * kBatch.columns);
  std::vector<std::vector<float>> inputs{std::vector<float>(plain.size(), -kInfinity)};
  for (const float bad : {kNan, kInfinity, -kInfinity, 1e38F, -1e38F}) {
    for (const std::size_t at : {0U, 7U, 1050U, 1100U, 3299U}) {
      inputs.push_back(plain);
      inputs.back()[at] = bad;
    }
  }
  std::vector<float> zeros(plain.size(), -0.0F);
  for (std::size_t i = 0; i < zeros.size(); i += 3) zeros[i] = 0.0F;
  inputs.push_back(zeros);
  inputs.push_back(plain);
  std::fill_n(inputs.back().begin(), 1024, -kInfinity);  // a whole tile
  for (const std::vector<float>& z : inputs) expect_cpus_bits(labels, z);
}

TEST_F(SparseLossesOnDevice, ALabelThatIsNoClassGivesANanLossOrIsIgnored) {
  const ClassLists good{40, {0, 1, 2}, {3, 5}};
  const ClassLists bad{40, {0, 2, 3}, {3, 40, 5}};
  std::vector<float> z = random_logits(80);
  z[3] = 100;
  const Results expected = on_device(good, z, 0);
  const Results found = on_device(bad, z, 0);
  EXPECT_TRUE(std::isnan(found.scalars[0]));
  EXPECT_EQ(found.scalars[1], expected.scalars[1]);
  EXPECT_EQ(found.scalars[3], expected.scalars[3]);
}

TEST_F(SparseLossesOnDevice, BadSizesAreRefusedAndNothingChanges) {
  const ClassLists labels{4, {0, 1, 2}, {0, 3}};
  const DeviceLabels device_labels(labels);
  const SparseLabels own = device_labels.view();
  const DeviceArray<float> z(random(8));
  DeviceArray<float> one(1);
  DeviceArray<float> out(8);
  const auto refused = [&](const SparseLabels& given, std::span<const float> logits,
                           std::span<float> scalar, std::span<float> dz, std::span<float> scratch) {
    using weir::UsageError;
    EXPECT_THROW(
        weir::cuda::logistic_loss_and_gradient(stream(), given, logits, scalar, dz, scratch),
        UsageError);
    if (dz.size() != 8) return;
    EXPECT_THROW(weir::cuda::logistic_loss(stream(), given, logits, scalar, scratch), UsageError);
    EXPECT_THROW(weir::cuda::count_hits(stream(), given, logits, scalar, scratch), UsageError);
  };
  SparseLabels none = own;
  none.starts = own.starts.first(1);
  SparseLabels no_classes = own;
  no_classes.classes = 0;
  SparseLabels many = own;
  many.classes = (1U << 25U) + 1;
  const std::span<float> all = out.span();
  refused(none, z.view(), one.span(), all, workspace());
  refused(no_classes, z.view().first(0), one.span(), all, workspace());
  refused(many, z.view(), one.span(), all, workspace());
  refused(own, z.view().first(7), one.span(), all, workspace());
  refused(own, z.view(), all, all, workspace());
  refused(own, z.view(), one.span(), all.first(7), workspace());
  refused(own, z.view(), one.span(), all, workspace().first(1000));

  const auto six = all.first(6);
  const auto statistics = z.view();
  const auto statistics_refused = [&](const SparseLabels& given, auto logits, auto to,
                                      auto scratch) {
    EXPECT_THROW(weir::cuda::softmax_statistics(stream(), given, logits, to, scratch),
                 weir::UsageError);
  };
  statistics_refused(none, z.view(), all, workspace());
  statistics_refused(own, z.view().first(7), all, workspace());
  statistics_refused(own, z.view(), six, workspace());
  statistics_refused(own, z.view(), all, workspace().first(1000));
  const auto loss_refused = [&](const SparseLabels& given, auto from, auto to, auto scratch) {
    EXPECT_THROW(weir::cuda::softmax_loss(stream(), given, from, to, scratch), weir::UsageError);
  };
  loss_refused(none, statistics.first(0), one.span(), workspace());
  loss_refused(own, z.view().first(6), one.span(), workspace());
  loss_refused(own, statistics, six, workspace());
  loss_refused(own, statistics, one.span(), workspace().first(1000));
  const auto gradient_refused = [&](const SparseLabels& given, auto logits, auto from, auto to) {
    EXPECT_THROW(weir::cuda::softmax_gradient(stream(), given, logits, from, to), weir::UsageError);
  };
  gradient_refused(many, z.view(), statistics, all);
  gradient_refused(own, z.view().first(7), statistics, all);
  gradient_refused(own, z.view(), z.view().first(6), all);
  gradient_refused(own, z.view(), statistics, all.first(7));
  EXPECT_TRUE(std::isnan(one.values()[0]));
  for (const float value : out.values()) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
