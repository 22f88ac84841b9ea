// Losses and hits of sparse labels, also of a batch whose classes, or whose rows, several ranks
// share. One long file, because all cases compare with one reference, through one set of arrays.

#include <algorithm>
#include <array>
#include <limits>

#include "support/message_of.hpp"
#include "support/sanitized.hpp"
#include "tests/kernels/device.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace {

using weir::kSoftmaxStatistics;
using weir::kTopLogit;
using weir::SparseLabels;
using weir::UsageError;
using weir::reference::ClassLists;
using weir::reference::kNan;
using weir::reference::random_classes;
using weir::reference::Sparsity;
using weir::testing::Array;
using weir::testing::expect_same_bits;
using weir::testing::fresh_seed;
using weir::testing::kOnCuda;

using Floats = std::vector<float>;

constexpr float kEndless = std::numeric_limits<float>::infinity();
/// Few and many classes, around the sizes of a warp, a tile and two tiles; rows with and without
/// labels, none and all of them; rows beyond one pass of the sum over rows, and tiles beyond one
/// pass of the sum over a row.
constexpr std::array<Sparsity, 17> kLabelSizes{{{1, 1, 1000},
                                                {3, 1, 500},
                                                {1, 10, 200},
                                                {4, 31, 100},
                                                {5, 32, 100},
                                                {31, 33, 60},
                                                {64, 10, 150},
                                                {1025, 4, 300},
                                                {5, 12, 0},
                                                {4, 9, 1000},
                                                {3, 1023, 3},
                                                {3, 1024, 500},
                                                {2, 1025, 1000},
                                                {4, 2100, 0},
                                                {2, 3000, 2},
                                                {2, 100003, 1},
                                                {1, (1U << 20U) + 1029, 1}}};

double softplus_reference(double a) {
  return (a > 0 ? a : 0) + std::log1p(std::exp(a > 0 ? -a : a));
}

/// Both losses and their gradients in double. Computes each row's labels as a dense target.
struct LossReference {
  std::array<double, 2> loss{};
  std::array<std::vector<double>, 2> gradient;

  LossReference(const ClassLists& labels, const Floats& z) {
    const auto rows = static_cast<double>(labels.rows());
    for (std::size_t i = 0; i < labels.rows(); ++i) {
      const std::span<const float> row = std::span(z).subspan(i * labels.classes, labels.classes);
      const double count = labels.starts[i + 1] - labels.starts[i];
      const auto largest = static_cast<double>(*std::ranges::max_element(row));
      double total = 0;
      for (const float value : row) total += std::exp(static_cast<double>(value) - largest);
      const double log_total = largest + std::log(total);
      std::uint32_t next = labels.starts[i];
      for (std::size_t j = 0; j < row.size(); ++j) {
        const auto value = static_cast<double>(row[j]);
        const bool label = next < labels.starts[i + 1] && labels.indices[next] == j;
        next += label ? 1 : 0;
        const double target = label ? 1 / count : 0;
        loss[0] -= target * (value - log_total) / rows;
        gradient[0].push_back(count == 0 ? 0 : (std::exp(value - log_total) - target) / rows);
        loss[1] += (softplus_reference(value) - (label ? value : 0)) / rows;
        gradient[1].push_back((1 / (1 + std::exp(-value)) - (label ? 1 : 0)) / rows);
      }
    }
  }
};

/// What the kernels make of a batch, and what two ranks with these logits each would make of it.
struct Results {
  Floats statistics;
  std::array<float, 5>
      scalars{};  ///< the losses, the logistic one alone, the hits and those of two ranks
  std::array<Floats, 2> dz;
  Floats tops;
  Floats merged;
};

Floats twice(const Floats& values) {
  Floats two = values;
  two.insert(two.end(), values.begin(), values.end());
  return two;
}

class SparseLosses : public weir::testing::KernelTest {
 protected:
  /// Labels where the kernels read them.
  class Labels {
   public:
    explicit Labels(const ClassLists& labels)
        : classes_(labels.classes), starts_(labels.starts), indices_(labels.indices) {}
    [[nodiscard]] SparseLabels view() const { return {classes_, starts_.view(), indices_.view()}; }

   private:
    std::size_t classes_;
    Array<std::uint32_t> starts_;
    Array<std::uint32_t> indices_;
  };

