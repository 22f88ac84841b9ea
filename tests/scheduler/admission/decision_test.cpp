// The two admission rules in every small state: against a second formulation of the first, from
// docs/architecture.md, and what any formulation has to keep.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <tuple>
#include <vector>

#include "scheduler/admission/admission_decision.hpp"

namespace weir {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint64_t kMany = UINT64_MAX;
// From the most reluctant target to none.
constexpr std::array<RunAheadTarget, 8> kTargets{
    {{{.batches = 1, .time = nanoseconds(0)}, kMany, true},
     {{.batches = 1, .time = nanoseconds(20)}, 2, true},
     {{.batches = 2, .time = nanoseconds(20)}, 3, true},
     {{.batches = 3, .time = nanoseconds(20)}, 4, true},
     {{.batches = 3, .time = nanoseconds(20)}, 4, false},
     {{.batches = 3, .time = nanoseconds(20)}, kMany, false},
     {{.batches = 9, .time = nanoseconds(21)}, kMany, false},
     {{.batches = std::nullopt}, kMany, false}}};

/// Calls `visit` with every state of a few amounts of memory, for the first in line.
void for_each_state(const std::function<void(const AdmissionState&)>& visit) {
  using Values = std::vector<std::uint64_t>;
  for (const auto& [budget, bytes] :
       {std::pair{3U, Values{0, 1, 2, 3, 4}}, std::pair{16U, Values{0, 2, 8, 16}}}) {
    for (std::uint64_t i = 0, left = 0; left == 0; ++i) {
      left = i;
      const auto one_of = [&left](const Values& values) {
        const std::uint64_t value = values[left % values.size()];
        left /= values.size();
        return value;
      };
      const AdmissionState s{.grace_over = one_of({0, 1}) != 0,
                             .is_due = one_of({0, 1}) != 0,
                             .pressure = {.held = {one_of(bytes)}, .budget = {budget}},
                             .live = {one_of(bytes)},
                             .unspent = {one_of(bytes)},
                             .estimate = {one_of(bytes)},
                             .open = one_of({0, 1}),
                             .submitted = one_of({0, 1, 2, 3}),
                             .queued = nanoseconds(one_of({0, 3, 19, 20})),
                             .takes = nanoseconds(one_of({31, 64}))};
      const bool is_queued = s.submitted != 0 || s.queued.count() == 0;
      if (left == 0 && s.live <= s.pressure.held && is_queued) visit(s);
    }
  }
}

std::string text_of(const AdmissionState& s) {
  const auto text = [](const auto&... values) { return ((std::to_string(values) + " ") + ...); };
  return "held, live, unspent, estimate, budget: " +
         text(s.pressure.held.count, s.live.count, s.unspent.count, s.estimate.count,
              s.pressure.budget.count) +
         "open, submitted, queued, takes, is due, grace over: " +
         text(s.open, s.submitted, s.queued.count(), s.takes.count(), s.is_due, s.grace_over);
}

/// The rule as sentences: each says when a batch is not admitted.
Decision stated(const AdmissionState& s, const RunAheadTarget& target) {
  const std::uint64_t in_flight = s.submitted + s.open;
  const bool beside_what_is_live = s.live + s.estimate <= s.pressure.budget;
  bool hard = in_flight > 0 && s.pressure.held + s.unspent + s.estimate > s.pressure.budget;
  if (s.open == 0 && beside_what_is_live) hard = false;
  bool soft = in_flight >= target.most;
  bool share = false;
  if (const auto batches = target.limit.batches) {
    const auto time = target.limit.time.value_or(nanoseconds(0)).count();
    soft = soft || (in_flight >= *batches && s.queued.count() >= time);
    share = (time >= 2 && s.queued.count() > time / 2) ||
            (s.queued.count() >= 4 && s.takes.count() >= 32);
  }
  if (target.half_of_room && in_flight > 1) {
    const Bytes room = s.live < s.pressure.budget ? s.pressure.budget - s.live : Bytes{};
    const Bytes beside_live = s.pressure.held + s.unspent + s.estimate - s.live;
    soft = soft || (s.estimate.count * 8 <= room.count && beside_live.count * 2 > room.count);
  }
  if (s.cancelled) return Decision::kRefuse;
  if (!s.first_in_line) return Decision::kWaitTurn;
  if (hard && s.submitted > 0) return Decision::kWaitHard;
  if (hard) return s.grace_over ? Decision::kForce : Decision::kWaitOpen;
  if (soft && s.submitted > 0) return Decision::kWaitSoft;
  return share && !s.is_due ? Decision::kWaitShare : Decision::kAdmit;
}

TEST(Decide, IsTheRuleForEverySmallState) {
  std::uint64_t states = 0;
  std::vector<RunAheadTarget> targets(kTargets.begin(), kTargets.end());
  targets.insert(targets.end(), {{}, {{.batches = std::nullopt}, 3, true}});
  for_each_state([&](AdmissionState s) {
    for (unsigned flags = 0; flags < 4; ++flags) {
      s.first_in_line = (flags & 1U) != 0;
      s.cancelled = (flags & 2U) != 0;
      for (const RunAheadTarget& target : targets) {
        const Decision decision = decide(s, target);
        ++states;
        if (decision == stated(s, target)) continue;
        FAIL() << format_run_ahead(target.limit) << " most " << target.most << " half "
               << target.half_of_room << " flags " << flags << ": " << text_of(s) << ": "
               << static_cast<int>(decision);
      }
    }
  });
  EXPECT_GT(states, 400'000U);
}

TEST(Decide, SumsThatDoNotFit64BitsAreOverTheBudget) {
  const AdmissionState state{.pressure = {.held = {UINT64_MAX - 1}, .budget = {UINT64_MAX}},
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
    for (const RunAheadTarget& target : kTargets) {
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

TEST(DecideKeeps, WhoLetsOthersComeBackLeavesHalfOfTheTargetQueuedOrWaitsShortly) {
  std::uint64_t waits = 0;
  for_each_state([&](const AdmissionState& s) {
    for (const RunAheadTarget& target : kTargets) {
      if (decide(s, target) != Decision::kWaitShare) continue;
      ++waits;
      const nanoseconds left = s.queued - patience(s, target);
      const bool leaves_half = left >= target.limit.time.value_or(nanoseconds(0)) / 2;
      if (!leaves_half && (left < s.queued * 3 / 4 || patience(s, target) > s.takes / 32)) {
        FAIL() << text_of(s);
      }
    }
  });
  EXPECT_GT(waits, 10'000U);
}

TEST(DecideKeeps, NobodyIsAdmittedBeyondTheBudgetButByForceOrAlone) {
  std::uint64_t forced = 0;
  for_each_state([&](const AdmissionState& s) {
    const bool fits = s.pressure.held + s.unspent + s.estimate <= s.pressure.budget;
    const bool beside_live = s.open == 0 && s.live + s.estimate <= s.pressure.budget;
    const bool alone = s.open == 0 && s.submitted == 0;
    for (const RunAheadTarget& target : kTargets) {
      const Decision decision = decide(s, target);
      if (decision == Decision::kAdmit && !fits && !beside_live && !alone) FAIL() << text_of(s);
      if (decision != Decision::kForce) continue;
      ++forced;
      if (fits || beside_live || alone || !s.grace_over || s.submitted != 0) FAIL() << text_of(s);
    }
  });
  EXPECT_GT(forced, 1000U);
}

/// Each makes a state easier in one way. Not for half of the room, which is of small batches alone.
const std::vector<std::function<void(AdmissionState&)>>& easier() {
  static const std::vector<std::function<void(AdmissionState&)>> kAll{
      [](AdmissionState& s) {
        s.pressure.held = minus_or_zero(s.pressure.held, {1});
        s.live = std::min(s.live, s.pressure.held);
      },
      [](AdmissionState& s) { s.live = minus_or_zero(s.live, {1}); },
      [](AdmissionState& s) { s.unspent = minus_or_zero(s.unspent, {1}); },
      [](AdmissionState& s) { s.estimate = minus_or_zero(s.estimate, {1}); },
      [](AdmissionState& s) { s.pressure.budget += Bytes{1}; },
      [](AdmissionState& s) { s.open -= std::min<std::uint64_t>(s.open, 1); },
      [](AdmissionState& s) {
        s.submitted -= std::min<std::uint64_t>(s.submitted, 1);
        if (s.submitted == 0) s.queued = {};
      },
      [](AdmissionState& s) { s.queued -= std::min(s.queued, nanoseconds(1)); },
      [](AdmissionState& s) { s.takes -= nanoseconds(1); },
      [](AdmissionState& s) { s.is_due = true; },
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
        const bool is_same_room = std::tie(s.pressure.budget, s.live, s.estimate) ==
                                  std::tie(other.pressure.budget, other.live, other.estimate);
        if (kTargets.at(t).half_of_room && !is_same_room) continue;
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
