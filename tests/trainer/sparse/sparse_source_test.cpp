#include "trainer/sparse/sparse_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stop_token>
#include <thread>

#include "allocator/base/error.hpp"
#include "trainer/data/batches.hpp"

namespace weir::testing {
namespace {

constexpr std::size_t kSetRows = 23;
constexpr std::uint64_t kBatchRows = 5;
constexpr std::uint64_t kPerEpoch = 5;  ///< the last of three rows

/// Row i has the label i, and i + 1 entries.
std::shared_ptr<const SparseRows> numbered_set() {
  SparseRows rows;
  rows.columns = 2 * kSetRows;
  rows.classes = kSetRows;
  for (std::uint32_t i = 0; i < kSetRows; ++i) {
    for (std::uint32_t j = 0; j <= i; ++j) {
      rows.indices.push_back(i + j);
      rows.values.push_back(static_cast<float>(100 * i + j));
    }
    rows.labels.push_back(i);
    rows.end_row();
  }
  return std::make_shared<const SparseRows>(std::move(rows));
}

SparseRows batch_of(const SparseSource& source, std::uint64_t index) {
  SparseRows rows;
  source(index, rows);
  return rows;
}

TEST(ShuffledRows, EachEpochHasEachRowOnceInItsOwnOrder) {
  const auto set = numbered_set();
  const SparseSource source = shuffled_rows(set, kBatchRows, 9);
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    SparseRows all;
    for (std::uint64_t i = 0; i < kPerEpoch; ++i) {
      const SparseRows batch = batch_of(source, epoch * kPerEpoch + i);
      EXPECT_EQ(batch.rows(), i + 1 == kPerEpoch ? 3U : kBatchRows);
      EXPECT_EQ(batch.columns, set->columns);
      EXPECT_EQ(batch.classes, set->classes);
      for (std::size_t r = 0; r < batch.rows(); ++r) all.append(batch, r);
    }
    EXPECT_EQ(all.labels, epoch_order(kSetRows, 9, epoch));
    SparseRows expected;
    for (const std::uint32_t row : all.labels) expected.append(*set, row);
    EXPECT_EQ(all, expected);
    orders.insert(all.labels);
  }
  EXPECT_EQ(orders.size(), 50U);
}

TEST(ShuffledRows, ABatchDependsOnTheSeedAndItsNumberAlone) {
  const auto set = numbered_set();
  const SparseSource forward = shuffled_rows(set, kBatchRows, 9);
  std::vector<SparseRows> batches;
  for (std::uint64_t i = 0; i < 30; ++i) batches.push_back(batch_of(forward, i));
  const SparseSource backward = shuffled_rows(set, kBatchRows, 9);
  for (std::uint64_t i = 30; i-- > 0;) EXPECT_EQ(batch_of(backward, i), batches[i]) << i;
  EXPECT_NE(batch_of(shuffled_rows(set, kBatchRows, 10), 0), batches[0]);
}

TEST(ShuffledRows, ThreadsInDifferentEpochsGetTheirOwnBatches) {
  const auto set = numbered_set();
  const SparseSource source = shuffled_rows(set, kBatchRows, 9);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = t; i < 200; i += 4) {
        const std::vector<std::uint32_t> order = epoch_order(kSetRows, 9, i / kPerEpoch);
        const SparseRows batch = batch_of(source, i);
        EXPECT_TRUE(std::equal(batch.labels.begin(), batch.labels.end(),
                               order.begin() + static_cast<std::ptrdiff_t>(i % kPerEpoch * 5)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(OrderedRows, AreThoseOfTheFileAgainAndAgain) {
  const auto set = numbered_set();
  const SparseSource source = ordered_rows(*set, 20);
  for (const std::uint64_t round : {0U, 1U}) {
    EXPECT_EQ(batch_of(source, 2 * round).labels.front(), 0U);
    EXPECT_EQ(batch_of(source, 2 * round).rows(), 20U);
    EXPECT_EQ(batch_of(source, 2 * round + 1).labels, (std::vector<std::uint32_t>{20, 21, 22}));
  }
}

TEST(GeneratedRows, FollowOneAnotherFromBatchToBatch) {
  const SparseDraw draw({.columns = 90, .classes = 8, .nnz = 9}, 4);
  const SparseRows ten = batch_of(generated_rows(draw, 10), 3);
  SparseRows expected;
  for (std::uint64_t i = 30; i < 40; ++i) draw.append(i, expected);
  EXPECT_EQ(ten, expected);
  EXPECT_NE(ten, batch_of(generated_rows(draw, 10), 4));
}

TEST(GeneratedRows, EndInTheMiddleOfABatchOnceTheyAreStopped) {
  std::stop_source stop;
  SparseRows rows;
  const SparseDraw draw({.columns = 300, .classes = 20, .nnz = 8}, 2);
  const SparseSource source = generated_rows(draw, 1'000'000'000, stop.get_token());
  std::jthread stopping([&] { stop.request_stop(); });
  EXPECT_THROW(source(0, rows), Cancelled);
}

}  // namespace
}  // namespace weir::testing
