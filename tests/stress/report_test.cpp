// The tables of weir-stress.

#include "bench/stress/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/table_checks.hpp"

namespace weir::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> many_allocators() {
  return {"naive",       "round:24", "round:28",        "best_fit:18446744073709551615",
          "paged",       "rmm_pool", "rmm_pool_grow",   "rmm_arena",
          "rmm_binning", "torch",    "torch_expandable"};
}

std::vector<PatternRow> rows() {
  const std::vector<std::string> cells(many_allocators().size(), "123456.789");
  return {{"against best_fit", "blocks kept apart by small ones that stay", cells},
          {"threads", "four threads of random blocks, a stream each", cells}};
}

TEST(StressReport, ATableIsFoldedToFitAndExplainsItsPatternsBelow) {
  const std::string table = pattern_table(many_allocators(), rows(), false);
  EXPECT_LE(weir::testing::widest_line(table), 100U) << table;
  for (const std::string& name : many_allocators()) EXPECT_THAT(table, HasSubstr(name));
  EXPECT_THAT(table, Not(HasSubstr("blocks kept apart")));
  const std::string legend = pattern_legend(rows(), false);
  EXPECT_LE(weir::testing::widest_line(legend), 100U);
  EXPECT_THAT(legend, HasSubstr("  against best_fit: blocks kept apart by small ones that stay\n"));
}

TEST(StressReport, AWideTableHasAllInOneLine) {
  const std::string table = pattern_table(many_allocators(), rows(), true);
  EXPECT_EQ(weir::testing::lines_of_text(table).size(), 3U);
  EXPECT_THAT(table, HasSubstr("  what it does\n"));
  EXPECT_THAT(table, HasSubstr("  blocks kept apart by small ones that stay\n"));
  EXPECT_EQ(pattern_legend(rows(), true), "");
}

TEST(StressReport, RunAheadHasOneUnitAndALegend) {
  const std::string text =
      run_ahead_table({{.policy = Policy::kUnbounded,
                        .ran_out = true,
                        .batches = UINT64_MAX,
                        .peak_reserved = gib(1024),
                        .waits = UINT64_MAX,
                        .wrong = {}},
                       {.policy = Policy::kBarrier, .peak_reserved = gib(512), .wrong = "a fault"}},
                      false);
  EXPECT_LE(weir::testing::widest_line(text), 100U) << text;
  EXPECT_THAT(text, HasSubstr("policy     peak TiB "));
  EXPECT_THAT(text, HasSubstr("unbounded      1.00 "));
  EXPECT_THAT(text, HasSubstr("barrier        0.50 "));
  EXPECT_THAT(text, HasSubstr("wrong\n"));
  weir::testing::expect_legend_of(text, "policy");
}

}  // namespace
}  // namespace weir::bench
