#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

#include "allocator/base/error.hpp"
#include "trainer/sparse/sparse_reader.hpp"

namespace weir::testing {
namespace {

/// The entries of a matrix by row and column: what a dense matrix would hold, but narrower.
using Entries = std::map<std::pair<std::uint32_t, std::uint32_t>, float>;

/// Rows of up to six entries in ascending columns, some of them without any.
SparseRows random_rows(std::size_t count, std::uint64_t columns, std::uint32_t seed) {
  std::mt19937 random(seed);
  SparseRows rows;
  rows.columns = columns;
  rows.classes = 1000;
  for (std::size_t r = 0; r < count; ++r) {
    std::map<std::uint32_t, float> row;
    for (auto left = random() % 7; left > 0; --left) {
      // Half of them from few columns, so that columns have several rows.
      const std::uint64_t range = left % 2 == 0 ? columns : std::min<std::uint64_t>(columns, 9);
      row[static_cast<std::uint32_t>(columns - 1 - random() % range)] =
          static_cast<float>(random());
    }
    for (const auto& [column, value] : row) {
      rows.indices.push_back(column);
      rows.values.push_back(value);
    }
    for (std::uint32_t label = 0; label < random() % 3; ++label) {
      rows.labels.push_back(label * 100 + static_cast<std::uint32_t>(r));
    }
    rows.end_row();
  }
  return rows;
}

Entries entries_of(const SparseRows& rows) {
  Entries entries;
  for (std::uint32_t r = 0; r < rows.rows(); ++r) {
    for (std::uint64_t i = rows.starts[r]; i < rows.starts[r + 1]; ++i) {
      entries[{r, rows.indices[i]}] = rows.values[i];
    }
  }
  return entries;
}

void expect_packed(BatchPacker& packer, const SparseRows& rows) {
  const PackedSizes sizes = packer.prepare(rows);
  std::vector<float> words(packed_words(sizes));
  packer.write(rows, words);
  const SparseBatch batch = unpack(words, sizes, {rows.columns, rows.classes});

  Entries by_row;
  ASSERT_EQ(batch.rows.rows(), rows.rows());
  for (std::uint32_t r = 0; r < rows.rows(); ++r) {
    for (std::uint32_t i = batch.rows.starts[r]; i < batch.rows.starts[r + 1]; ++i) {
      by_row[{r, batch.rows.indices[i]}] = batch.rows.values[i];
    }
    EXPECT_TRUE(std::equal(rows.labels.data() + rows.label_starts[r],
                           rows.labels.data() + rows.label_starts[r + 1],
                           batch.labels.indices.data() + batch.labels.starts[r],
                           batch.labels.indices.data() + batch.labels.starts[r + 1]));
  }
  EXPECT_EQ(by_row, entries_of(rows));

  const CsrColumns& columns = batch.columns;
  Entries by_column;
  ASSERT_EQ(columns.starts.size(), columns.touched.size() + 1);
  EXPECT_EQ(columns.starts.front(), 0U);
  EXPECT_EQ(columns.starts.back(), rows.indices.size());
  for (std::size_t t = 0; t < columns.touched.size(); ++t) {
    EXPECT_TRUE(t == 0 || columns.touched[t - 1] < columns.touched[t]);
    EXPECT_LT(columns.starts[t], columns.starts[t + 1]) << "a column without entries";
    for (std::uint32_t i = columns.starts[t]; i < columns.starts[t + 1]; ++i) {
      EXPECT_TRUE(i == columns.starts[t] || columns.rows[i - 1] < columns.rows[i]);
      by_column[{columns.rows[i], columns.touched[t]}] = columns.values[i];
    }
  }
  EXPECT_EQ(by_column, entries_of(rows));
}

TEST(BatchPacker, HoldsTheSameEntriesByRowsAndByColumns) {
  // From one digit of the radix sort to three.
  BatchPacker packer;
  for (const std::uint64_t columns :
       {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{2048}, std::uint64_t{2049},
        std::uint64_t{250'000}, std::uint64_t{1} << 22U, (std::uint64_t{1} << 22U) + 1,
        kMostSparse}) {
    for (const std::size_t rows : {1U, 2U, 90U}) {
      SCOPED_TRACE(std::to_string(columns) + " columns, " + std::to_string(rows) + " rows");
      expect_packed(packer, random_rows(rows, columns, static_cast<std::uint32_t>(rows)));
    }
  }
}

TEST(BatchPacker, ABatchMayHaveNoEntriesAndNoLabels) {
  SparseRows rows;
  rows.columns = 7;
  rows.classes = 7;
  rows.end_row();
  BatchPacker packer;
  expect_packed(packer, rows);
  EXPECT_EQ(packer.prepare(rows),
            (PackedSizes{.rows = 1, .entries = 0, .touched = 0, .labels = 0}));
}

TEST(BatchPacker, RefusesNoRowsAndMemoryOfAnotherSize) {
  BatchPacker packer;
  EXPECT_THROW((void)packer.prepare(SparseRows{}), UsageError);
  const SparseRows rows = random_rows(5, 100, 1);
  std::vector<float> words(packed_words(packer.prepare(rows)) + 1);
  EXPECT_THROW(packer.write(rows, words), UsageError);
}

}  // namespace
}  // namespace weir::testing