  /// N(0, 4^2), rounded to quarters so that the largest is sometimes there twice.
  Floats random_logits(Sparsity sizes) {
    Floats z = random(sizes.rows * sizes.columns);
    for (float& value : z) value = std::nearbyint(value * 16) / 4;
    return z;
  }
  static ClassLists random_labels(Sparsity sizes) {
    return random_classes(sizes, static_cast<std::uint32_t>(fresh_seed()));
  }

  /// `kernels` is this fixture, or the CPU.
  Results results(const ClassLists& labels, const Floats& logits, std::size_t offset = 0) {
    const Labels lists(labels);
    const SparseLabels own = lists.view();
    const Array<float> z(logits, offset);
    Array<float> statistics(labels.rows() * kSoftmaxStatistics, offset);
    Array<float> merged(labels.rows() * kSoftmaxStatistics, offset);
    Array<float> tops(labels.rows() * kTopLogit, offset);
    std::array<Array<float>, 2> dz{Array<float>(logits.size(), offset),
                                   Array<float>(logits.size(), offset)};
    Array<float> scalars(5, offset);
    const auto scalar = [&scalars](std::size_t i) { return scalars.span().subspan(i, 1); };
    softmax_statistics(own, z.view(), statistics.span());
    softmax_loss(own, statistics.view(), scalar(0));
    softmax_gradient(own, z.view(), statistics.view(), dz[0].span());
    logistic_loss_and_gradient(own, z.view(), scalar(1), dz[1].span());
    logistic_loss(own, z.view(), scalar(2));
    count_hits(own, z.view(), scalar(3));
    top_logits(own, z.view(), tops.span());
    merge_hits(Array<float>(twice(tops.values())).view(), labels.rows(), scalar(4));
    merge_softmax_statistics(Array<float>(twice(statistics.values())).view(), merged.span());
    Results found{.statistics = statistics.values(),
                  .dz = {dz[0].values(), dz[1].values()},
                  .tops = tops.values(),
                  .merged = merged.values()};
    std::ranges::copy(scalars.values(), found.scalars.begin());
    expect_same_bits({found.scalars[2]}, {found.scalars[1]});
    EXPECT_EQ(found.scalars[4], found.scalars[3]);
    return found;
  }

  /// The CPU's results, to the bit.
  void expect_cpus_bits(const Results& found, const ClassLists& labels, const Floats& z) {
    const SparseLabels own = labels.view();
    Floats statistics(found.statistics.size());
    Floats scalars(4);
    std::array<Floats, 2> dz{Floats(z.size()), Floats(z.size())};
    Floats tops(found.tops.size());
    Floats merged(found.merged.size());
    const auto scalar = [&scalars](std::size_t i) { return std::span(scalars).subspan(i, 1); };
    weir::softmax_statistics(own, z, statistics);
    weir::softmax_loss(own, statistics, scalar(0));
    weir::softmax_gradient(own, z, statistics, dz[0]);
    weir::logistic_loss_and_gradient(own, z, scalar(1), dz[1]);
    scalars[2] = scalars[1];
    weir::count_hits(own, z, scalar(3));
    weir::top_logits(own, z, tops);
    weir::merge_softmax_statistics(twice(statistics), merged);
    expect_same_bits(found.statistics, statistics);
    expect_same_bits({found.scalars.begin(), found.scalars.begin() + 4}, scalars);
    for (std::size_t k = 0; k < 2; ++k) expect_same_bits(found.dz[k], dz[k]);
    expect_same_bits(found.tops, tops);
    expect_same_bits(found.merged, merged);
  }
};

// Of the softmax a total errs by 1.5e-7 twice for its terms and 37 roundings for each pass of its
// sums. Of the logistic loss 37 for each of three passes at most, and 3e-7 of a term; no term is
// negative.
TEST_F(SparseLosses, EqualTheFloat64ReferenceAndHaveTheCpusBits) {
  for (const Sparsity sizes : kLabelSizes) {
    SCOPED_TRACE(weir::testing::sizes({sizes.rows, sizes.columns}));
    const ClassLists labels = random_labels(sizes);
    const Floats z = random_logits(sizes);
    const LossReference expected(labels, z);
    const Results found = results(labels, z, 1);
    EXPECT_NEAR(found.scalars[0], expected.loss[0], 1e-5 * (1 + expected.loss[0]));
    EXPECT_NEAR(found.scalars[1], expected.loss[1], 7e-6 * expected.loss[1]);
    for (std::size_t i = 0; i < z.size(); ++i) {
      ASSERT_NEAR(found.dz[0][i], expected.gradient[0][i], 6e-6 / static_cast<double>(sizes.rows))
          << i;
      ASSERT_NEAR(found.dz[1][i], expected.gradient[1][i], 5e-7 * std::abs(expected.gradient[1][i]))
          << i;
    }
    expect_cpus_bits(found, labels, z);
  }
}

