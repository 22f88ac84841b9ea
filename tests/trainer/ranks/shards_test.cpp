#include "trainer/ranks/shards.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using ::testing::HasSubstr;

TEST(Shards, FollowEachOtherCoverAllAndDifferByAtMostOne) {
  for (const std::uint64_t total : {0ULL, 1ULL, 3ULL, 7ULL, 250'000ULL, 200'003ULL}) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      std::uint64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Shard shard = shard_of(total, rank, ranks);
        EXPECT_EQ(shard.first, next);
        EXPECT_LE(shard_of(total, 0, ranks).count - shard.count, 1);
        next += shard.count;
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(Shards, AllReduceOfEqualSharesSendsTheLeastPossible) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const std::uint64_t floats = 840;  // divisible by each
    const std::uint64_t least =
        2 * 4 * floats * static_cast<std::uint64_t>(ranks - 1) / static_cast<std::uint64_t>(ranks);
    EXPECT_EQ(all_reduce_bytes(floats, ranks - 1, ranks), least);
  }
}

/// What the ranks send in all arrives at them: each float leaves once for its owner from every
/// other rank, and its sum leaves once for every other rank.
TEST(Shards, AllReduceSendsEachFloatTwiceForEachOtherRank) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (const std::uint64_t floats : {1ULL, 2ULL, 11ULL}) {
      std::uint64_t sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += all_reduce_bytes(floats, rank, ranks);
      EXPECT_EQ(sum, 2 * 4 * floats * static_cast<std::uint64_t>(ranks - 1));
    }
  }
}

TEST(Shards, AStepOfTheWholeNetworkExchangesLessThanTwoMebibytes) {
  for (const int ranks : {2, 4}) {
    const ModelSplit split{.inputs = 250'000,
                           .first = 1024,
                           .last = 512,
                           .outputs = 200'000,
                           .rows = 128,
                           .ranks = ranks};
    for (const bool softmax : {true, false}) {
      EXPECT_LT(model_step_bytes(split, 0, softmax), 2ULL << 20U);
    }
    EXPECT_THAT(describe_model_step(split, 0),
                HasSubstr(" = " + std::to_string(model_step_bytes(split, 0)) + " bytes"));
  }
}

TEST(Shards, TheStepsFormulaIsTheSumOfItsCalls) {
  const ModelSplit split{.inputs = 9, .first = 4, .last = 3, .outputs = 7, .rows = 5, .ranks = 2};
  // 5 x 4 and 5 x 3 reduced, 5 x 2 and 5 x 4 gathered.
  EXPECT_EQ(model_step_bytes(split, 0), 4 * (20 + 15 + 10 + 20));
  EXPECT_EQ(describe_model_step(split, 0),
            "rank 0 of 2 sends in a step: all_reduce 5 x 4 + all_gather 5 x 2 + all_gather 5 x 4 + "
            "all_reduce 5 x 3 = 260 bytes");
  EXPECT_EQ(model_step_bytes(split, 1, false), 4 * (20 + 15 + 10 + 1));
  const DataSplit data{.buckets = {7, 20}, .ranks = 2};
  EXPECT_EQ(data_step_bytes(data, 1), 4 * (7 + 20 + 2));
  EXPECT_EQ(describe_data_step(data, 0),
            "rank 0 of 2 sends in a step: all_reduce 27 in 2 buckets + all_reduce 2 = 116 bytes");
}

}  // namespace
}  // namespace weir
