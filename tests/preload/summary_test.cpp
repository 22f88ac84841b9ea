#include "tools/preload/summary/summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "allocator/base/version.hpp"
#include "sample_summary.hpp"
#include "support/table_checks.hpp"
#include "tools/preload/summary/bare_json.hpp"

namespace weir::preload {
namespace {

using ::testing::HasSubstr;
using weir::testing::sample_device;
using weir::testing::sample_summary;
using Json = nlohmann::json;

Json gauge_json(const Gauge& gauge) {
  return {{"current", gauge.current.count}, {"peak", gauge.peak.count}};
}

TEST(Summary, JsonHasEveryFieldOfTheProcess) {
  const Json json = Json::parse(to_json(sample_summary()));
  EXPECT_EQ(json.size(), 8U);
  EXPECT_EQ(json.at("process"), 4242);
  EXPECT_EQ(json.at("program"), "/usr/bin/python3");
  EXPECT_EQ(json.at("pool"), "round");
  EXPECT_EQ(json.at("policy"), "throttled");
  EXPECT_EQ(json.at("nvml"), "budget");
  EXPECT_EQ(json.at("weir"), kVersion);
  EXPECT_EQ(json.at("settings"), (Json{{"pool", {{"value", "round"}, {"source", "default"}}},
                                       {"budget", {{"value", "80%"}, {"source", "WEIR_BUDGET"}}}}));
  EXPECT_EQ(json.at("devices").size(), 2U);
}

TEST(Summary, JsonHasEveryFieldOfADevice) {
  const Json json = Json::parse(to_json(sample_summary())).at("devices").at(1);
  const DeviceSummary device = sample_device(1);
  EXPECT_EQ(json.size(), 17U);
  EXPECT_EQ(json.at("device"), 1);
  EXPECT_EQ(json.at("total_bytes"), device.total.count);
  EXPECT_EQ(json.at("budget_bytes"), device.budget.count);
  EXPECT_EQ(json.at("pools"), (Json{{{"serves", "all"},
                                     {"kind", "round"},
                                     {"allocated_peak_bytes", mib(96).count},
                                     {"queued_peak_bytes", 105},
                                     {"needed_peak_bytes", mib(112).count},
                                     {"reserved_peak_bytes", mib(128).count}}}));
  EXPECT_EQ(json.at("fragmentation"), 0.25);
  EXPECT_EQ(json.at("served_calls"), 31);
  EXPECT_EQ(json.at("served_bytes"), mib(300).count);
  EXPECT_EQ(json.at("served_share"), 0.75);
  EXPECT_EQ(json.at("paced"), (Json{{"count", 61}, {"total_ns", 620'000'000}}));
  EXPECT_EQ(json.at("batches"), (Json{{"count", 71}, {"total_ns", 7'200'000'000}}));
  EXPECT_EQ(json.at("batches_budget"), (Json{{"count", 11}, {"total_ns", 1'200'000'000}}));
  EXPECT_EQ(json.at("batches_run_ahead"), (Json{{"count", 57}, {"total_ns", 5'700'000'000}}));
  EXPECT_EQ(json.at("batches_turn"), (Json{{"count", 3}, {"total_ns", 300'000'000}}));
  EXPECT_EQ(json.at("batches_forced"), 2);
  EXPECT_EQ(json.at("batches_marked"), 81);
  EXPECT_EQ(json.at("passed"), (Json{{{"kind", "arrays"},
                                      {"level_bytes", gauge_json(device.passed[0].level)},
                                      {"calls", 43},
                                      {"sum_bytes", mib(100).count},
                                      {"counted", true}},
                                     {{"kind", "host"},
                                      {"level_bytes", gauge_json(device.passed[1].level)},
                                      {"calls", 1},
                                      {"sum_bytes", gib(7).count},
                                      {"counted", false}}}));
}

TEST(Summary, JsonHasEveryFieldOfAPool) {
  const Json json = Json::parse(to_json(sample_summary())).at("devices").at(1).at("pool");
  const Statistics pool = sample_device(1).pool;
  EXPECT_EQ(json, (Json{{"requested_bytes", gauge_json(pool.requested)},
                        {"allocated_bytes", gauge_json(pool.allocated)},
                        {"awaiting_bytes", gauge_json(pool.awaiting)},
                        {"cached_bytes", gauge_json(pool.cached)},
                        {"reserved_bytes", gauge_json(pool.reserved)},
                        {"held_bytes", gauge_json(pool.held)},
                        {"budget_bytes", pool.budget.count},
                        {"hits", 21},
                        {"misses", 22},
                        {"handovers", 23},
                        {"waits", 24},
                        {"retries", 25},
                        {"releases", 26},
                        {"failures", 27},
                        {"waited_ns", 2'500'000'000},
                        {"at_soft_ns", 1'500'000'000},
                        {"at_hard_ns", 250'000'000}}));
}

TEST(Summary, JsonOfAProcessWithoutDevicesIsWhole) {
  EXPECT_EQ(Json::parse(to_json({})).at("devices"), Json::array());
}

TEST(Summary, ShareIsOneWhereNothingWasAskedForAndFragmentationZero) {
  EXPECT_EQ(served_share({}), 1);
  EXPECT_EQ(fragmentation({}), 0);
}

TEST(Summary, MemoryOfTheHostDoesNotLowerTheShare) {
  DeviceSummary device;
  device.served = mib(1);
  device.passed = {{.kind = "host", .level = {}, .calls = 1, .sum = gib(1), .counted = false}};
  EXPECT_EQ(served_share(device), 1);
}

TEST(Summary, TextHasALineForEachFigure) {
  const std::string text = to_text(sample_summary());
  for (const char* line :
       {"weir: process 4242, /usr/bin/python3: pool round, policy throttled, nvml budget\n",
        "\n  device 0                    16 GiB, budget 12 GiB\n",
        "\n  peak allocated              96 MiB\n",
        "\n  peak awaiting the device    5 B\n",
        "\n  peak reserved               128 MiB\n",
        "\n  fragmentation               25.0%, 12.5% without what awaited the device\n",
        "\n  served by Weir              300 MiB in 31 calls, 75.0% of the device bytes\n",
        "\n  passed, arrays              100 MiB in 43 calls, peak 42 B\n",
        "\n  passed, host                7 GiB in 1 call, peak 52 B, not in the budget\n",
        "\n  from the cache              21, handed over 23, by growth 22\n",
        "\n  returned to the driver      26 segments\n",
        "\n  waits for memory            24, 2.500 s in all\n",
        "\n  time at memory pressure     soft 1.500 s, hard 0.250 s\n",
        "\n  retries                     25\n",
        "\n  requests that failed        27\n",
        "\n  launches held back          61, 0.620 s in all\n",
        "\n  batches held back           71, 7.200 s in all, of 81\n",
        "\n  for the budget              11, 1.200 s in all\n",
        "\n  for the run-ahead target    57, 5.700 s in all\n",
        "\n  for another's turn          3, 0.300 s in all\n",
        "\n  forced admissions           2\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(Summary, TextFitsTheTerminalWhateverTheFiguresAre) {
  Summary summary = sample_summary();
  for (DeviceSummary& device : summary.devices) {
    device.served = device.budget = device.total = gib(16'000) + Bytes{1};
    device.served_calls = device.batches_marked = 9'999'999'999;
    device.pool.waits = device.batches.count = 9'999'999'999;
    device.pool.waited = device.batches.total = std::chrono::hours(10'000);
    for (Passed& passed : device.passed) {
      passed.calls = 9'999'999'999;
      passed.sum = passed.level.peak = gib(16'000) + Bytes{1};
    }
  }
  EXPECT_LE(weir::testing::widest_line(to_text(summary)), 100U) << to_text(summary);
}

TEST(Summary, AProgramWithoutMarkedBatchesHasNoLinesOfTheirCauses) {
  Summary summary = sample_summary();
  for (DeviceSummary& device : summary.devices) device.batches_marked = 0;
  EXPECT_THAT(to_text(summary), ::testing::Not(HasSubstr("run-ahead")));
}

TEST(Summary, ALongKindIsNotCutAndStaysApartFromItsFigure) {
  Summary summary = sample_summary();
  summary.devices[0].passed[0].kind = "a kind with a name beyond all measure";
  EXPECT_THAT(to_text(summary), HasSubstr("beyond all measure 100 MiB"));
}

std::string read_back(std::string_view text) {
  return Json::parse(json_string(text)).get<std::string>();
}

TEST(JsonText, WhatIsUtf8IsReadBackAsItWas) {
  for (const std::string_view text :
       {std::string_view("plain"), std::string_view("\"quoted\" \\ back"),
        std::string_view("\x01\n\t\x1f\x7f"), std::string_view("a\0b", 3),
        std::string_view("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80")}) {
    EXPECT_EQ(read_back(text), text);
  }
}

TEST(JsonText, WhatIsNoUtf8IsReplaced) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(read_back("/data/\xFF/x"), "/data/" + mark + "/x");
  EXPECT_EQ(read_back("cut \xE2\x82"), "cut " + mark + mark);
  EXPECT_EQ(read_back("\xC0\xAF"), mark + mark) << "longer than it need be";
  EXPECT_EQ(read_back("\xED\xA0\x80"), mark + mark + mark) << "half of a surrogate pair";
  EXPECT_EQ(read_back("\xF4\x90\x80\x80").find('\xF4'), std::string::npos) << "past U+10FFFF";
}

TEST(JsonText, EveryTextOfTwoBytesIsJson) {
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      ASSERT_TRUE(Json::accept(json_string(text))) << first << " " << second;
    }
  }
}

TEST(JsonText, SharesAreWrittenToSixDigits) {
  EXPECT_EQ(json_share(0), "0.000000");
  EXPECT_EQ(json_share(1), "1.000000");
  EXPECT_EQ(json_share(0.9999996), "1.000000");
  EXPECT_EQ(json_share(1.0 / 3), "0.333333");
}

}  // namespace
}  // namespace weir::preload