TEST_F(SparseLosses, GradientsAreTheSlopesOfTheFloat64Losses) {
  constexpr Sparsity kBatch{4, 6, 400};
  const ClassLists labels = random_classes(kBatch, 3);
  Floats z = random_logits(kBatch);
  const Results found = results(labels, z);
  for (std::size_t k = 0; k < 2; ++k) {
    weir::reference::expect_slopes(
        found.dz[k], z, [&] { return LossReference(labels, z).loss[k]; }, 2e-6);
  }
}

#if !WEIR_TEST_SANITIZED  // 32,771 rows, of which each is emulated by 32 threads
TEST_F(SparseLosses, OfMoreRowsThanFitTheWorkspaceHaveTheCpusBits) {
  constexpr Sparsity kBatch{(1U << 15U) + 3, 1, 500};
  const ClassLists labels = random_labels(kBatch);
  const Floats z = random_logits(kBatch);
  expect_cpus_bits(results(labels, z), labels, z);
}
#endif

TEST_F(SparseLosses, OfOneLabelARowAreTheDenseLoss) {
  constexpr weir::LogitShape kShape{5, 40};
  ClassLists labels{.classes = kShape.classes};
  Floats dense_labels;
  for (std::uint32_t i = 0; i < kShape.rows; ++i) {
    labels.indices.push_back(7 * i);
    labels.end_row();
    dense_labels.push_back(static_cast<float>(7 * i));
  }
  const Floats z = random_logits({kShape.rows, kShape.classes});
  Floats loss(1);
  Floats dz(z.size());
  weir::softmax_cross_entropy(kShape, z, dense_labels, loss);
  weir::softmax_cross_entropy_gradient(kShape, z, dense_labels, dz);
  const Results found = results(labels, z);
  EXPECT_NEAR(found.scalars[0], loss[0], 1e-6 * (1 + loss[0]));
  for (std::size_t i = 0; i < dz.size(); ++i) EXPECT_NEAR(found.dz[0][i], dz[i], 1e-7) << i;
}

TEST_F(SparseLosses, OfExtremeLogitsAreExact) {
  const ClassLists two{.classes = 3, .starts = {0, 2, 3}, .indices = {0, 1, 0}};
  const Results soft = results(two, {1e4F, -1e4F, 0, 3e38F, -3e38F, -1e4F});
  EXPECT_EQ(soft.scalars[0], 5e3F);
  EXPECT_EQ(soft.dz[0], (Floats{0.25F, -0.25F, 0, 0, 0, 0}));
  const ClassLists labels{.classes = 4, .starts = {0, 2}, .indices = {0, 1}};
  const Results found = results(labels, {3e38F, -1e4F, -3e38F, 2e4F});
  EXPECT_EQ(found.scalars[1], 3e4F);
  EXPECT_EQ(found.dz[1], (Floats{-0.0F, -1, 0, 1}));
  const Results right = results(labels, {kEndless, kEndless, -kEndless, -kEndless});
  EXPECT_EQ(right.scalars[1], 0.0F);
  EXPECT_EQ(right.dz[1], Floats(4, 0.0F));
  EXPECT_EQ(results(labels, {0, 0, kEndless, 0}).scalars[1], kEndless);
}

// At the start of a training all of many classes are improbable: together they are the loss.
TEST_F(SparseLosses, KeepWhatManyImprobableClassesAdd) {
  const ClassLists labels{.classes = 5000, .starts = {0, 0}};
  const double expected = 5000 * std::log1p(std::exp(-18.0));
  EXPECT_NEAR(results(labels, Floats(5000, -18.0F)).scalars[1], expected, 7e-6 * expected);
}

