// The admission rule of docs/architecture.md in all small states, against a second formulation of
// it.

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "scheduler/admission/admission_decision.hpp"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// The rule as sentences: each says when a batch is not admitted.
Decision stated(const AdmissionState& s, const RunAhead& run_ahead) {
  const auto held = static_cast<std::int64_t>(s.held.count);
  const auto wanted = held + static_cast<std::int64_t>(s.unspent.count + s.estimate.count);
  const bool beside_others = s.submitted > 0 || s.open > 0;
  const bool beside_what_is_live = s.live.count + s.estimate.count <= s.budget.count;
  bool hard = beside_others && wanted > static_cast<std::int64_t>(s.budget.count);
  if (s.open == 0 && beside_what_is_live) hard = false;
  bool soft = false;
  if (run_ahead.batches.has_value()) {
    soft = s.submitted >= *run_ahead.batches && s.queued >= run_ahead.time.value_or(nanoseconds(0));
  }
  if (s.cancelled) return Decision::kRefuse;
  if (!s.first_in_line) return Decision::kWaitTurn;
  if (hard && s.submitted > 0) return Decision::kWaitHard;
  if (hard) return s.grace_over ? Decision::kForce : Decision::kWaitOpen;
  return soft && s.submitted > 0 ? Decision::kWaitSoft : Decision::kAdmit;
}

const std::vector<RunAhead>& run_aheads() {
  static const std::vector<RunAhead> kAll{
      {},
      {.batches = std::nullopt},
      {.batches = 1, .time = nanoseconds(-1)},
      {.batches = 3, .time = nanoseconds(-1)},
      {.batches = 1, .time = milliseconds(20)},
  };
  return kAll;
}

