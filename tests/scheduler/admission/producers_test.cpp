// Several producers on their own threads. Each batch fits in the budget, all together do not:
// checks who is blocked, and that nobody runs out of memory.

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/run_batch.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite

constexpr Bytes kBudget = pages(64);

struct Outcome {
  std::uint64_t out_of_memory = 0;
  AdmissionStatistics admission;
};

/// Runs `total` batches of as many producers as `each` has entries.
Outcome produce(const std::vector<Blocks>& each, std::size_t total, bool hinted) {
  Rig rig({.budget = kBudget});
  std::atomic<std::size_t> left = total;
  std::atomic<std::uint64_t> out_of_memory = 0;
  std::vector<std::future<void>> producers;
  for (const Blocks& blocks : each) {
    producers.push_back(std::async(std::launch::async, [&] {
      const std::optional<Bytes> hint = hinted ? std::optional(sum_of(blocks)) : std::nullopt;
      while (left.fetch_sub(1) - 1 < total) {
        try {
          run_batch(rig, blocks, {.hint = hint});
        } catch (const OutOfMemory&) {
          ++out_of_memory;
        }
      }
    }));
  }
  for (auto& producer : producers) producer.get();
  expect_idle(rig);
  return {out_of_memory, rig->admission()};
}

TEST(Producers, ManyInLineSleepFewTimesForEachBatch) {
  // One block on one stream: nothing awaits the device, so nobody polls by the clock.
  constexpr std::uint64_t kBatches = 2000;
  const Outcome outcome = produce(std::vector<Blocks>(64, {32}), kBatches, true);
  EXPECT_EQ(outcome.out_of_memory, 0U);
  EXPECT_GT(outcome.admission.sleeps, kBatches / 2) << "hardly anybody had to wait";
  EXPECT_LT(outcome.admission.sleeps, 4 * kBatches) << "only who becomes first is woken";
}

/// Batches of 3/8 to all of the budget: each fits alone, and hardly two together.
class ProducersInTurn : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ProducersInTurn, NeverRunOutWhereEachBatchFits) {
  const std::vector<Blocks> sizes{{16, 8}, {16, 16}, {32, 8}, {32, 16, 16}};
  std::vector<Blocks> each;
  for (std::size_t i = 0; i < GetParam(); ++i) each.push_back(sizes[i % sizes.size()]);
  for (const bool hinted : {true, false}) {
    const Outcome outcome = produce(each, 5000, hinted);
    EXPECT_EQ(outcome.out_of_memory, 0U) << "of 5000 batches, hinted: " << hinted;
    EXPECT_EQ(outcome.admission.settled, 5000U);
    EXPECT_EQ(outcome.admission.forced, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ProducersInTurn, ::testing::Values(2, 3, 6, 8),
                         ::testing::PrintToStringParamName());

TEST(Producers, AWeightOfZeroIsRefused) {
  Rig rig({.budget = kBudget});
  EXPECT_EQ(message_of<UsageError>([&] { (void)rig->begin_batch("train", {.weight = 0}); }),
            "begin_batch 'train': weight 0; allowed: 1 or more");
}

}  // namespace
}  // namespace weir
