#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <stop_token>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "trainer/sparse/sparse_set.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

constexpr SparseShape kSmall{.columns = 300, .classes = 10, .nnz = 30, .most_labels = 3};

SparseRows drawn(const SparseDraw& draw, std::uint64_t first, std::uint64_t count) {
  SparseRows rows;
  for (std::uint64_t i = first; i < first + count; ++i) draw.append(i, rows);
  return rows;
}

TEST(MakeSparse, WritesTheDrawnRows) {
  const TemporaryDirectory directory;
  const SparseDraw draw(kSmall, 7);
  make_sparse("--make", directory.file("new/set"), 205, draw);
  const SparseSet set = read_sparse_set("--data", directory.file("new/set"), {});
  EXPECT_EQ(set.train, drawn(draw, 0, 205));
  EXPECT_EQ(set.test, drawn(draw, 205, 20)) << "other rows than those to train on";
}

TEST(MakeSparse, TheSameSeedGivesTheSameBytesAndAnotherOneOthers) {
  const TemporaryDirectory directory;
  const auto bytes = [&](std::uint64_t seed) {
    make_sparse("--make", directory.file(""), 50, SparseDraw(kSmall, seed));
    return read_file(directory.file(kSparseTrainFile)) + read_file(directory.file(kSparseTestFile));
  };
  const std::string first = bytes(1);
  EXPECT_NE(first, bytes(2));
  EXPECT_EQ(first, bytes(1));
}

TEST(MakeSparse, RefusesWhatCannotBeMade) {
  const TemporaryDirectory directory;
  write_file(directory.file("file"), "");
  const SparseDraw draw(kSmall, 1);
  for (const char* path : {"file", "file/below"}) {
    EXPECT_THROW(make_sparse("--make", directory.file(path), 1, draw), UsageError) << path;
  }
  EXPECT_THROW(make_sparse("--make", directory.file(""), 0, draw), UsageError);
  EXPECT_EQ(message_of<UsageError>([] { SparseDraw({.columns = 0, .classes = 1, .nnz = 1}, 1); }),
            "made rows: expected inputs from 1 to 67108864, found 0");
  EXPECT_EQ(message_of<UsageError>([] { SparseDraw({.columns = 30, .classes = 9, .nnz = 21}, 1); }),
            "made rows: expected entries a row from 1 to 20, found 21");
  EXPECT_EQ(message_of<UsageError>([] { SparseDraw({.columns = 9, .classes = 2, .nnz = 1}, 1); }),
            "made rows: expected labels a row from 1 to 2, found 3");
}

TEST(MakeSparse, LeavesNothingBehindWhenItIsStopped) {
  const TemporaryDirectory directory;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(
      make_sparse("--make", directory.file("set"), 1000, SparseDraw(kSmall, 1), stop.get_token()),
      Cancelled);
  EXPECT_TRUE(std::filesystem::is_empty(directory.file("set")));
}

TEST(SparseDraw, RowsAreValidForTheSmallestAndForFullRows) {
  for (const SparseShape& shape :
       {SparseShape{.columns = 1, .classes = 1, .nnz = 1, .most_labels = 1},
        SparseShape{.columns = 3, .classes = 3, .nnz = 2, .most_labels = 3},
        SparseShape{.columns = 30, .classes = 4, .nnz = 20, .most_labels = 4},
        SparseShape{.columns = 100'000, .classes = 70'000, .nnz = 50, .most_labels = 2}}) {
    const SparseRows rows = drawn(SparseDraw(shape, 3), 0, 200);
    ASSERT_EQ(rows.rows(), 200U);
    for (std::size_t r = 0; r < rows.rows(); ++r) {
      const std::span entries(rows.indices.data() + rows.starts[r],
                              rows.indices.data() + rows.starts[r + 1]);
      EXPECT_GE(entries.size(), shape.nnz - shape.nnz / 2);
      EXPECT_LE(entries.size(), shape.nnz + shape.nnz / 2);
      EXPECT_TRUE(std::ranges::is_sorted(entries, std::less_equal<>()) || entries.size() == 1);
      EXPECT_LT(entries.back(), shape.columns);
      const std::span labels(rows.labels.data() + rows.label_starts[r],
                             rows.labels.data() + rows.label_starts[r + 1]);
      EXPECT_GE(labels.size(), 1U);
      EXPECT_LE(labels.size(), shape.most_labels);
      EXPECT_EQ(std::ranges::adjacent_find(labels, std::greater_equal<>()), labels.end());
      EXPECT_LT(labels.back(), shape.classes);
    }
    EXPECT_TRUE(std::ranges::all_of(rows.values, [](float v) { return v > 0 && v <= 1; }));
  }
}

