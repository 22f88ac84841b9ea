// The rules of admission in every small state of two and three producers. The search must also find
// the faults of other rules.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "scheduler/admission/admission_model.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite

constexpr unsigned kRoom = AdmissionModel::kBudget;

/// A batch that allocates the positive `amounts` and frees the negative ones.
ModelBatch batch_of(const std::vector<int>& amounts) {
  ModelBatch batch{.steps = {{ModelStep::kBegin}}};
  for (const int amount : amounts) {
    const auto size = static_cast<std::uint8_t>(amount < 0 ? -amount : amount);
    batch.steps.push_back({amount < 0 ? ModelStep::kGive : ModelStep::kTake, size});
  }
  batch.steps.push_back({ModelStep::kClose});
  batch.estimate = batch.peak();
  return batch;
}

/// Batches that fit in the budget: from a quarter to all of it, at once, in steps, and with memory
/// that is freed and allocated again.
const std::vector<ModelBatch>& fitting() {
  static const std::vector<ModelBatch> kAll{
      batch_of({1, -1}), batch_of({2, -2}),        batch_of({1, 1, -2}), batch_of({3, -3}),
      batch_of({4, -4}), batch_of({2, -1, 2, -3}), batch_of({2, 2, -4}),
  };
  return kAll;
}

constexpr std::array<RunAheadTarget, 3> kSearched{
    {{{.batches = 2}}, {{.batches = 3}}, {{.batches = std::nullopt}}}};

/// Every choice of as many producers from `batches`; order does not matter.
ModelFindings search_all(const std::vector<ModelBatch>& batches, std::size_t producers,
                         unsigned rounds, const ModelRules& rules = {}) {
  ModelFindings all;
  const auto choose = [&](const auto& self, const std::vector<ModelBatch>& chosen,
                          std::size_t from) -> void {
    if (chosen.size() == producers) {
      for (const RunAheadTarget& target : kSearched) {
        all += AdmissionModel(chosen, rounds, target, rules).search();
      }
      return;
    }
    for (std::size_t i = from; i < batches.size(); ++i) {
      std::vector<ModelBatch> more = chosen;
      more.push_back(batches[i]);
      self(self, more, i);
    }
  };
  choose(choose, {}, 0);
  return all;
}

/// Some that fit, some with too low and some with too high an estimate, and one that is too big.
std::vector<ModelBatch> of_all_sorts() {
  std::vector<ModelBatch> batches{batch_of({3, -3}), batch_of({2, -1, 2, -3}),
                                  batch_of({3, 2, -5})};
  batches.back().estimate = 2;
  for (const unsigned estimate : {0U, 1U, kRoom + 2}) {
    for (const ModelBatch& batch : {batch_of({1, 1, -2}), batch_of({2, 2, -4})}) {
      batches.push_back(batch);
      batches.back().estimate = estimate;
    }
  }
  return batches;
}

void expect_nobody_runs_out(const ModelFindings& found) {
  EXPECT_GT(found.states, 10'000U);
  EXPECT_EQ(found.out_of_memory, 0U);
  EXPECT_EQ(found.graces + found.forced, 0U) << "and nobody needs a grace for it";
  EXPECT_EQ(found.stuck, 0U);
}

void expect_nothing_stuck(const ModelFindings& found) {
  EXPECT_GT(found.states, 10'000U);
  EXPECT_GT(found.out_of_memory, 0U) << "nothing was tight";
  EXPECT_EQ(found.oldest_failed, 0U) << "the oldest gets through if it fits";
  EXPECT_EQ(found.graces + found.forced, 0U) << "what can be decided is decided at once";
  EXPECT_EQ(found.stuck, 0U);
}

TEST(Invariant3, NoBatchThatFitsAndIsEstimatedTruthfullyRunsOutInAnySmallState) {
  expect_nobody_runs_out(search_all(fitting(), 2, 2));
  expect_nobody_runs_out(search_all(fitting(), 3, 1));
  expect_nobody_runs_out(search_all({batch_of({2, -2}), batch_of({3, -1, 1, -3})}, 3, 2));
}

TEST(AdmissionSearch, NoSmallStateIsStuckWhateverTheEstimates) {
  expect_nothing_stuck(search_all(of_all_sorts(), 2, 2));
  expect_nothing_stuck(search_all(of_all_sorts(), 3, 1));
}

TEST(AdmissionSearch, ABatchThatNeedsAnotherProducersIsForcedInAndNoStateIsStuck) {
  // Each of the first producer's batches allocates its memory, then needs one of the second's.
  ModelBatch waits = batch_of({2, -2});
  waits.steps.insert(waits.steps.begin() + 2, {ModelStep::kPop});
  for (const ModelBatch& other : {batch_of({2, -2}), batch_of({3, -3})}) {
    const ModelFindings found = AdmissionModel({waits, other}, 2, kSearched.front()).search();
    EXPECT_EQ(found.stuck, 0U);
    EXPECT_EQ(found.forced != 0, other.peak() == 3) << "only where both do not fit";
    EXPECT_EQ(found.out_of_memory != 0, other.peak() == 3);
  }
}

/// Admits whenever nothing is submitted, and ignores promises to open batches.
Decision forgets_open_batches(const AdmissionState& state, const RunAheadTarget& target) {
  AdmissionState seen = state;
  seen.open = 0;
  return decide(seen, target);
}

/// Fails nobody: each waits for its grace.
BlockedAllocation* nobody(std::uint64_t /*open*/, std::span<BlockedAllocation* const> /*all*/) {
  return nullptr;
}

/// The oldest open batch fails as soon as it is blocked, and the others wait for their grace.
BlockedAllocation* the_oldest(std::uint64_t /*open*/, std::span<BlockedAllocation* const> all) {
  const auto oldest = std::ranges::find(all, 1U, &BlockedAllocation::batch);
  return oldest == all.end() ? nullptr : *oldest;
}

TEST(AdmissionSearch, FindsThatARuleWhichForgetsOpenBatchesRunsOut) {
  const ModelRules rules{.may_start = forgets_open_batches};
  EXPECT_GT(search_all(fitting(), 2, 1, rules).out_of_memory, 0U);
  const ModelRules both{.may_start = forgets_open_batches, .fails = the_oldest};
  EXPECT_GT(search_all({batch_of({2, -2})}, 3, 1, both).oldest_failed, 0U)
      << "three of half the budget";
}

TEST(AdmissionSearch, FindsThatARuleWhichLetsNobodyFailNeedsTheGrace) {
  const ModelFindings found = search_all(of_all_sorts(), 2, 1, {.fails = nobody});
  EXPECT_GT(found.graces, 0U);
}

TEST(AdmissionSearch, FindsThatTheOldestDoesNotGetThroughWhereItIsTheOneToFail) {
  const ModelFindings found = search_all(of_all_sorts(), 2, 1, {.fails = the_oldest});
  EXPECT_GT(found.oldest_failed, 0U);
}

}  // namespace
}  // namespace weir
