#include "trainer/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "support/table_checks.hpp"
#include "tools/program/json_text.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/jobs.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TrainResult made_up_result() {
  TrainResult result;
  result.batches = 40;
  result.seconds = 5;
  result.measured_from = 1'000;
  result.measured_to = 5'000'001'000;
  result.idle_share = 0.0123;
  result.operations = 1'200;
  result.pool.reserved.peak = mib(40);
  result.pool.held.peak = mib(38);
  result.pool.waits = 7;
  result.admission.most_submitted = 2;
  result.admission.forced = 3;
  result.admission.turn = {.count = 4, .total = std::chrono::milliseconds(250)};
  result.admission.budget = {.count = 12, .total = std::chrono::milliseconds(790)};
  result.admission.soft = {.count = 2, .total = std::chrono::milliseconds(900)};
  result.admission.run_ahead = {.target = std::chrono::microseconds(3500),
                                .most = std::chrono::microseconds(4250)};
  result.caused_idle = std::chrono::milliseconds(20);
  result.pool.waited = std::chrono::milliseconds(40);
  result.pool.pressure = {std::chrono::milliseconds(3500), std::chrono::milliseconds(1250),
                          std::chrono::milliseconds(250)};
  result.stalls = {.count = 18, .total = std::chrono::milliseconds(1940)};
  result.staging = mib(8);
  result.mean_loss = 0.5;
  result.samples = {{mib(20), mib(2)}, {mib(30), mib(4)}};
  return result;
}

/// Expects all of these members; `found` may have more.
void expect_members(const nlohmann::json& found, const nlohmann::json& expected) {
  for (const auto& [name, value] : expected.items()) EXPECT_EQ(found[name], value) << name;
}

TEST(Report, RunShowsEveryFigure) {
  const std::string text = format_run(TrainSettings{}, made_up_result());
  expect_parts(
      text, {"policy                throttled", "result                finished",
             "batches               40", "batches/s             8.00", "device idle           1.2%",
             "peak reserved         40 MiB", "peak held             38 MiB",
             "host staging          8 MiB", "most in flight        2 batches",
             "dispatch stalls       18, 1.94 s in all",
             "stalls by cause       budget 12, 0.79 s; run-ahead 2, 0.90 s; turn 4, 0.25 s\n",
             "throttle-caused idle  20.00 ms, 0.4% of the run",
             "run-ahead target      3.50 ms; at most 4.25 ms\n", "forced admissions     3",
             "mean loss             0.500000"});
}

TEST(Report, ATargetThatHasNotMovedYetIsANumberOfBatches) {
  EXPECT_NE(format_run(TrainSettings{}, TrainResult{})
                .find("run-ahead target      500.00 ms or 192 batches, as at the beginning\n"),
            std::string::npos);
}

TEST(Report, ATargetThatDoesNotAdaptIsShownAsItWasChosen) {
  TrainSettings settings;
  settings.policy.run_ahead.value = {.batches = 4, .time = std::chrono::nanoseconds{0}};
  EXPECT_NE(format_run(settings, made_up_result()).find("run-ahead target      4\n"),
            std::string::npos);
}

TEST(Report, OnlyThrottledHasATargetAndIdleTimeThatItCaused) {
  TrainSettings settings;
  settings.policy.policy.value = Policy::kBackstop;
  const std::string text = format_run(settings, TrainResult{});
  EXPECT_NE(text.find("stalls by cause  none\n"), std::string::npos) << text;
  for (const char* row : {"throttle-caused idle", "run-ahead target", "forced admissions"}) {
    EXPECT_EQ(text.find(row), std::string::npos) << text;
  }
}

