#include "bench/simulate/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "allocator/base/error.hpp"
#include "simulate/run.hpp"
#include "support/table_checks.hpp"
#include "tools/program/numbers.hpp"

namespace weir::simulate {
namespace {

using ::testing::HasSubstr;

std::vector<Outcome> outcomes_of(std::string_view name, const std::string& budget) {
  ComparisonOptions options{.workloads = {&workload(name)},
                            .policies = {&policy("throttled"), &policy("unbounded")},
                            .budgets = {parse_budget(budget)},
                            .run = {.batches = 300, .keep_series = true}};
  std::vector<Outcome> outcomes;
  compare(options, [&](Outcome&& outcome) { outcomes.push_back(std::move(outcome)); });
  return outcomes;
}

TEST(SimulateReport, ABudgetIsTimesTheLeastOrBytesOrDevices) {
  EXPECT_EQ(parse_budget("1.5").least, 1.5);
  EXPECT_EQ(parse_budget("24GiB").bytes, gib(24));
  EXPECT_EQ(parse_budget("devices").bytes, Bytes{8 * 141'000'000'000U});
  for (const char* text : {"0.9", "-1", "", "x", "0B", "1e3", "1000001"}) {
    EXPECT_THROW((void)parse_budget(text), UsageError) << text;
  }
}

TEST(SimulateReport, BudgetsBelowTheLeastAreLeftOut) {
  EXPECT_TRUE(outcomes_of("steady-2ms", "1MiB").empty());
  EXPECT_EQ(outcomes_of("steady-2ms", "1").size(), 2U);
}

TEST(SimulateReport, TextAndJsonHaveTheSameRows) {
  const std::vector<Outcome> outcomes = outcomes_of("bursts", "4");
  const std::string text = table_text(outcomes);
  EXPECT_THAT(text, HasSubstr("throttled misses a bound on"));
  const std::vector<SettingLine> settings{{"budget", "4", "--budget"}};
  const auto whole = nlohmann::json::parse(outcomes_json(outcomes, settings));
  EXPECT_EQ(whole["settings"]["budget"]["source"], "--budget");
  const auto& json = whole["runs"];
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["policy"], "throttled");
  EXPECT_EQ(json[0]["peak_bytes"], outcomes[0].run.peak.count);
  EXPECT_EQ(json[1]["of_unbounded"], 1.0);
  EXPECT_EQ(json[0]["batches"], 300);
}

TEST(SimulateReport, TheTableFitsTheTerminalAndAWideOneHasAllColumns) {
  std::vector<Outcome> outcomes = outcomes_of("bursts", "4");
  for (Outcome& outcome : outcomes) {
    outcome.budget = "18446744073709551615B";
    outcome.run.peak = gib(1024) * 1024 + Bytes{1};
    outcome.run.stalls.p99 = std::chrono::hours(24 * 365);
    outcome.run.failed = 1;
  }
  const std::string text = table_text(outcomes);
  std::string table;  // the bounds below are sentences
  for (const std::string& line : weir::testing::lines_of_text(text)) {
    if (line.empty()) break;
    table += line + "\n";
  }
  EXPECT_LE(weir::testing::widest_line(table), 100U) << table;
  EXPECT_THAT(table, ::testing::ContainsRegex("^workload +budget +policy +to unbounded +peak TiB"));
  weir::testing::expect_legend_of(table, "workload");
  const std::string wide = table_text(outcomes, true);
  for (const char* heading : {"to filling", "x two batches", "host %", "device %", "memory %",
                              "warm-up %", "failed", "bounds"}) {
    EXPECT_THAT(weir::testing::headings_of(wide, "workload"), ::testing::Contains(heading));
  }
  weir::testing::expect_legend_of(wide, "workload");
  const std::string several = table_text(outcomes_of("producers-1:1", "4"), true);
  EXPECT_THAT(weir::testing::headings_of(several, "workload"), ::testing::Contains("Jain"));
}

TEST(SimulateReport, TheSeriesHasTheRunsPeak) {
  const std::vector<Outcome> outcomes = outcomes_of("steady-2ms", "4");
  Bytes most;
  for (const Sample& sample : outcomes[0].run.series) most = std::max(most, sample.used);
  EXPECT_EQ(most, outcomes[0].run.peak);
}

TEST(SimulateReport, ThePictureHasALineAndAWordForEachPolicy) {
  const std::vector<Outcome> outcomes = outcomes_of("steady-2ms", "4");
  const std::string svg = picture_svg(outcomes);
  const std::string words = "throttled: peak " + format_bytes(outcomes.front().run.peak);
  EXPECT_THAT(svg, ::testing::StartsWith("<svg "));
  EXPECT_THAT(svg, ::testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr(">" + words));
  EXPECT_THAT(svg, HasSubstr(">unbounded: peak"));
  EXPECT_THAT(svg, HasSubstr("<g><title>" + words)) << "where a mouse points at it";
  EXPECT_THAT(svg, HasSubstr(">budget<"));
  EXPECT_THAT(svg, HasSubstr("memory in use (GiB)"));
  EXPECT_THAT(svg, HasSubstr("time ("));
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = svg.find("fill=\"none\"", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 2U);
}

TEST(SimulateReport, ThePictureOfTheTargetShowsItAndTheMemory) {
  const std::vector<Outcome> outcomes = outcomes_of("bursts", "4");
  const std::string svg = target_picture_svg(outcomes.front());
  EXPECT_THAT(svg, ::testing::StartsWith("<svg "));
  EXPECT_THAT(svg, ::testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr(">The target of throttled over time: 20 batches of 2 ms"));
  EXPECT_THAT(svg, HasSubstr("run-ahead target (ms)"));
  EXPECT_THAT(svg, HasSubstr("memory in use (GiB)"));
  EXPECT_THAT(svg, HasSubstr("time ("));
  EXPECT_THAT(svg, HasSubstr(">budget<"));
  const RunAheadStatistics last = outcomes.front().run.control.value();
  EXPECT_THAT(
      svg, HasSubstr("at most " + format_number(1e-6 * static_cast<double>(last.most.count()), 2) +
                     " ms"));
}

TEST(SimulateReport, TheSeriesHasTheTargetAndKeepingItChangesNoRun) {
  const std::vector<Outcome> outcomes = outcomes_of("bursts", "16");
  const RunResult& run = outcomes.front().run;
  EXPECT_GT(run.series.back().target, Time{});
  EXPECT_EQ(run.series.front().target, Time{});
  EXPECT_EQ(outcomes.back().run.series.back().target, Time{}) << "unbounded has none";
  RunOptions options{.budget = outcomes.front().budget_bytes, .batches = 300};
  const RunResult without = simulate(workload("bursts"), policy("throttled"), options);
  EXPECT_EQ(without.duration, run.duration);
  EXPECT_EQ(without.control->most, run.control->most);
  EXPECT_EQ(without.peak, run.peak);
}

}  // namespace
}  // namespace weir::simulate
