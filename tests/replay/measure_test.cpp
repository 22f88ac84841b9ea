// Several traces against several pools, and the output of the figures.

#include "tools/replay/measure/measure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/table_checks.hpp"
#include "tools/replay/measure/pools.hpp"
#include "tools/replay/show/report.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using replay::Trace;

class ReplayMeasure : public ::testing::Test {
 protected:
  ReplayMeasure() {
    traces_.push_back(trace_of({allocate(0, 4096), allocate(1, 4096), release(0, 4096),
                                release(1, 4096), allocate(2, 8192)},
                               3));
    traces_.push_back(trace_of({allocate(0, 1 << 20), release(0, 1 << 20)}, 1));
    traces_[1].name = "second";
    traces_[1].cut = "the gzip data ends early";
    PoolOptions base;
    base.budget = BudgetRequest{.percent = 100};
    for (const auto& choice : replay::parse_pool_choices("t", "naive,unpooled", base)) {
      candidates_.push_back(replay::candidate_of(
          choice, [](Bytes capacity) { return std::make_unique<SimulatedUpstream>(capacity); }, 0));
    }
  }

  std::vector<Trace> traces_;
  std::vector<replay::Candidate> candidates_;
};

TEST_F(ReplayMeasure, EveryPairIsMeasuredAndTold) {
  std::size_t told = 0;
  const auto results = replay::measure_all(
      traces_, candidates_, {.capacity = gib(1)},
      [&](std::size_t done, std::size_t all, const std::string& what) {
        EXPECT_EQ(done, ++told);
        EXPECT_EQ(all, 24U) << "4 pairs, once and 5 times more for the time";
        EXPECT_THAT(what, ::testing::ContainsRegex("(t|second): (naive|unpooled)"));
      });
  EXPECT_EQ(told, 24U);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].peak_requested, kib(8));
  const replay::Measured& naive = results[0].measured.at(0);
  EXPECT_EQ(naive.subject, "naive");
  EXPECT_EQ(naive.figures.peak_reserved, kib(16));
  ASSERT_TRUE(naive.least);
  EXPECT_EQ(naive.least->capacity, kib(8));  // both pages are released when they are in the way
  EXPECT_EQ(naive.at_least->peak_reserved, kib(8));
  EXPECT_EQ(naive.at_least->driver_calls, 5U);
  EXPECT_GT(naive.ns_per_operation, 0);
  EXPECT_EQ(results[1].measured.at(1).figures.driver_calls, 2U);
}

TEST_F(ReplayMeasure, WhatIsNotAskedForIsNotMeasured) {
  const auto results = replay::measure_all(traces_, candidates_,
                                           {.capacity = gib(1), .search = false, .timings = 0});
  EXPECT_FALSE(results[0].measured[0].least);
  EXPECT_FALSE(results[0].measured[0].at_least);
  EXPECT_EQ(results[0].measured[0].ns_per_operation, 0);
}

TEST_F(ReplayMeasure, WhatAReplayThrowsIsThrown) {
  candidates_[1].make = [](Bytes) -> std::unique_ptr<replay::Subject> {
    throw std::runtime_error("no such device");
  };
  EXPECT_THROW((void)replay::measure_all(traces_, candidates_, {.capacity = gib(1)}),
               std::runtime_error);
}

TEST_F(ReplayMeasure, TheTableHasARowForEachPoolAndSaysWhatWasCut) {
  const auto results = replay::measure_all(traces_, candidates_, {.capacity = gib(1)});
  const std::string text = replay::results_text(results, {"simulated", gib(1), 3});
  EXPECT_THAT(text, ::testing::StartsWith(
                        "upstream simulated of 1 GiB, the device 3 operations behind the host\n"));
  EXPECT_THAT(text, HasSubstr("\nt: 5 operations, 3 buffers, 4 streams, peak requested 8 KiB\n"));
  EXPECT_THAT(text, HasSubstr("\n  cut short: the gzip data ends early\n"));
  EXPECT_THAT(
      text, ::testing::ContainsRegex("\npool +x peak +reserved KiB +x least +least KiB +frag % "));
  EXPECT_THAT(text, ::testing::ContainsRegex("\nnaive +2.000 +16 +1.000 +8 +50.0 .* completed\n"));
  expect_legend_of(text, "pool");
  EXPECT_FALSE(replay::any_refused(results));
}

