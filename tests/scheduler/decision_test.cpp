// The admission rule of docs/architecture.md, over all small states, against a statement of it that
// is written another way.

#include <gtest/gtest.h>

#include <vector>

#include "scheduler/admission_decision.hpp"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// The rule as its sentences: each says when a batch is not admitted.
Decision stated(const AdmissionState& s, const RunAhead& run_ahead) {
  const auto held = static_cast<std::int64_t>(s.held.count);
  const auto wanted = held + static_cast<std::int64_t>(s.unspent.count + s.estimate.count);
  const bool beside_others = s.submitted > 0;
  const bool hard = beside_others && wanted > static_cast<std::int64_t>(s.budget.count);
  bool soft = false;
  if (run_ahead.batches.has_value()) {
    soft = s.submitted >= *run_ahead.batches && s.queued_time > run_ahead.time;
  }
  if (s.cancelled) return Decision::kRefuse;
  if (!s.first_in_line) return Decision::kWaitTurn;
  if (hard) return Decision::kWaitHard;
  return soft && beside_others ? Decision::kWaitSoft : Decision::kAdmit;
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
    for (unsigned flags = 0; flags < 4; ++flags) {
      for (std::uint64_t budget = 0; budget < 5; ++budget) {
        for (std::uint64_t held = 0; held < 6; ++held) {
          for (std::uint64_t unspent = 0; unspent < 6; ++unspent) {
            for (std::uint64_t estimate = 0; estimate < 6; ++estimate) {
              for (std::uint64_t submitted = 0; submitted < 5; ++submitted) {
                for (const int queued : {0, 20, 21}) {
                  const AdmissionState state{.first_in_line = (flags & 1U) != 0,
                                             .cancelled = (flags & 2U) != 0,
                                             .held = {held},
                                             .budget = {budget},
                                             .unspent = {unspent},
                                             .estimate = {estimate},
                                             .submitted = submitted,
                                             .queued_time = milliseconds(queued)};
                  ASSERT_EQ(decide(state, run_ahead), stated(state, run_ahead))
                      << format_run_ahead(run_ahead) << " flags " << flags << " budget " << budget
                      << " held " << held << " unspent " << unspent << " estimate " << estimate
                      << " submitted " << submitted << " queued " << queued << " ms";
                  ++states;
                }
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(states, 300'000U);
}

TEST(Decide, SumsThatDoNotFit64BitsAreOverTheBudget) {
  const AdmissionState state{.held = {UINT64_MAX - 1},
                             .budget = {UINT64_MAX},
                             .unspent = {UINT64_MAX},
                             .estimate = {UINT64_MAX},
                             .submitted = 1};
  EXPECT_EQ(decide(state, {}), Decision::kWaitHard);
}

TEST(Decide, WithNothingSubmittedEveryFirstInLineIsAdmitted) {
  for (const RunAhead& run_ahead : run_aheads()) {
    EXPECT_EQ(decide({.held = {9}, .budget = {1}, .estimate = {UINT64_MAX}}, run_ahead),
              Decision::kAdmit);
  }
}

TEST(SoftLimit, NeedsBothTheNumberOfBatchesAndTheTime) {
  const RunAhead both{.batches = 2, .time = milliseconds(20)};
  EXPECT_FALSE(soft_limit_reached(1, milliseconds(500), both));
  EXPECT_FALSE(soft_limit_reached(9, milliseconds(20), both));
  EXPECT_TRUE(soft_limit_reached(2, milliseconds(20) + nanoseconds(1), both));
}

TEST(SoftLimit, IsOffWithoutANumberOfBatches) {
  EXPECT_FALSE(soft_limit_reached(1000, std::chrono::hours(1), {.batches = std::nullopt}));
}

}  // namespace
}  // namespace weir
