// What each rank of a wide run has and sends.

#include "trainer/wide/wide_ranks.hpp"

#include <gmock/gmock.h>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "trainer/ranks/open.hpp"
#include "trainer/ranks/shards.hpp"
#include "trainer/wide/wide_agreement.hpp"
#include "trainer/wide/wide_jobs.hpp"

namespace weir::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::size_t> kWhole{250'000, 1024, 512, 200'000};

TEST(WideRanks, TheWholeNetworksStepsAreThoseOfThePage) {
  WideSplit split{.widths = kWhole, .rows = 128, .parallel = Parallel::kModel, .ranks = 2};
  EXPECT_EQ(step_bytes(split, 128), 789'504U);
  split.ranks = 4;
  EXPECT_EQ(step_bytes(split, 128), 1'188'864U);
  split.parallel = Parallel::kData;
  split.bucket = kDefaultBucket;
  EXPECT_EQ(step_bytes(split, 128), 619'541'392U);
  split.ranks = 2;
  EXPECT_EQ(step_bytes(split, 128), 413'027'592U);
  EXPECT_THAT(describe_step(split), HasSubstr(" in 3 buckets + all_reduce 2 = 413027592 bytes"));
}

TEST(WideRanks, ReduceFromTheLastLayerOnAndTheFirstOnesFactor) {
  EXPECT_THAT(reduced_sizes({60, 12, 8, 30}, 6),
              ElementsAre(Bytes{30 * 4}, Bytes{8 * 30 * 4}, Bytes{8 * 4}, Bytes{12 * 8 * 4},
                          Bytes{12 * 4}, Bytes{6 * 12 * 4}));
}

/// The last batch of an epoch goes in the buckets of a whole one.
TEST(WideRanks, AShortBatchSendsLess) {
  const WideSplit split{.widths = {60, 12, 8, 30},
                        .rows = 6,
                        .parallel = Parallel::kData,
                        .bucket = {400},
                        .ranks = 2};
  const auto reduce = [](std::uint64_t floats) { return all_reduce_bytes(floats, 0, 2); };
  // 120 bytes; 960; 32; 384; 48 and 288.
  const std::uint64_t same = reduce(2) + reduce(30) + reduce(240) + reduce(8) + reduce(96);
  EXPECT_EQ(step_bytes(split, 6), same + reduce(12 + 72));
  EXPECT_EQ(step_bytes(split, 3), same + reduce(12 + 36));
}

TEST(WideRanks, APartHasItsColumnsAndLabelsCountedFromItsFirst) {
  const WideSettings settings = tiny_wide();
  SparseRows all;
  settings.training_source()(3, all);
  std::size_t entries = 0;
  std::size_t labels = 0;
  for (const Shard inputs : {Shard{.first = 0, .count = 25}, Shard{.first = 25, .count = 35}}) {
    const Shard outputs{.first = inputs.first / 2, .count = inputs.first == 0 ? 12U : 18U};
    SparseRows part;
    part_of_columns(settings.training_source(), inputs, outputs)(3, part);
    ASSERT_EQ(part.rows(), all.rows());
    EXPECT_EQ(part.columns, inputs.count);
    EXPECT_EQ(part.classes, outputs.count);
    for (std::size_t r = 0; r < all.rows(); ++r) {
      std::size_t next = part.starts[r];
      for (std::size_t e = all.starts[r]; e < all.starts[r + 1]; ++e) {
        const std::uint32_t column = all.indices[e];
        if (column < inputs.first || column >= inputs.first + inputs.count) continue;
        ASSERT_LT(next, part.starts[r + 1]);
        EXPECT_EQ(part.indices[next], column - inputs.first);
        EXPECT_EQ(part.values[next++], all.values[e]);
      }
      EXPECT_EQ(next, part.starts[r + 1]);
    }
    for (const std::uint32_t label : part.labels) EXPECT_LT(label, outputs.count);
    entries += part.indices.size();
    labels += part.labels.size();
  }
  EXPECT_EQ(entries, all.indices.size());
  EXPECT_EQ(labels, all.labels.size());
}

/// The code of several ranks, with one.
TEST(WideRanks, OneRankTrainsAsOneProcess) {
  WideSettings settings = tiny_wide();
  const WideResult alone = train_to_weights(settings);
  const auto ranks = open_communicator({}, {}, {});
  for (const Parallel parallel : {Parallel::kData, Parallel::kModel}) {
    SCOPED_TRACE(to_string(parallel));
    settings.parallel = std::optional<Parallel>(parallel);
    const WideResult one =
        finished(train_wide(settings, {.read_weights = true, .ranks = ranks.get()}));
    EXPECT_EQ(one.run.weights, alone.run.weights);
    EXPECT_EQ(one.run.mean_loss, alone.run.mean_loss);
    EXPECT_EQ(one.hit_share, alone.hit_share);
    EXPECT_EQ(one.run.test_accuracy, alone.run.test_accuracy);
    EXPECT_EQ(one.ranks->sent, 0U);
  }
}

TEST(WideRanks, RefuseABatchOfAnEpochsEndThatHasTooFewRows) {
  WideSettings settings = tiny_wide();
  settings.parallel = std::optional<Parallel>(Parallel::kData);
  auto data = std::make_shared<SparseSet>();
  for (int row = 0; row < 14; ++row) data->train.end_row();  // batches of 6, 6 and 2
  settings.data = data;
  settings.data_directory = {"somewhere", "--data"};
  require_ranks(settings, 2);
  EXPECT_EQ(message_of<UsageError>([&] { require_ranks(settings, 3); }),
            "--data: the last batch of an epoch has 2 rows, but --parallel data needs at least a "
            "row for each of the 3 ranks: give another --batch-size");
}

}  // namespace
}  // namespace weir::testing