TEST_F(ReplayMeasure, ReservedAndLeastMemoryAreComparedInOneUnit) {
  auto results = replay::measure_all(traces_, candidates_, {.capacity = gib(1)});
  results.resize(1);
  for (replay::Measured& m : results.front().measured) {
    m.figures.peak_reserved = mib(3);
    m.least->capacity = kib(768);
  }
  const std::string text = replay::results_text(results, {"simulated", gib(1), 3});
  EXPECT_THAT(text, ::testing::ContainsRegex("reserved MiB +x least +least MiB"));
  EXPECT_THAT(text, ::testing::ContainsRegex("\nnaive .* 3.00 .* 0.75 "));
  expect_legend_of(text, "pool");
}

TEST_F(ReplayMeasure, AWideTableHasAllColumns) {
  const auto results = replay::measure_all(traces_, candidates_, {.capacity = gib(1)});
  const std::string text = replay::results_text(results, {"simulated", gib(1), 3}, true);
  EXPECT_THAT(text, ::testing::ContainsRegex("\npool .*allocated KiB +waste KiB +largest free % +"
                                             "reserved there KiB +outcome\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("\nnaive .* 8 +0 +50.0 +8 +completed\n"));
  for (const char* heading : {"maps", "waits", "x peak", "x least", "ns/op", "calls"}) {
    EXPECT_THAT(headings_of(text, "pool"), ::testing::Contains(heading));
  }
  expect_legend_of(text, "pool");
}

TEST_F(ReplayMeasure, TablesFitTheTerminalWhateverTheFiguresAre) {
  auto results = replay::measure_all(traces_, candidates_, {.capacity = gib(1)});
  const replay::Trace long_name = [&] {
    replay::Trace trace = *results[1].trace;
    trace.name = "/folder/" + std::string(255, 'n') + ".csv";
    trace.notes = {"a note of " + std::string(80, 'w') + " and more words"};
    return trace;
  }();
  for (replay::TraceResults& result : results) {
    result.trace = &long_name;
    for (replay::Measured& m : result.measured) {
      m.subject = "a_pool_with_a_long_name:" + std::string(40, '9');
      m.figures.peak_allocated = gib(1024) * 99 + Bytes{1};
      m.figures.peak_reserved = gib(1024) * 999 + Bytes{1};
      m.figures.driver_calls = 9'999'999'999;
      m.ns_per_operation = 9'999'999;
      m.least = replay::LeastCapacity{.capacity = gib(1024) * 999 + Bytes{1}, .failed = {}};
      m.at_least = m.figures;
      m.figures.refusal.emplace().operation = UINT64_MAX;
      replay::Breakdown& breakdown = m.breakdown.emplace();
      breakdown.page = mib(2);
      breakdown.reserved = gib(1024) * 99;
      breakdown.requested = Bytes{1};
    }
  }
  for (int i = 0; i < 6; ++i) results.push_back(replay::TraceResults(results.front()));
  const replay::Setup setup{"simulated", gib(1), 3};
  for (const std::string& text :
       {replay::results_text(results, setup), replay::summary_text(results, setup),
        replay::breakdown_text(results, setup)}) {
    std::string tables;  // a path is not broken
    for (const std::string& line : lines_of_text(text)) {
      if (!line.starts_with(long_name.name)) tables += line + "\n";
    }
    EXPECT_LE(widest_line(tables), 100U) << tables;
  }
  EXPECT_THAT(replay::summary_text(results, setup, true), HasSubstr("  " + std::string(255, 'n')));
  expect_legend_of(replay::breakdown_text(results, setup), "trace");
}

TEST_F(ReplayMeasure, TheSummaryIsOneTableOfPoolsAndTraces) {
  traces_[0].name = "traces/first.csv.gz";
  const auto results = replay::measure_all(traces_, candidates_, {.capacity = gib(1)});
  const std::string text = replay::summary_text(results, {"simulated", gib(1), 0});
  EXPECT_THAT(text, ::testing::ContainsRegex("\npool +first +second\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("\nnaive +2.000 / 1.000 +1.000 / 1.000\n"));
}

TEST_F(ReplayMeasure, TimesThePoolsInTurnSoThatABusySpellMeetsThemAll) {
  std::vector<std::string> made;
  for (replay::Candidate& candidate : candidates_) {
    candidate.make = [&made, name = candidate.name, make = candidate.make](Bytes capacity) {
      made.push_back(name);
      return make(capacity);
    };
  }
  traces_.resize(1);
  std::size_t last = 0;
  std::size_t all = 0;
  (void)replay::measure_all(traces_, candidates_,
                            {.capacity = gib(1), .search = false, .timings = 2, .threads = 1},
                            [&](std::size_t done, std::size_t parts, const std::string& /*what*/) {
                              EXPECT_EQ(done, ++last);
                              all = parts;
                            });
  EXPECT_THAT(made, ElementsAre("naive", "unpooled", "naive", "unpooled", "naive", "unpooled"));
  EXPECT_EQ(last, all);
}

TEST_F(ReplayMeasure, OutOfMemoryIsShownWithWhereAndWhatThereWas) {
  const auto results =
      replay::measure_all(traces_, candidates_, {.capacity = kib(8), .search = false});
  EXPECT_TRUE(replay::any_refused(results));
  const std::string text = replay::results_text(results, {"simulated", kib(8), 0});
  EXPECT_THAT(text,
              HasSubstr("\nnaive: out of memory at operation 1: asked 1 MiB with 0 B "
                        "requested, 0 B allocated, 0 B reserved,\n  largest free block 0 B\n"));
  EXPECT_THAT(replay::summary_text(results, {"simulated", kib(8), 0}),
              HasSubstr("\nsecond:\n  cut short: the gzip data ends early\n"
                        "  naive: out of memory at operation 1: asked 1 MiB with 0 B requested"));
  const Json json = Json::parse(replay::results_json(results, {"simulated", kib(8), 0}));
  const Json& pool = json.at("traces").at(1).at("pools").at(0);
  EXPECT_EQ(pool.at("completed"), false);
  EXPECT_EQ(pool.at("out_of_memory").at("operation"), 1);
  EXPECT_EQ(pool.at("out_of_memory").at("asked_bytes"), 1 << 20);
}

TEST_F(ReplayMeasure, JsonHasTheSameFigures) {
  const auto results = replay::measure_all(traces_, candidates_, {.capacity = gib(1)});
  replay::Advice advice{
      .recommendation = replay::recommend(replay::scores_of(results, {true, true})),
      .variables = {"WEIR_POOL=naive", "WEIR_POOL=unpooled"}};
  const Json json = Json::parse(replay::results_json(results, {"simulated", gib(1), 3}, advice));
  EXPECT_EQ(json.at("upstream"), "simulated");
  EXPECT_EQ(json.at("capacity_bytes"), gib(1).count);
  EXPECT_EQ(json.at("lag"), 3);
  const Json& trace = json.at("traces").at(0);
  EXPECT_EQ(trace.at("trace"), "t");
  EXPECT_EQ(trace.at("operations"), 5);
  EXPECT_EQ(trace.at("buffers"), 3);
  EXPECT_EQ(trace.at("peak_requested_bytes"), 8192);
  EXPECT_EQ(trace.at("complete"), true);
  EXPECT_EQ(json.at("traces").at(1).at("cut"), "the gzip data ends early");
  const Json& naive = trace.at("pools").at(0);
  EXPECT_EQ(naive.at("pool"), "naive");
  EXPECT_EQ(naive.at("completed"), true);
  EXPECT_EQ(naive.at("peak_allocated_bytes"), 8192);
  EXPECT_EQ(naive.at("peak_reserved_bytes"), 16384);
  EXPECT_EQ(naive.at("fragmentation"), 0.5);
  EXPECT_EQ(naive.at("internal_waste_bytes"), 0);
  EXPECT_EQ(naive.at("largest_free_at_peak_bytes"), 4096);
  EXPECT_EQ(naive.at("free_at_peak_bytes"), 8192);
  EXPECT_EQ(naive.at("driver_calls"), 3);
  EXPECT_EQ(naive.at("mapped_pages"), 0);
  EXPECT_EQ(naive.at("waits"), 0);
  EXPECT_GT(naive.at("ns_per_operation"), 0);
  EXPECT_EQ(naive.at("least_capacity").at("bytes"), 8192);
  EXPECT_EQ(naive.at("at_least_capacity").at("peak_reserved_bytes"), 8192);
  EXPECT_EQ(json.at("recommendation").at("best").at("variables"), "WEIR_POOL=unpooled");
  EXPECT_EQ(json.at("recommendation").at("second").at("reserved_over_peak"), 2.0);
}

TEST_F(ReplayMeasure, AdviceIsTheVariablesAndTheReason) {
  replay::Advice advice{.recommendation = replay::Recommendation{.best = {.candidate = 1,
                                                                          .reserved = 1.25,
                                                                          .driver_calls = 0.01,
                                                                          .ns_per_operation = 100},
                                                                 .equal = {},
                                                                 .second = {}},
                        .variables = {"WEIR_POOL=naive", "WEIR_POOL=round"}};
  const replay::Setup lags{"simulated", gib(1), 3};
  EXPECT_EQ(replay::advice_text(advice, lags),
            "recommended: WEIR_POOL=round\n"
            "  reserves 1.250 x the peak requested; 300 ns an operation: 100 its own, and 0.0100 "
            "driver calls of\n    20 us\n"
            "for --lag 3: the device is so many allocations and frees behind the program\n");
  EXPECT_THAT(replay::advice_text(advice, {"simulated", gib(1), 0}),
              AllOf(HasSubstr("\nfor --lag 0: the device is done with memory once it is freed"),
                    HasSubstr("compare with --lag 30 and --lag 200")));
  advice.recommendation->equal = {{.candidate = 0}};
  EXPECT_THAT(replay::advice_text(advice, lags),
              HasSubstr("\n  equal, within the difference of two timings: WEIR_POOL=naive\n"));
  const Json json = Json::parse(replay::results_json({}, {"simulated", gib(1), 0}, advice));
  EXPECT_EQ(json.at("recommendation").at("equal").at(0).at("variables"), "WEIR_POOL=naive");
  advice.recommendation.reset();
  EXPECT_EQ(replay::advice_text(advice, lags),
            "recommended: none, since no pool completed every trace\n");
}

TEST_F(ReplayMeasure, APoolThatTakesTheWholeDeviceDoesNotChooseTheUnitOfABreakdown) {
  auto results = replay::measure_all(traces_, candidates_, {.capacity = gib(1), .search = false});
  results.resize(1);
  const auto breakdown = [](Bytes reserved) {
    return replay::Breakdown{.operation = 1,
                             .page = mib(2),
                             .reserved = reserved,
                             .requested = kib(24),
                             .rounding = kib(8),
                             .page_ends = {},
                             .holes = {},
                             .whole_pages = reserved - kib(32)};
  };
  results[0].measured[0].breakdown = breakdown(kib(64));
  results[0].measured[1].breakdown = breakdown(gib(1));
  for (const bool wide : {false, true}) {
    const std::string text = replay::breakdown_text(results, {"simulated", gib(1), 0}, wide);
    EXPECT_THAT(text, HasSubstr("at its peak, in KiB"));
    EXPECT_THAT(text, ::testing::ContainsRegex("naive +[0-9 ]*64[ /].* 32"));
    EXPECT_THAT(text, ::testing::ContainsRegex("unpooled +[0-9 ]*all +24.* rest\n"));
    EXPECT_THAT(text, HasSubstr("reserved: all of it (all:"));
  }
}

}  // namespace
}  // namespace weir::testing