TEST_F(SparseLosses, OfARowWithoutLabelsTheSoftmaxIsNothingWhateverItsLogits) {
  const ClassLists labels{.classes = 2, .starts = {0, 0, 1, 1}, .indices = {1}};
  const Results found = results(labels, {kNan, 1, 0, 0, kEndless, 2});
  EXPECT_NEAR(found.scalars[0], std::log(2.0) / 3, 1e-7);
  const Floats& dz = found.dz[0];
  EXPECT_EQ((Floats{dz[0], dz[1], dz[4], dz[5]}), Floats(4, 0.0F));
  EXPECT_NEAR(dz[2], 1.0 / 6, 1e-7);
  EXPECT_NEAR(dz[3], -1.0 / 6, 1e-7);
}

TEST_F(SparseLosses, OfNanOrInfinityAreNanAndTouchNoOtherGradient) {
  const ClassLists labels{.classes = 2, .starts = {0, 1, 2}, .indices = {0, 1}};
  const auto softmax = [&](const Floats& z) { return results(labels, z).scalars[0]; };
  for (std::size_t at = 0; at < 4; ++at) {
    for (const float bad : {kNan, kEndless}) {
      Floats z{1, 2, 3, 4};
      z[at] = bad;
      const Results found = results(labels, z);
      EXPECT_TRUE(std::isnan(found.scalars[0]));
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(std::isnan(found.dz[0][i]), i / 2 == at / 2) << i;
        EXPECT_EQ(std::isnan(found.dz[1][i]), i == at && std::isnan(bad)) << i;
      }
      if (std::isnan(bad)) {
        EXPECT_TRUE(std::isnan(found.scalars[1]));
      }
    }
  }
  EXPECT_EQ(softmax({-kEndless, 1, 3, 4}), kEndless);
  EXPECT_TRUE(std::isfinite(softmax({1, -kEndless, 3, 4})));
  EXPECT_TRUE(std::isnan(softmax({-kEndless, -kEndless, 3, 4})));
}

// A tile of nothing but minus infinity beside one with numbers.
TEST_F(SparseLosses, OfATileOfMinusInfinityAreThoseOfTheOthers) {
  const ClassLists labels{.classes = 1030, .starts = {0, 1}, .indices = {1025}};
  Floats z(1030, -kEndless);
  std::fill_n(z.begin() + 1024, 2, 5.0F);
  const Results found = results(labels, z);
  EXPECT_NEAR(found.scalars[0], std::log(2.0), 1e-7);
  Floats expected(1030);
  expected[1024] = 0.5F;
  expected[1025] = -0.5F;
  EXPECT_EQ(found.dz[0], expected);
}

TEST_F(SparseLosses, OfNanInfinityAndZerosOfBothSignsHaveTheCpusBits) {
  constexpr Sparsity kBatch{3, 1100, 2};
  const ClassLists labels{kBatch.columns, {0, 2, 2, 3}, {7, 1050, 1099}};
  const Floats plain = random_logits(kBatch);
  std::vector<Floats> inputs{Floats(plain.size(), -kEndless)};
  for (const float bad : {kNan, kEndless, -kEndless, 1e38F, -1e38F}) {
    for (const std::size_t at : {0U, 7U, 1050U, 1100U, 3299U}) {
      inputs.push_back(plain);
      inputs.back()[at] = bad;
    }
  }
  Floats zeros(plain.size(), -0.0F);
  for (std::size_t i = 0; i < zeros.size(); i += 3) zeros[i] = 0.0F;
  inputs.push_back(zeros);
  for (const Floats& z : inputs) expect_cpus_bits(results(labels, z), labels, z);
}

TEST_F(SparseLosses, GradientsMayOverwriteTheLogits) {
  constexpr Sparsity kBatch{3, 1030, 4};
  const ClassLists labels = random_labels(kBatch);
  const Floats z = random_logits(kBatch);
  const Results expected = results(labels, z);
  const Labels own(labels);
  Array<float> softmax(z);
  softmax_gradient(own.view(), softmax.view(), Array<float>(expected.statistics).view(),
                   softmax.span());
  expect_same_bits(softmax.values(), expected.dz[0]);
  Array<float> logistic(z);
  Array<float> loss(1);
  logistic_loss_and_gradient(own.view(), logistic.view(), loss.span(), logistic.span());
  expect_same_bits(logistic.values(), expected.dz[1]);
  expect_same_bits(loss.values(), {expected.scalars[1]});
}

using CountHits = SparseLosses;

