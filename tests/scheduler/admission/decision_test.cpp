// The two admission rules in every small state: against a second formulation of the first, from
// docs/architecture.md, and what any formulation has to keep.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <vector>

#include "scheduler/admission/admission_decision.hpp"

namespace weir {
namespace {

using std::chrono::nanoseconds;

// From the most reluctant target to none.
constexpr std::array<RunAhead, 6> kTargets{{{.batches = 1, .time = nanoseconds(0)},
                                            {.batches = 1, .time = nanoseconds(20)},
                                            {.batches = 2, .time = nanoseconds(20)},
                                            {.batches = 3, .time = nanoseconds(20)},
                                            {.batches = 9, .time = nanoseconds(21)},
                                            {.batches = std::nullopt}}};

/// Calls `visit` with every state of a few units, for the first in line.
void for_each_state(const std::function<void(const AdmissionState&)>& visit) {
  AdmissionState s;
  s.budget = {3};
  for (s.held = {}; s.held < Bytes{5}; s.held += Bytes{1}) {
    for (s.live = {}; s.live <= s.held; s.live += Bytes{1}) {
      for (s.unspent = {}; s.unspent < Bytes{4}; s.unspent += Bytes{1}) {
        for (s.estimate = {}; s.estimate < Bytes{5}; s.estimate += Bytes{1}) {
          for (s.open = 0; s.open < 3; ++s.open) {
            for (s.submitted = 0; s.submitted < 4; ++s.submitted) {
              for (const int queued : {0, 19, 20, 21}) {
                for (unsigned flags = 0; flags < 4; ++flags) {
                  s.queued = nanoseconds(queued);
                  s.yields = (flags & 1U) != 0;
                  s.grace_over = (flags & 2U) != 0;
                  visit(s);
                }
              }
            }
          }
        }
      }
    }
  }
}

std::string text_of(const AdmissionState& s) {
  return "held " + std::to_string(s.held.count) + " live " + std::to_string(s.live.count) +
         " unspent " + std::to_string(s.unspent.count) + " estimate " +
         std::to_string(s.estimate.count) + " budget " + std::to_string(s.budget.count) + " open " +
         std::to_string(s.open) + " submitted " + std::to_string(s.submitted) + " queued " +
         std::to_string(s.queued.count()) + (s.yields ? " yields" : "") +
         (s.grace_over ? " grace over" : "");
}

/// The rule as sentences: each says when a batch is not admitted.
Decision stated(const AdmissionState& s, const RunAhead& run_ahead) {
  const bool beside_others = s.submitted > 0 || s.open > 0;
  const bool beside_what_is_live = s.live + s.estimate <= s.budget;
  bool hard = beside_others && s.held + s.unspent + s.estimate > s.budget;
  if (s.open == 0 && beside_what_is_live) hard = false;
  bool soft = false;
  if (run_ahead.batches.has_value()) {
    soft = s.submitted >= *run_ahead.batches && s.queued >= run_ahead.time.value_or(nanoseconds(0));
  }
  // With fewer submitted, the device might be idle until the other producer is back.
  const std::uint64_t enough = run_ahead.batches.has_value() && *run_ahead.batches <= 2 ? 1 : 2;
  if (s.cancelled) return Decision::kRefuse;
  if (!s.first_in_line) return Decision::kWaitTurn;
  if (hard && s.submitted > 0) return Decision::kWaitHard;
  if (hard) return s.grace_over ? Decision::kForce : Decision::kWaitOpen;
  if (soft && s.submitted > 0) return Decision::kWaitSoft;
  return s.yields && s.submitted >= enough ? Decision::kWaitShare : Decision::kAdmit;
}

TEST(Decide, IsTheRuleForEverySmallState) {
  std::uint64_t states = 0;
  std::vector<RunAhead> targets(kTargets.begin(), kTargets.end());
  targets.insert(targets.end(), {RunAhead{}, {.batches = 3, .time = nanoseconds(-1)}});
  for_each_state([&](AdmissionState s) {
    for (unsigned flags = 0; flags < 4; ++flags) {
      s.first_in_line = (flags & 1U) != 0;
      s.cancelled = (flags & 2U) != 0;
      for (const RunAhead& run_ahead : targets) {
        const Decision decision = decide(s, run_ahead);
        ++states;
        if (decision == stated(s, run_ahead)) continue;
        FAIL() << format_run_ahead(run_ahead) << " flags " << flags << ": " << text_of(s) << ": "
               << static_cast<int>(decision);
      }
    }
  });
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

TEST(DecideKeeps, NobodyWaitsForWhatIsNotUnderWay) {
  std::uint64_t waits = 0;
  for_each_state([&](const AdmissionState& s) {
    for (const RunAhead& target : kTargets) {
      const Decision decision = decide(s, target);
      const bool for_device = decision == Decision::kWaitHard || decision == Decision::kWaitSoft ||
                              decision == Decision::kWaitShare;
      const bool for_open = decision == Decision::kWaitOpen;
      waits += for_device || for_open ? 1 : 0;
      if (for_device && s.submitted == 0) FAIL() << "for the device: " << text_of(s);
      if (for_open && (s.open == 0 || s.submitted != 0 || s.grace_over)) FAIL() << text_of(s);
      if (decision == Decision::kWaitTurn || decision == Decision::kRefuse) FAIL() << text_of(s);
    }
  });
  EXPECT_GT(waits, 100'000U);
}

TEST(DecideKeeps, NobodyIsAdmittedBeyondTheBudgetButByForceOrAlone) {
  std::uint64_t forced = 0;
  for_each_state([&](const AdmissionState& s) {
    const bool fits = s.held + s.unspent + s.estimate <= s.budget;
    const bool beside_live = s.open == 0 && s.live + s.estimate <= s.budget;
    const bool alone = s.open == 0 && s.submitted == 0;
    for (const RunAhead& target : kTargets) {
      const Decision decision = decide(s, target);
      if (decision == Decision::kAdmit && !fits && !beside_live && !alone) FAIL() << text_of(s);
      if (decision != Decision::kForce) continue;
      ++forced;
      if (fits || beside_live || alone || !s.grace_over || s.submitted != 0) FAIL() << text_of(s);
    }
  });
  EXPECT_GT(forced, 1000U);
}

/// Each makes a state easier in one way.
const std::vector<std::function<void(AdmissionState&)>>& easier() {
  static const std::vector<std::function<void(AdmissionState&)>> kAll{
      [](AdmissionState& s) {
        s.held = minus_or_zero(s.held, {1});
        s.live = std::min(s.live, s.held);
      },
      [](AdmissionState& s) { s.live = minus_or_zero(s.live, {1}); },
      [](AdmissionState& s) { s.unspent = minus_or_zero(s.unspent, {1}); },
      [](AdmissionState& s) { s.estimate = minus_or_zero(s.estimate, {1}); },
      [](AdmissionState& s) { s.budget += Bytes{1}; },
      [](AdmissionState& s) { s.open -= std::min<std::uint64_t>(s.open, 1); },
      [](AdmissionState& s) { s.submitted -= std::min<std::uint64_t>(s.submitted, 1); },
      [](AdmissionState& s) { s.queued -= std::min(s.queued, nanoseconds(1)); },
      [](AdmissionState& s) { s.yields = false; },
  };
  return kAll;
}

TEST(DecideKeeps, WhoIsAdmittedIsAlsoAdmittedWhereItIsEasier) {
  std::uint64_t admitted = 0;
  for_each_state([&](const AdmissionState& s) {
    for (std::size_t t = 0; t < kTargets.size(); ++t) {
      if (decide(s, kTargets.at(t)) != Decision::kAdmit) continue;
      ++admitted;
      for (const auto& change : easier()) {
        AdmissionState other = s;
        change(other);
        if (decide(other, kTargets.at(t)) != Decision::kAdmit) {
          FAIL() << text_of(s) << ", but not " << text_of(other);
        }
      }
      if (t + 1 < kTargets.size() && decide(s, kTargets.at(t + 1)) != Decision::kAdmit) {
        FAIL() << text_of(s) << ", but not with the next target after " << t;
      }
    }
  });
  EXPECT_GT(admitted, 10'000U);
}

/// Calls `visit` with every list of up to four blocked allocations of three batches or of none.
void for_each_list(std::vector<BlockedAllocation>& list,
                   const std::function<void(std::vector<BlockedAllocation>&)>& visit) {
  visit(list);
  if (list.size() == 4) return;
  for (const std::uint64_t batch :
       {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, BlockedAllocation::kOutside}) {
    for (const bool has_news : {false, true}) {
      list.push_back({.batch = batch, .has_news = has_news});
      for_each_list(list, visit);
      list.pop_back();
    }
  }
}

TEST(WhoFailsKeeps, OneFailsExactlyWhereNobodyElseCanGoOnAndItIsTheYoungest) {
  std::uint64_t failed = 0;
  std::vector<BlockedAllocation> start;
  for_each_list(start, [&](std::vector<BlockedAllocation>& list) {
    std::vector<BlockedAllocation*> pointers;
    std::set<std::uint64_t> stuck;
    bool news = false;
    std::uint64_t youngest = 0;
    for (BlockedAllocation& blocked : list) {
      pointers.push_back(&blocked);
      if (blocked.batch != BlockedAllocation::kOutside) stuck.insert(blocked.batch);
      news = news || blocked.has_news;
      youngest = std::max(youngest, blocked.batch);
    }
    for (std::uint64_t open = stuck.size(); open <= 3; ++open) {
      const BlockedAllocation* fails = who_fails(open, pointers);
      const bool somebody_runs = news || open > stuck.size();
      if (list.empty() || somebody_runs) {
        ASSERT_EQ(fails, nullptr);
      } else {
        ASSERT_NE(fails, nullptr);
        ASSERT_EQ(fails->batch, youngest);
        ++failed;
      }
    }
  });
  EXPECT_GT(failed, 100U);
}

}  // namespace
}  // namespace weir