TEST(Decide, IsTheRuleForEverySmallState) {
  std::uint64_t states = 0;
  for (const RunAhead& run_ahead : run_aheads()) {
    for (std::uint64_t held = 0; held < 5; ++held) {
      for (std::uint64_t live = 0; live <= held; ++live) {
        for (std::uint64_t unspent = 0; unspent < 4; ++unspent) {
          for (std::uint64_t estimate = 0; estimate < 5; ++estimate) {
            for (std::uint64_t open = 0; open < 3; ++open) {
              for (std::uint64_t submitted = 0; submitted < 4; ++submitted) {
                for (const int queued : {0, 19, 20}) {
                  for (unsigned flags = 0; flags < 8; ++flags) {
                    const AdmissionState state{.first_in_line = (flags & 1U) != 0,
                                               .cancelled = (flags & 2U) != 0,
                                               .grace_over = (flags & 4U) != 0,
                                               .held = {held},
                                               .budget = {3},
                                               .live = {live},
                                               .unspent = {unspent},
                                               .estimate = {estimate},
                                               .open = open,
                                               .submitted = submitted,
                                               .queued = milliseconds(queued)};
                    const Decision decision = decide(state, run_ahead);
                    ++states;
                    if (decision == stated(state, run_ahead)) continue;
                    FAIL() << format_run_ahead(run_ahead) << " flags " << flags << " held " << held
                           << " live " << live << " unspent " << unspent << " estimate " << estimate
                           << " open " << open << " submitted " << submitted << " queued " << queued
                           << " ms: " << static_cast<int>(decision);
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(states, 400'000U);
}

TEST(Decide, SumsThatDoNotFit64BitsAreOverTheBudget) {
  const AdmissionState state{.held = {UINT64_MAX - 1},
                             .budget = {UINT64_MAX},
                             .live = {UINT64_MAX - 1},
                             .unspent = {UINT64_MAX},
                             .estimate = {UINT64_MAX},
                             .open = 1,
                             .submitted = 1};
  EXPECT_EQ(decide(state, {}), Decision::kWaitHard);
}

TEST(Decide, WithNothingSubmittedAndNoBatchOpenEveryFirstInLineIsAdmitted) {
  for (const RunAhead& run_ahead : run_aheads()) {
    EXPECT_EQ(decide({.held = {9}, .budget = {1}, .estimate = {UINT64_MAX}}, run_ahead),
              Decision::kAdmit);
  }
}

TEST(Decide, ABatchThatIsOpenKeepsWhatItWasPromisedThoughNothingIsSubmitted) {
  const AdmissionState state{
      .held = {1}, .budget = {4}, .unspent = {1}, .estimate = {3}, .open = 1};
  EXPECT_EQ(decide(state, {}), Decision::kWaitOpen);
  AdmissionState later = state;
  later.grace_over = true;
  EXPECT_EQ(decide(later, {}), Decision::kForce);
  later.unspent = {};
  EXPECT_EQ(decide(later, {}), Decision::kAdmit) << "there is room: nothing is forced";
}

std::optional<std::uint64_t> failing(std::uint64_t open, std::vector<BlockedAllocation> blocked) {
  std::vector<BlockedAllocation*> list;
  for (BlockedAllocation& allocation : blocked) list.push_back(&allocation);
  const BlockedAllocation* fails = who_fails(open, list);
  return fails == nullptr ? std::nullopt : std::optional(fails->batch);
}

TEST(WhoFails, NobodyWhileABatchRuns) {
  EXPECT_EQ(failing(2, {{.batch = 1}}), std::nullopt);
  EXPECT_EQ(failing(3, {{.batch = 1}, {.batch = 2}}), std::nullopt);
  EXPECT_EQ(failing(2, {{.batch = 1}, {.batch = 1}}), std::nullopt) << "two threads of one batch";
  EXPECT_EQ(failing(0, {}), std::nullopt);
}

TEST(WhoFails, TheYoungestWhereAllOpenBatchesAreBlocked) {
  EXPECT_EQ(failing(1, {{.batch = 7}}), 7U);
  EXPECT_EQ(failing(3, {{.batch = 2}, {.batch = 9}, {.batch = 4}}), 9U);
}

TEST(WhoFails, NobodyWhileOneHasYetToLookAtItsNews) {
  EXPECT_EQ(failing(2, {{.batch = 1, .has_news = true}, {.batch = 2}}), std::nullopt);
}

TEST(WhoFails, WorkOutsideAnyBatchIsTheYoungest) {
  constexpr std::uint64_t kOutside = BlockedAllocation::kOutside;
  EXPECT_EQ(failing(0, {{.batch = kOutside}}), kOutside);
  EXPECT_EQ(failing(1, {{.batch = kOutside}, {.batch = 1}}), kOutside);
  EXPECT_EQ(failing(1, {{.batch = kOutside}}), std::nullopt) << "a batch still runs";
}

TEST(Decide, ABatchYieldsOnlyWhileTheDeviceHasWork) {
  const auto yielding = [](std::uint64_t submitted) {
    return AdmissionState{.yields = true, .budget = {1}, .submitted = submitted};
  };
  const RunAhead bytes_alone{.batches = std::nullopt};
  EXPECT_EQ(decide(yielding(0), bytes_alone), Decision::kAdmit);
  EXPECT_EQ(decide(yielding(1), bytes_alone), Decision::kAdmit);
  EXPECT_EQ(decide(yielding(2), bytes_alone), Decision::kWaitShare);
  for (const std::uint64_t most : {1U, 2U}) {  // no second batch may be queued for it
    const RunAhead run_ahead{.batches = most, .time = milliseconds(20)};
    EXPECT_EQ(decide(yielding(0), run_ahead), Decision::kAdmit);
    EXPECT_EQ(decide(yielding(1), run_ahead), Decision::kWaitShare);
  }
}

TEST(SoftLimit, NeedsBothTheNumberOfBatchesAndTheTime) {
  const RunAhead both{.batches = 2, .time = milliseconds(20)};
  EXPECT_FALSE(soft_limit_reached(1, milliseconds(500), both));
  EXPECT_FALSE(soft_limit_reached(9, milliseconds(20) - nanoseconds(1), both));
  EXPECT_TRUE(soft_limit_reached(2, milliseconds(20), both));
}

TEST(SoftLimit, IsOffWithoutANumberOfBatches) {
  EXPECT_FALSE(soft_limit_reached(1000, std::chrono::hours(1), {.batches = std::nullopt}));
}

}  // namespace
}  // namespace weir