TEST_F(CountHits, CountsRowsWhoseFirstLargestLogitIsOneOfTheirLabels) {
  const auto hits = [&](const ClassLists& labels, const Floats& z) {
    return results(labels, z).scalars[3];
  };
  const Floats z{3, 1, 2, -3, -1, -2, 0, 0.5F, 1e4F, -1e4F, -2e4F, -3e4F};
  EXPECT_EQ(hits({3, {0, 2, 4, 5, 6}, {0, 1, 1, 2, 2, 0}}, z), 4.0F);
  EXPECT_EQ(hits({3, {0, 2, 4, 4, 5}, {1, 2, 0, 1, 0}}, z), 2.0F);
  EXPECT_EQ(hits({3, {0, 1, 2, 3, 4}, {2, 2, 0, 1}}, z), 0.0F);
  EXPECT_EQ(hits({4, {0, 1}, {1}}, {0, 7, 7, 7}), 1.0F);
  EXPECT_EQ(hits({4, {0, 2}, {2, 3}}, {0, 7, 7, 7}), 0.0F);
  EXPECT_EQ(hits({4, {0, 1}, {0}}, Floats(4, -kEndless)), 1.0F);
  EXPECT_EQ(hits({3, {0, 0}, {}}, {1, 2, 3}), 0.0F);
  for (std::size_t at = 0; at < 3; ++at) {
    Floats with_nan{1, 2, 3};
    with_nan[at] = kNan;
    EXPECT_EQ(hits({3, {0, 3}, {0, 1, 2}}, with_nan), 0.0F) << at;
  }
}

TEST_F(CountHits, OfRowsOfAnyLengthWithManyEqualLogitsEqualsAModel) {
  std::mt19937 engine(7);
  const auto draw = [&engine](std::uint32_t below) {
    return static_cast<std::uint32_t>(engine()) % below;
  };
  float all = 0;
  for (std::uint32_t classes = 1; classes <= 100; ++classes) {
    constexpr std::uint32_t kRows = 40;
    ClassLists labels{.classes = classes};
    Floats z;
    float expected = 0;
    for (std::uint32_t i = 0; i < kRows; ++i) {
      Floats row(classes);
      for (float& value : row) value = static_cast<float>(draw(4)) - 1;
      const bool nan = draw(8) == 0;
      const auto first = static_cast<std::uint32_t>(std::ranges::max_element(row) - row.begin());
      if (nan) row[draw(classes)] = kNan;
      labels.indices.push_back(draw(classes));
      labels.end_row();
      expected += !nan && labels.indices.back() == first ? 1.0F : 0.0F;
      z.insert(z.end(), row.begin(), row.end());
    }
    ASSERT_EQ(results(labels, z).scalars[3], expected) << classes;
    all += expected;
  }
  EXPECT_GT(all, 100.0F);
}

constexpr Sparsity kShared{9, 41, 60};

/// The classes from `first` up to, but not including, `end`.
struct ClassPart {
  ClassLists labels;
  Floats z;

  ClassPart(const ClassLists& all, const Floats& logits, std::uint32_t first, std::uint32_t end)
      : labels{.classes = end - first} {
    for (std::size_t i = 0; i < all.rows(); ++i) {
      for (std::uint32_t j = first; j < end; ++j) {
        z.push_back(logits[i * all.classes + j]);
        if (all.has(i, j)) labels.indices.push_back(j - first);
      }
      labels.end_row();
    }
  }
};

class SparseParts : public SparseLosses {
 protected:
  /// What `field` has of each of three parts of the classes, one after the other.
  Floats gathered(const ClassLists& labels, const Floats& z, Floats Results::*field) {
    Floats all;
    for (const ClassPart& part : cut(labels, z)) {
      const Results found = results(part.labels, part.z);
      all.insert(all.end(), (found.*field).begin(), (found.*field).end());
    }
    return all;
  }
  static std::vector<ClassPart> cut(const ClassLists& labels, const Floats& z) {
    return {{labels, z, 0, 5}, {labels, z, 5, 6}, {labels, z, 6, 41}};
  }
};