TEST(SparseDraw, RowsHaveTheMeanEntriesAndAFewColumnsHaveMostOfThem) {
  const SparseRows rows =
      drawn(SparseDraw({.columns = 20'000, .classes = 100, .nnz = 100}, 5), 0, 1000);
  EXPECT_NEAR(static_cast<double>(rows.indices.size()) / 1000, 100, 3);
  std::vector<std::size_t> uses(rows.columns);
  for (const std::uint32_t column : rows.indices) ++uses[column];
  std::ranges::sort(uses, std::greater<>());
  const std::size_t of_200 = std::accumulate(uses.begin(), uses.begin() + 200, std::size_t{0});
  EXPECT_GT(of_200 * 10, rows.indices.size() * 3) << "a hundredth of the columns";
  EXPECT_GT(static_cast<std::size_t>(std::ranges::count_if(uses, [](auto u) { return u > 0; })),
            rows.columns / 4)
      << "and many are in use";
}

/// A linear model, trained by the perceptron's rule on each label by itself (F. Rosenblatt, 1958).
class Perceptron {
 public:
  explicit Perceptron(const SparseRows& rows)
      : rows_(rows), weights_(rows.classes, std::vector<float>(rows.columns)) {}

  void learn(std::size_t row) {
    for (std::size_t c = 0; c < rows_.classes; ++c) {
      const bool has = has_label(row, c);
      if (has == (score(row, c) > 0)) continue;
      for (std::uint64_t i = rows_.starts[row]; i < rows_.starts[row + 1]; ++i) {
        weights_[c][rows_.indices[i]] += has ? rows_.values[i] : -rows_.values[i];
      }
    }
  }
  /// Returns whether the class of the best score is one of the row's labels.
  [[nodiscard]] bool is_right(std::size_t row) const {
    std::size_t best = 0;
    for (std::size_t c = 1; c < rows_.classes; ++c) {
      if (score(row, c) > score(row, best)) best = c;
    }
    return has_label(row, best);
  }
  [[nodiscard]] bool has_label(std::size_t row, std::size_t label) const {
    return std::find(rows_.labels.data() + rows_.label_starts[row],
                     rows_.labels.data() + rows_.label_starts[row + 1],
                     label) != rows_.labels.data() + rows_.label_starts[row + 1];
  }

 private:
  [[nodiscard]] float score(std::size_t row, std::size_t c) const {
    float sum = 0;
    for (std::uint64_t i = rows_.starts[row]; i < rows_.starts[row + 1]; ++i) {
      sum += weights_[c][rows_.indices[i]] * rows_.values[i];
    }
    return sum;
  }

  const SparseRows& rows_;
  std::vector<std::vector<float>> weights_;
};

TEST(SparseDraw, LabelsCanBeLearned) {
  constexpr std::size_t kTrain = 1000;
  constexpr std::size_t kTest = 300;
  const SparseRows rows = drawn(SparseDraw(kSmall, 11), 0, kTrain + kTest);
  Perceptron model(rows);
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (std::size_t row = 0; row < kTrain; ++row) model.learn(row);
  }
  std::size_t right = 0;
  std::size_t with_most_frequent = 0;
  for (std::size_t row = kTrain; row < kTrain + kTest; ++row) {
    right += model.is_right(row) ? 1U : 0U;
    with_most_frequent += model.has_label(row, 0) ? 1U : 0U;
  }
  EXPECT_LT(with_most_frequent, kTest * 6 / 10);
  EXPECT_GT(right, kTest * 8 / 10) << "always saying class 0 gives " << with_most_frequent;
}

}  // namespace
}  // namespace weir::testing
