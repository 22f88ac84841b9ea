// The place of each image in each epoch.

#include "trainer/data/batches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "trainer/digits.hpp"

namespace weir::testing {
namespace {

using Order = std::vector<std::uint32_t>;

Order sorted(Order order) {
  std::ranges::sort(order);
  return order;
}
Order counted(std::uint32_t count) {
  Order order(count);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

/// A set whose image i has the label i % 256 and the pixels i % 256 and i / 256.
std::shared_ptr<const DataSet> numbered_set(std::size_t count) {
  DataSet set{.train = {.count = count, .rows = 1, .columns = 2}, .test = {}, .classes = 256};
  for (std::size_t i = 0; i < count; ++i) {
    set.train.pixels.push_back(static_cast<std::uint8_t>(i % 256));
    set.train.pixels.push_back(static_cast<std::uint8_t>(i / 256));
    set.train.labels.push_back(static_cast<std::uint8_t>(i % 256));
  }
  return std::make_shared<const DataSet>(std::move(set));
}

/// The images of one batch by their numbers; their pixels and labels must match.
Order images_of(const BatchSource& source, std::uint64_t index, std::size_t rows) {
  std::vector<float> inputs(2 * rows);
  std::vector<float> labels(rows);
  source(index, inputs, labels);
  Order images;
  for (std::size_t r = 0; r < rows; ++r) {
    EXPECT_EQ(inputs[2 * r], labels[r] / 255.0F);
    images.push_back(static_cast<std::uint32_t>(labels[r]) +
                     256 * static_cast<std::uint32_t>(std::lround(inputs[2 * r + 1] * 255.0F)));
  }
  return images;
}

Order epoch_of(const BatchSource& source, std::uint64_t epoch, std::size_t count,
               std::size_t rows) {
  const BatchShape shape{.rows = rows, .inputs = 2, .targets = 1, .rows_in_all = count};
  Order images;
  const std::uint64_t batches = batches_of(count, rows);
  for (std::uint64_t i = epoch * batches; i < (epoch + 1) * batches; ++i) {
    const Order batch = images_of(source, i, shape.rows_of(i));
    images.insert(images.end(), batch.begin(), batch.end());
  }
  return images;
}

TEST(EpochOrder, IsAPermutation) {
  for (const std::uint32_t count : {1U, 2U, 3U, 64U, 603U, 60'000U}) {
    EXPECT_EQ(sorted(epoch_order(count, 1, 0)), counted(count)) << count;
  }
}

TEST(EpochOrder, DiffersByEpochAndBySeedAndIsTheSameForTheSame) {
  const Order order = epoch_order(603, 1, 0);
  EXPECT_EQ(epoch_order(603, 1, 0), order);
  EXPECT_NE(order, counted(603));
  EXPECT_NE(epoch_order(603, 1, 1), order);
  EXPECT_NE(epoch_order(603, 2, 0), order);
  EXPECT_NE(epoch_order(603, 1, std::uint64_t{1} << 32U), order);
  EXPECT_NE(epoch_order(603, 1 + (std::uint64_t{1} << 32U), 0), order);
}

TEST(EpochOrder, EveryOrderIsAsLikelyAsAnyOther) {
  // 24 orders, 2000 expected of each with a deviation of 44: five deviations to either side.
  std::map<Order, int> counts;
  for (std::uint64_t epoch = 0; epoch < 48'000; ++epoch) ++counts[epoch_order(4, 7, epoch)];
  EXPECT_EQ(counts.size(), 24U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 2000, 220);
}

TEST(ShuffledSource, EachEpochVisitsEveryImageOnceInAnOrderOfItsOwn) {
  const BatchSource source = shuffled_source(numbered_set(603), 64, 1);
  const Order first = epoch_of(source, 0, 603, 64);
  const Order second = epoch_of(source, 1, 603, 64);
  EXPECT_EQ(first, epoch_order(603, 1, 0));
  EXPECT_EQ(second, epoch_order(603, 1, 1));
  EXPECT_EQ(sorted(second), counted(603));
  EXPECT_EQ(epoch_of(source, 0, 603, 64), first) << "the same index gives the same batch";
}

TEST(ShuffledSource, PixelsAreScaledToTheUnit) {
  DataSet set{.train = {.count = 1, .rows = 1, .columns = 3}, .test = {}, .classes = 8};
  set.train.pixels = {0, 51, 255};
  set.train.labels = {7};
  std::vector<float> inputs(3);
  std::vector<float> labels(1);
  shuffled_source(std::make_shared<const DataSet>(set), 1, 1)(0, inputs, labels);
  EXPECT_EQ(inputs, (std::vector<float>{0.0F, 0.2F, 1.0F}));
  EXPECT_EQ(labels, std::vector<float>{7.0F});
}

TEST(OrderedSource, GoesThroughTheFileAndStartsAgain) {
  const std::shared_ptr<const DataSet> set = numbered_set(10);
  const BatchSource source = ordered_source(set->train, 4);
  EXPECT_EQ(epoch_of(source, 0, 10, 4), counted(10));
  EXPECT_EQ(images_of(source, 2, 2), (Order{8, 9}));
  EXPECT_EQ(images_of(source, 3, 4), (Order{0, 1, 2, 3}));
}

}  // namespace
}  // namespace weir::testing