TEST_F(SparseParts, OfTheClassesGiveTheWholeRowsLossAndGradient) {
  const ClassLists labels = random_classes(kShared, 6);
  const Floats z = random_logits(kShared);
  const Results whole = results(labels, z);
  Array<float> merged(whole.statistics.size());
  merge_softmax_statistics(Array<float>(gathered(labels, z, &Results::statistics)).view(),
                           merged.span());
  const Floats found = merged.values();
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], whole.statistics[i], 1e-6F * (1 + std::abs(whole.statistics[i]))) << i;
  }
  std::size_t first = 0;
  std::size_t labelled_elsewhere = 0;
  for (const ClassPart& part : cut(labels, z)) {
    const Labels own(part.labels);
    Array<float> slopes(part.z.size());
    softmax_gradient(own.view(), Array<float>(part.z).view(), merged.view(), slopes.span());
    const Floats dz = slopes.values();
    const std::size_t classes = part.labels.classes;
    for (std::size_t at = 0; at < dz.size(); ++at) {
      const std::size_t i = at / classes;
      ASSERT_NEAR(dz[at], whole.dz[0][i * kShared.columns + first + at % classes], 1e-6F) << at;
      const bool none = part.labels.starts[i] == part.labels.starts[i + 1];
      if (none && dz[at] != 0) ++labelled_elsewhere;
    }
    first += classes;
  }
  EXPECT_GT(labelled_elsewhere, 0U) << "each part has labels of each row";
}

TEST_F(SparseParts, OfTheClassesGiveTheSameHits) {
  const ClassLists labels = random_classes({kShared.rows, kShared.columns, 300}, 7);
  Floats z = weir::reference::random_numbers(kShared.rows * kShared.columns, 5);
  for (float& value : z) value = std::nearbyint(value * 4) / 4;
  const auto check = [&] {
    Array<float> hits(1);
    merge_hits(Array<float>(gathered(labels, z, &Results::tops)).view(), kShared.rows, hits.span());
    EXPECT_EQ(hits.front(), results(labels, z).scalars[3]);
    return hits.front();
  };
  const float before = check();
  EXPECT_GT(before, 0.0F);
  EXPECT_LT(before, static_cast<float>(kShared.rows));
  for (std::size_t i = 0; i < kShared.rows; ++i) {
    z[i * kShared.columns + 5 * i] = kNan;  // in each part
    check();
  }
  std::ranges::fill(z, 1.0F);  // the first class of the first part is the largest
  check();
}

TEST_F(SparseParts, OfTheRowsGiveTheBatchsLossAndTheSameBitsOfItsGradient) {
  const ClassLists labels = random_classes(kShared, 8);
  const Floats z = random_logits(kShared);
  const Results whole = results(labels, z);
  const Labels own(labels);
  std::array<double, 2> sums{};
  for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, 2}, {2, 7}}) {
    SparseLabels part = own.view();
    part.starts = part.starts.subspan(first, count + 1);
    part.batch_rows = kShared.rows;
    const std::size_t begin = first * kShared.columns;
    const std::size_t size = count * kShared.columns;
    const Array<float> logits(Floats(z.data() + begin, z.data() + begin + size));
    Array<float> statistics(count * kSoftmaxStatistics);
    Array<float> loss(1);
    Array<float> slopes(size);
    const auto expect_rows_of = [&](std::size_t k) {
      expect_same_bits(slopes.values(),
                       Floats(whole.dz[k].data() + begin, whole.dz[k].data() + begin + size));
      sums[k] += static_cast<double>(loss.front());
    };
    softmax_statistics(part, logits.view(), statistics.span());
    softmax_loss(part, statistics.view(), loss.span());
    softmax_gradient(part, logits.view(), statistics.view(), slopes.span());
    expect_rows_of(0);
    logistic_loss_and_gradient(part, logits.view(), loss.span(), slopes.span());
    expect_rows_of(1);
  }
  for (std::size_t k = 0; k < 2; ++k)
    EXPECT_NEAR(sums[k], whole.scalars[k], 1e-6 * whole.scalars[k]);
}

