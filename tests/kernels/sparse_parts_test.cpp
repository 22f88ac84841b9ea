// Losses and hits of a batch whose classes, or whose rows, several ranks share.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/sparse/losses.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace {

using weir::kSoftmaxStatistics;
using weir::kTopLogit;
using weir::SparseLabels;
using weir::UsageError;
using weir::reference::ClassLists;
using weir::reference::kNan;
using weir::reference::random_classes;
using weir::reference::random_numbers;
using weir::reference::Sparsity;

constexpr Sparsity kBatch{9, 41, 60};

/// Quarters, so that the largest logit is sometimes there twice, in different parts too.
std::vector<float> quarters(std::size_t count) {
  std::vector<float> z = random_numbers(count, 5);
  for (float& value : z) value = std::nearbyint(value * 4) / 4;
  return z;
}

/// The classes from `first` up to, but not including, `end`.
struct ClassPart {
  ClassLists labels;
  std::vector<float> z;

  ClassPart(const ClassLists& all, const std::vector<float>& logits, std::uint32_t first,
            std::uint32_t end)
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

std::vector<ClassPart> cut(const ClassLists& labels, const std::vector<float>& z) {
  return {{labels, z, 0, 5}, {labels, z, 5, 6}, {labels, z, 6, 41}};
}

template <typename Function>
std::vector<float> gathered(const std::vector<ClassPart>& parts, std::size_t floats,
                            const Function& function) {
  std::vector<float> all;
  for (const ClassPart& part : parts) {
    std::vector<float> own(part.labels.rows() * floats, kNan);
    function(part.labels.view(), part.z, own);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

TEST(SparseParts, OfTheClassesGiveTheWholeRowsLossAndGradient) {
  const ClassLists labels = random_classes(kBatch, 6);
  const std::vector<float> z = quarters(kBatch.rows * kBatch.columns);
  std::vector<float> whole(kBatch.rows * kSoftmaxStatistics);
  weir::softmax_statistics(labels.view(), z, whole);
  std::vector<float> dz(z.size());
  weir::softmax_gradient(labels.view(), z, whole, dz);

  const std::vector<ClassPart> parts = cut(labels, z);
  std::vector<float> merged(whole.size(), kNan);
  weir::merge_softmax_statistics(gathered(parts, kSoftmaxStatistics, weir::softmax_statistics),
                                 merged);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(merged[i], whole[i], 1e-6F * (1 + std::abs(whole[i]))) << i;
  }
  std::uint32_t first = 0;
  std::size_t labelled_elsewhere = 0;
  for (const ClassPart& part : parts) {
    std::vector<float> own(part.z.size(), kNan);
    weir::softmax_gradient(part.labels.view(), part.z, merged, own);
    const std::size_t classes = part.labels.classes;
    for (std::size_t at = 0; at < own.size(); ++at) {
      const std::size_t i = at / classes;
      ASSERT_NEAR(own[at], dz[i * kBatch.columns + first + at % classes], 1e-6F) << at;
      const bool none = part.labels.starts[i] == part.labels.starts[i + 1];
      if (none && own[at] != 0) ++labelled_elsewhere;
    }
    first += static_cast<std::uint32_t>(classes);
  }
  EXPECT_GT(labelled_elsewhere, 0U) << "each part has labels of each row";
}

TEST(SparseParts, OfTheClassesGiveTheSameHits) {
  const ClassLists labels = random_classes({kBatch.rows, kBatch.columns, 300}, 7);
  std::vector<float> z = quarters(kBatch.rows * kBatch.columns);
  const auto check = [&] {
    std::array<float, 1> expected{kNan};
    weir::count_hits(labels.view(), z, expected);
    std::array<float, 1> hits{kNan};
    weir::merge_hits(gathered(cut(labels, z), kTopLogit, weir::top_logits), kBatch.rows, hits);
    EXPECT_EQ(hits[0], expected[0]);
    return hits[0];
  };
  const float before = check();
  EXPECT_GT(before, 0.0F);
  EXPECT_LT(before, static_cast<float>(kBatch.rows));
  for (std::size_t i = 0; i < kBatch.rows; ++i) {
    z[i * kBatch.columns + 5 * i] = kNan;  // in each part
    check();
  }
  std::ranges::fill(z, 1.0F);  // the first class of the first part is the largest
  check();
}

TEST(SparseParts, OfTheRowsGiveTheBatchsLossAndTheSameBitsOfItsGradient) {
  const ClassLists labels = random_classes(kBatch, 8);
  const std::vector<float> z = quarters(kBatch.rows * kBatch.columns);
  const SparseLabels all = labels.view();
  std::vector<float> statistics(kBatch.rows * kSoftmaxStatistics);
  std::array<std::array<float, 1>, 2> loss{};
  std::array<std::vector<float>, 2> dz{z, z};
  weir::softmax_statistics(all, z, statistics);
  weir::softmax_loss(all, statistics, loss[0]);
  weir::softmax_gradient(all, z, statistics, dz[0]);
  weir::logistic_loss_and_gradient(all, z, loss[1], dz[1]);

  std::array<double, 2> sums{};
  for (const auto& rows : std::vector<std::array<std::size_t, 2>>{{0, 2}, {2, 7}}) {
    const std::size_t first = rows[0];
    const std::size_t count = rows[1];
    SparseLabels part = all;
    part.starts = all.starts.subspan(first, count + 1);
    part.batch_rows = kBatch.rows;
    const auto own = std::span(z).subspan(first * kBatch.columns, count * kBatch.columns);
    std::vector<float> of_rows(count * kSoftmaxStatistics);
    std::array<std::array<float, 1>, 2> own_loss{};
    std::vector<float> slope(own.size());
    const auto expect_rows_of = [&](const std::vector<float>& expected) {
      const auto from = expected.begin() + static_cast<std::ptrdiff_t>(first * kBatch.columns);
      EXPECT_TRUE(std::equal(slope.begin(), slope.end(), from));
    };
    weir::softmax_statistics(part, own, of_rows);
    weir::softmax_loss(part, of_rows, own_loss[0]);
    weir::softmax_gradient(part, own, of_rows, slope);
    expect_rows_of(dz[0]);
    weir::logistic_loss_and_gradient(part, own, own_loss[1], slope);
    expect_rows_of(dz[1]);
    for (std::size_t k = 0; k < 2; ++k) sums[k] += static_cast<double>(own_loss[k][0]);
  }
  for (std::size_t k = 0; k < 2; ++k) EXPECT_NEAR(sums[k], loss[k][0], 1e-6 * loss[k][0]);
}

TEST(SparseParts, RefuseSizesThatDoNotFitAndLeaveTheOutputAlone) {
  const std::vector<float> parts(16, 1.0F);
  std::vector<float> out(8, 42.0F);
  const auto eight = std::span(out);
  EXPECT_THROW(weir::merge_softmax_statistics(std::span(parts).first(9), eight), UsageError);
  EXPECT_THROW(weir::merge_softmax_statistics({}, eight), UsageError);
  EXPECT_THROW(weir::merge_softmax_statistics(parts, eight.first(0)), UsageError);
  EXPECT_THROW(weir::merge_softmax_statistics(parts, eight.first(2)), UsageError);
  EXPECT_THROW(weir::merge_hits(parts, 3, eight.first(1)), UsageError);
  EXPECT_THROW(weir::merge_hits(parts, 0, eight.first(1)), UsageError);
  EXPECT_THROW(weir::merge_hits(parts, 4, eight), UsageError);
  const ClassLists labels{3, {0, 1, 2}, {0, 2}};
  const std::vector<float> z(6, 1.0F);
  EXPECT_THROW(weir::top_logits(labels.view(), z, eight), UsageError);
  EXPECT_EQ(out, std::vector<float>(8, 42.0F));
}

}  // namespace