TEST(Report, RunJsonHasTheSameFigures) {
  const auto j = nlohmann::json::parse(run_json(TrainSettings{}, made_up_result()));
  EXPECT_EQ(j["policy"], "throttled");
  EXPECT_EQ(j["settings"], settings_json(TrainSettings{}.lines()));
  EXPECT_EQ(j["settings"]["policy"],
            (nlohmann::json{{"value", "throttled"}, {"source", "default"}}));
  nlohmann::json r = j["result"];
  expect_members(r, {{"outcome", "finished"},
                     {"batches", 40},
                     {"batches_per_second", 8.0},
                     {"measured", {{"from_ns", 1'000}, {"to_ns", 5'000'001'000}}},
                     {"idle_share", 0.0123},
                     {"operations", 1'200},
                     {"peak_reserved_bytes", mib(40).count},
                     {"peak_held_bytes", mib(38).count},
                     {"staging_bytes", mib(8).count},
                     {"most_in_flight", 2},
                     {"stalls", {{"count", 18}, {"seconds", 1.94}}},
                     {"stalls_turn", {{"count", 4}, {"seconds", 0.25}}},
                     {"stalls_budget", {{"count", 12}, {"seconds", 0.79}}},
                     {"pressure_seconds", {{"none", 3.5}, {"soft", 1.25}, {"hard", 0.25}}},
                     {"stalls_barrier", {{"count", 0}, {"seconds", 0.0}}},
                     {"admitted_by_force", 3},
                     {"throttle_caused_idle", {{"seconds", 0.02}, {"share", 0.004}}},
                     {"run_ahead_target", {{"seconds", 0.0035}, {"most_seconds", 0.00425}}},
                     {"mean_loss", 0.5},
                     {"held_bytes_per_batch", {mib(20).count, mib(30).count}},
                     {"staging_bytes_per_batch", {mib(2).count, mib(4).count}}});
  EXPECT_EQ(r["pool"]["waits"], 7);
  EXPECT_FALSE(r.contains("report"));
}

TEST(Report, OutOfMemoryNamesTheBatchAndKeepsTheReport) {
  TrainResult result = made_up_result();
  result.outcome = Outcome::kOutOfMemory;
  result.report = "asked\nbudget";
  result.mean_loss.reset();
  EXPECT_NE(format_run(TrainSettings{}, result).find("out of memory in batch 41"),
            std::string::npos);
  const auto j = nlohmann::json::parse(run_json(TrainSettings{}, result));
  EXPECT_EQ(j["result"]["report"], "asked\nbudget");
  EXPECT_FALSE(j["result"].contains("mean_loss"));
}

Comparison made_up_comparison() {
  PolicyFigures figures;
  figures.name = "reference";
  figures.runs = 6;
  figures.batches_per_second = 10;
  figures.idle_share = 0.0123;
  figures.last = made_up_result();
  figures.smallest_budget = mib(118);
  Comparison comparison;
  comparison.reference = figures;
  comparison.finished_runs = 12;
  for (const char* policy : {"unbounded", "backstop", "throttled", "barrier"}) {
    figures.name = policy;
    figures.runs = 2;
    figures.batches_per_second = 9.5;
    figures.ratio = 0.95;
    figures.ratio_low = 0.9;
    figures.ratio_high = 1.01;
    figures.smallest_budget =
        policy == std::string("barrier") ? std::nullopt : std::optional(mib(37));
    figures.searched = true;
    comparison.policies.push_back(figures);
  }
  return comparison;
}

Comparison extreme_comparison() {
  Comparison comparison = made_up_comparison();
  std::vector<PolicyFigures*> all{&comparison.reference};
  for (PolicyFigures& figures : comparison.policies) all.push_back(&figures);
  std::uint64_t terabytes = 15;
  for (PolicyFigures* figures : all) {
    figures->ratio_high = 1234.5;
    figures->batches_per_second = 12'345'678;
    figures->smallest_budget = gib(1024 * terabytes) + Bytes{1};
    TrainResult& last = figures->last;
    last.outcome = Outcome::kOutOfMemory;
    last.batches = 9'999'999'999;
    last.pool.reserved.peak = gib(1024 * terabytes--) + Bytes{12'345};
    last.stalls = {.count = 1'000'000'000, .total = std::chrono::hours(999)};
    for (Stalls* stalls :
         {&last.admission.budget, &last.admission.soft, &last.admission.turn, &last.barriers}) {
      *stalls = {.count = 1'000'000'000, .total = std::chrono::hours(999)};
    }
  }
  comparison.policies[2].last.pool.reserved.peak = kib(3);
  comparison.policies[3].runs = 0;
  return comparison;
}

TEST(Report, ComparisonShowsMemorySpeedAndResultAndWhatHoldsBelow) {
  const std::string text = format_comparison(CompareSettings{}, made_up_comparison());
  expect_parts(
      text,
      {"MLP 512 -> 2048 -> 512 -> 1, batches of 1024 made on the way, 100 batches a run",
       "policy     needs MiB  peak MiB  speed  lowest to highest  result\n",
       "reference          -        40  1.000                  -  finished\n",
       "throttled         37        40  0.950     0.900 to 1.010  finished\n",
       "barrier            -        40  0.950     0.900 to 1.010  finished\n",
       "batches a second over the reference's (10.00)",
       "bit-identical in all 12 runs that finished\n", "smallest budgets: barrier not found\n"});
  for (const char* absent : {"interrupted", "plain", "host time"}) {
    EXPECT_EQ(text.find(absent), std::string::npos) << absent;
  }
}

TEST(Report, AWideComparisonHasAllColumnsAndWhatHeldThrottledBack) {
  const std::string text = format_comparison(CompareSettings{}, made_up_comparison(), true);
  expect_parts(
      text,
      {"policy     needs MiB  peak MiB  speed  lowest to highest  batches/s  held MiB  staging "
       "MiB  "
       "stalls  stalled s  idle %  result\n",
       "reference          -        40  1.000                  -      10.00        38            "
       "8  "
       "    18       1.94     1.2  finished\n",
       "throttled         37        40  0.950     0.900 to 1.010       9.50        38            "
       "8  "
       "    18       1.94     1.2  finished\n",
       "throttled, last run: stalls by cause: budget 12, 0.79 s; ",
       "throttle-caused idle 20.00 ms, 0.4% of the run; run-ahead target 3.50 ms; at most 4.25 ms; "
       "3\n  forced admissions\n"});
  expect_legend_of(text, "policy");
}

TEST(Report, TablesFitTheTerminalWhateverTheFiguresAre) {
  const Comparison extreme = extreme_comparison();
  const std::string text = format_comparison(CompareSettings{}, extreme);
  EXPECT_LE(widest_line(text), 100U) << text;
  expect_legend_of(text, "policy");
  TrainSettings settings;
  EXPECT_LE(widest_line(format_run(settings, extreme.reference.last)), 100U);
  EXPECT_LE(widest_line(format_predict({.train = settings}, extreme.reference.last)), 100U);
}

/// A comparison in which unbounded runs out, and the settings of its budget.
Comparison claimed_comparison() {
  Comparison comparison = made_up_comparison();
  comparison.reference.last.pool.reserved.peak = mib(118);
  comparison.policies[0].last.outcome = Outcome::kOutOfMemory;
  comparison.policies[2].runs = 3;
  return comparison;
}
std::string claim(const Comparison& comparison) {
  CompareSettings settings;
  settings.train.pool.budget.value = {.bytes = mib(64)};
  return claim_of(settings, comparison);
}

TEST(Report, TheClaimIsMadeOfTheFiguresOfTheSameRuns) {
  EXPECT_EQ(claim(claimed_comparison()),
            "In short: throttled took at most 40 MiB where unbounded run-ahead with enough memory "
            "took 118 MiB (3.0 times less), at 0.950 times its speed (from 0.900 to 1.010), with "
            "bit-identical weights; it still finishes 4 batches in 37 MiB; unbounded in the budget "
            "of 64 MiB: out of memory in batch 41.");
}

TEST(Report, TheClaimLeavesOutWhatWasNotMeasured) {
  Comparison comparison = claimed_comparison();
  comparison.policies[2].smallest_budget.reset();
  comparison.policies[2].runs = 1;
  comparison.finished_runs = 1;
  EXPECT_THAT(
      claim(comparison),
      HasSubstr(", at a speed that 1 pair cannot tell, with no weights to compare; unbounded in"));
  comparison.policies[2].ratio = 0;
  EXPECT_THAT(claim(comparison), HasSubstr("at a speed that was not measured, with no weights"));
  comparison.policies[2].runs = 0;
  comparison.interrupted = true;
  EXPECT_THAT(claim(comparison), StartsWith("In short, so far: throttled did not run; "));
}

TEST(Report, TheClaimSaysWhatWasTheCaseOtherwise) {
  Comparison comparison = claimed_comparison();
  comparison.identical = false;
  for (const auto& [theirs, words] : {std::pair{mib(30), "took 30 MiB (more)"},
                                      {mib(41), "took 41 MiB (about as much)"},
                                      {mib(400), "took 400 MiB (10 times less)"}}) {
    comparison.reference.last.pool.reserved.peak = theirs;
    EXPECT_THAT(claim(comparison), HasSubstr(words));
  }
  EXPECT_THAT(claim(comparison), HasSubstr("with weights that are NOT identical; "));
  comparison.reference.last.outcome = Outcome::kOutOfMemory;
  EXPECT_THAT(claim(comparison),
              StartsWith("In short: throttled took at most 40 MiB; unbounded with all of the "
                         "device's memory: out of memory in batch 41; it still finishes"));
  comparison.policies[2].last.outcome = Outcome::kOutOfMemory;
  EXPECT_THAT(
      claim(comparison),
      StartsWith("In short: throttled did not finish: out of memory in batch 41; unbounded in"));
}

TEST(Report, TheClaimNamesNoSpeedWhereThePairsDifferTooMuchToTell) {
  Comparison comparison = claimed_comparison();
  comparison.policies[2].ratio_low = 0.9;
  comparison.policies[2].ratio_high = 1.12;
  EXPECT_THAT(claim(comparison), HasSubstr("times its speed (from 0.900 to 1.120), with"));
  comparison.policies[2].ratio_high = 1.13;
  EXPECT_THAT(claim(comparison),
              HasSubstr(", at a speed that the pairs do not tell (from 0.900 to 1.130 times its "
                        "speed: the machine is busy, or the runs are short), with"));
}

TEST(Report, ASpeedIsUnclearInTheTableWhereThePairsDifferTooMuch) {
  Comparison comparison = made_up_comparison();
  EXPECT_THAT(format_comparison({}, comparison), Not(HasSubstr("unclear")));
  comparison.policies[3].ratio_high = 1.13;
  const std::string text = format_comparison({}, comparison);
  EXPECT_THAT(text, HasSubstr("unclear     0.900 to 1.130"));
  EXPECT_THAT(text, HasSubstr("0.950     0.900 to 1.010"));
  EXPECT_THAT(text, HasSubstr("median; unclear where"));
}

TEST(Report, PairsTellASpeedIfThereAreThreeAndTheyDifferByAQuarterAtMost) {
  PolicyFigures figures;
  figures.runs = 3;
  figures.ratio = figures.ratio_low = 0.5;
  figures.ratio_high = 0.625;
  EXPECT_TRUE(tells_speed(figures));
  figures.ratio_high = 0.626;
  EXPECT_FALSE(tells_speed(figures));
  figures.ratio_high = 0.625;
  figures.runs = 2;
  EXPECT_FALSE(tells_speed(figures));
  figures.runs = 3;
  figures.ratio = figures.ratio_low = figures.ratio_high = 0;  // no run finished
  EXPECT_FALSE(tells_speed(figures));
}

TEST(Report, TheClaimBeginsWithItsSubject) {
  Comparison comparison = claimed_comparison();
  EXPECT_THAT(claim_of({}, comparison, "The job"), StartsWith("The job: throttled took"));
  comparison.interrupted = true;
  EXPECT_THAT(claim_of({}, comparison, "The job"), StartsWith("The job, so far: throttled took"));
}

TEST(Report, TheClaimOfWhatDivergedIsNoSuccess) {
  Comparison comparison = claimed_comparison();
  comparison.policies[2].last.mean_loss = std::numeric_limits<double>::infinity();
  EXPECT_THAT(claim(comparison),
              StartsWith("In short: throttled did not finish: diverged; unbounded in"));
}

TEST(Report, AReferenceThatRanOutHasNoSpeed) {
  Comparison comparison = claimed_comparison();
  comparison.reference.last.outcome = Outcome::kOutOfMemory;
  EXPECT_THAT(format_comparison(CompareSettings{}, comparison), Not(HasSubstr("1.000")));
}

TEST(Report, ComparisonSaysHowBatchesAreMade) {
  CompareSettings settings;
  settings.train.inputs.value = InputKind::kRing;
  EXPECT_NE(format_comparison(settings, made_up_comparison()).find("1024 made beforehand, "),
            std::string::npos);
  settings.train.inputs.value = InputKind::kDrawn;
  EXPECT_NE(format_comparison(settings, made_up_comparison()).find("1024 drawn on the device, "),
            std::string::npos);
}

TEST(Report, ComparisonJsonHasTheSameFigures) {
  const Comparison c = made_up_comparison();
  const auto j = nlohmann::json::parse(comparison_json(CompareSettings{}, c));
  EXPECT_EQ(j["weights_identical"], true);
  EXPECT_EQ(j["interrupted"], false);
  EXPECT_EQ(j["finished_runs"], 12);
  EXPECT_EQ(j["reference"]["policy"], "reference");
  EXPECT_EQ(j["reference"]["last_run"]["peak_held_bytes"], mib(38).count);
  ASSERT_EQ(j["policies"].size(), c.policies.size());
  for (std::size_t i = 0; i < c.policies.size(); ++i) {
    const auto& figures = j["policies"][i];
    const PolicyFigures& f = c.policies[i];
    EXPECT_EQ(figures["policy"], f.name);
    EXPECT_EQ(figures["runs"], f.runs);
    EXPECT_EQ(figures["batches_per_second"], f.batches_per_second);
    EXPECT_EQ(figures["ratio_to_reference"], f.ratio);
    EXPECT_EQ(figures["ratio_low"], f.ratio_low);
    EXPECT_EQ(figures["ratio_high"], f.ratio_high);
    EXPECT_EQ(figures["idle_share"], f.idle_share);
    EXPECT_EQ(figures.contains("smallest_budget_bytes"), f.smallest_budget.has_value());
    EXPECT_EQ(figures["last_run"]["peak_reserved_bytes"], f.last.pool.reserved.peak.count);
    EXPECT_EQ(figures["last_run"]["staging_bytes"], f.last.staging.count);
    EXPECT_EQ(figures["last_run"]["stalls"]["count"], f.last.stalls.count);
  }
}

TEST(Report, ComparisonShowsTheLoopWithoutWeirAndWhatTheHostNeeds) {
  Comparison comparison = made_up_comparison();
  comparison.plain = comparison.policies[2];
  comparison.plain->name = "plain";
  comparison.plain->host_seconds = 20e-6;
  comparison.reference.host_seconds = 30.04e-6;
  comparison.policies[2].to_plain = Ratio{.median = 0.98, .low = 0.97, .high = 0.99};
  const std::string text = format_comparison(CompareSettings{}, comparison, true);
  expect_parts(text, {"plain             37        40  0.950     0.900 to 1.010       9.50    "
                      "     -            8  "
                      "     -          -       -  finished\n",
                      "host time per batch, us: reference 30.0, plain 20.0, unbounded 0.0, ",
                      "throttled to plain: 0.980 (0.970 to 0.990)\n"});
  const auto j = nlohmann::json::parse(comparison_json(CompareSettings{}, comparison));
  EXPECT_DOUBLE_EQ(j["plain"]["host_us"], 20);
  EXPECT_EQ(j["plain"]["last_run"]["outcome"], "finished");
  EXPECT_FALSE(j["plain"].contains("idle_share"));
  EXPECT_EQ(j["policies"][2]["to_plain"]["low"], 0.97);
  EXPECT_FALSE(j["policies"][1].contains("to_plain"));
}

TEST(Report, ComparisonSaysWhenWeightsDiffer) {
  Comparison comparison = made_up_comparison();
  comparison.identical = false;
  EXPECT_NE(format_comparison(CompareSettings{}, comparison).find("NOT identical in the 12 runs"),
            std::string::npos);
  const auto j = nlohmann::json::parse(comparison_json(CompareSettings{}, comparison));
  EXPECT_EQ(j["weights_identical"], false);
}

}  // namespace
}  // namespace weir::testing