// On a device nobody looks at the labels first.
TEST_F(SparseLosses, ALabelThatIsNoClassIsRefusedByItsPlaceOrGivesANanLossOrIsIgnored) {
  Floats z = random_logits({2, 40});
  z[3] = 100;
  const ClassLists bad{40, {0, 2, 3}, {3, 40, 5}};
  if (kOnCuda) {
    const Results expected = results({40, {0, 1, 2}, {3, 5}}, z);
    const Results found = results(bad, z);
    EXPECT_TRUE(std::isnan(found.scalars[0]));
    EXPECT_EQ(found.scalars[1], expected.scalars[1]);
    EXPECT_EQ(found.scalars[3], expected.scalars[3]);
    return;
  }
  Array<float> out(80);
  const auto message = [&](const ClassLists& labels) {
    return weir::testing::message_of<UsageError>(
        [&] { softmax_statistics(labels.view(), z, out.span().first(8)); });
  };
  EXPECT_EQ(message(bad), "softmax_statistics: label 1 is 40, expected a number below 40");
  EXPECT_EQ(message({40, {0, 2, 1}, {0, 1}}),
            "softmax_statistics: the labels' starts do not ascend");
  EXPECT_EQ(message({40, {0, 1, 3}, {0, 1}}),
            "softmax_statistics: the labels' starts do not ascend");
  EXPECT_EQ(message({40, {0, 1, 1}, {0, 1}}),
            "softmax_statistics: labels has 2 elements, expected 1");
  const auto one = out.span().first(1);
  EXPECT_THROW(logistic_loss(bad.view(), z, one), UsageError);
  EXPECT_THROW(logistic_loss_and_gradient(bad.view(), z, one, out.span()), UsageError);
  EXPECT_THROW(count_hits(bad.view(), z, one), UsageError);
  EXPECT_TRUE(out.is_unwritten());
}

TEST_F(SparseLosses, OfSizesThatDoNotFitAreRefusedAndNothingChanges) {
  const Labels lists({4, {0, 1, 2}, {0, 3}});
  const SparseLabels own = lists.view();
  SparseLabels none = own;
  none.starts = own.starts.first(1);
  SparseLabels no_classes = own;
  no_classes.classes = 0;
  SparseLabels many = own;
  many.classes = (1U << 25U) + 1;
  const Array<float> in(random(16));
  Array<float> out(8);
  const auto first = [&out](std::size_t count) { return out.span().first(count); };
  const auto z = in.view().first(8);
  const auto refused = [&](const SparseLabels& given, auto logits, std::size_t scalars,
                           std::size_t slopes) {
    EXPECT_THROW(logistic_loss_and_gradient(given, logits, first(scalars), first(slopes)),
                 UsageError);
    EXPECT_THROW(softmax_gradient(given, logits, z, first(slopes)), UsageError);
    if (slopes != 8) return;
    EXPECT_THROW(logistic_loss(given, logits, first(scalars)), UsageError);
    EXPECT_THROW(count_hits(given, logits, first(scalars)), UsageError);
  };
  refused(none, z, 1, 8);
  refused(no_classes, z.first(0), 1, 8);
  refused(many, z, 1, 8);
  refused(own, z.first(7), 1, 8);
  refused(own, z, 1, 7);
  EXPECT_THROW(logistic_loss(own, z, first(2)), UsageError);
  EXPECT_THROW(count_hits(own, z, first(2)), UsageError);
  EXPECT_THROW(top_logits(own, z, first(8)), UsageError);
  EXPECT_THROW(softmax_statistics(none, z, first(8)), UsageError);
  EXPECT_THROW(softmax_statistics(no_classes, z.first(0), first(8)), UsageError);
  EXPECT_THROW(softmax_statistics(own, z.first(7), first(8)), UsageError);
  EXPECT_THROW(softmax_statistics(own, z, first(6)), UsageError);
  EXPECT_THROW(softmax_loss(none, z.first(0), first(1)), UsageError);
  EXPECT_THROW(softmax_loss(own, z.first(6), first(1)), UsageError);
  EXPECT_THROW(softmax_loss(own, z, first(6)), UsageError);
  EXPECT_THROW(softmax_gradient(own, z, z.first(6), first(8)), UsageError);
  const auto parts = in.view();
  EXPECT_THROW(merge_softmax_statistics(parts.first(9), first(8)), UsageError);
  EXPECT_THROW(merge_softmax_statistics(parts.first(0), first(8)), UsageError);
  EXPECT_THROW(merge_softmax_statistics(parts, first(0)), UsageError);
  EXPECT_THROW(merge_softmax_statistics(parts, first(2)), UsageError);
  EXPECT_THROW(merge_hits(parts, std::size_t{3}, first(1)), UsageError);
  EXPECT_THROW(merge_hits(parts, std::size_t{0}, first(1)), UsageError);
  EXPECT_THROW(merge_hits(parts, std::size_t{4}, first(8)), UsageError);
  EXPECT_TRUE(out.is_unwritten());
}

}  // namespace
