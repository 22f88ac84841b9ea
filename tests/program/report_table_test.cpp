#include "tools/program/report_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/table_checks.hpp"
#include "tools/program/table.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ReportTable made_up_table(const std::string& program) {
  ReportTable table;
  table.numbers({"pid", "process"}, {"7", "1234"})
      .bytes({"reserved", "memory taken"}, {gib(2), std::nullopt})
      .times({"waited", "for memory", Shown::kWide}, {5e8, 0.0})
      .words({"program", "its command"}, {program, "b"}, Long::kCut);
  return table;
}

TEST(ReportTable, HasTheUnitInTheHeadingAndALegendBelow) {
  EXPECT_EQ(made_up_table("a").format(false),
            " pid  reserved GiB  program\n"
            "   7             2  a\n"
            "1234             -  b\n"
            "  pid: process; reserved GiB: memory taken; program: its command.\n");
}

TEST(ReportTable, SizesHaveOneUnitWithoutThoseThatAreHidden) {
  ReportTable table;
  table.words({"policy", "its name"}, {"a", "b"})
      .bytes({"needs", "least memory"}, {mib(122) + kib(604), std::nullopt})
      .bytes({"peak", "most memory"}, {kib(1659), mib(40)})
      .bytes({"staging", "of the host", Shown::kWide}, {Bytes{5}, gib(120)})
      .rates({"rate", "of copies"}, {gib(2), gib(1)});
  EXPECT_EQ(table.rows(false),
            "policy  needs MiB  peak MiB  rate GiB/s\n"
            "a          122.59      1.62           2\n"
            "b               -     40.00           1\n");
  EXPECT_THAT(table.rows(true), HasSubstr("policy  needs GiB  peak GiB  staging GiB  rate GiB/s"));
}

TEST(ReportTable, AColumnWithNothingButDashesIsLeftOutWithItsLegend) {
  ReportTable table;
  table.words({"task", "what ran"}, {"-", "-"})
      .numbers({"share", "of the time"}, {"-", ""})
      .rates({"rate", "while it ran"}, {std::nullopt, std::nullopt})
      .numbers({"naive", ""}, {"-", "-"})
      .numbers({"count", "how many"}, {"-", "7"});
  EXPECT_EQ(table.format(false),
            "task  naive  count\n"
            "-         -      -\n"
            "-         -      7\n"
            "  task: what ran; count: how many.\n");
}

TEST(ReportTable, TablesOfOneReportHaveTheSameUnits) {
  std::vector<ReportTable> tables(2);
  tables[0].words({"held by", "a label"}, {"x"}).bytes({"held", "in use"}, {mib(3)});
  tables[1].words({"held by", "a site"}, {"y"}).bytes({"held", "in use"}, {kib(100)});
  EXPECT_THAT(tables[1].rows(false), HasSubstr("held KiB"));
  ReportTable::use_same_units(tables);
  EXPECT_EQ(tables[0].rows(false), "held by  held KiB\nx            3072\n");
  EXPECT_EQ(tables[1].rows(false), "held by  held KiB\ny             100\n");
}

TEST(ReportTable, AWideOneHasAllColumnsAndKeepsLongText) {
  const std::string text = made_up_table(std::string(300, 'x')).format(true);
  EXPECT_THAT(text, HasSubstr(" pid  reserved GiB  waited ms  program\n"));
  EXPECT_THAT(text, HasSubstr(std::string(300, 'x') + "\n"));
  expect_legend_of(text, "pid");
}

TEST(ReportTable, LongTextIsCutToFit) {
  const std::string text = made_up_table(std::string(300, 'x')).format(false);
  EXPECT_EQ(widest_line(text), kMostColumns);
  EXPECT_THAT(text, HasSubstr("xxx...\n"));
}

TEST(ReportTable, OfAPathTheEndIsKept) {
  ReportTable table;
  table.words({"call site", "where"}, {"trainer/model/漢字/operations.cpp:44"}, Long::kTail);
  table.numbers({"count", "how many"}, {"1"});
  EXPECT_EQ(table.rows(false, 27), "call site             count\n...operations.cpp:44      1\n");
  EXPECT_THAT(table.rows(true, 27), HasSubstr("trainer/model/漢字/operations.cpp:44"));
}

TEST(ReportTable, FitsANarrowerTerminalButNoneOfSixtyColumns) {
  const std::string name(300, 'x');
  fit_reports_to(80);
  EXPECT_EQ(widest_line(made_up_table(name).format(false)), 80U);
  EXPECT_LE(widest_line(made_up_table(name).legend(true)), 80U);
  fit_reports_to(10);
  EXPECT_EQ(widest_line(made_up_table(name).format(false)), kLeastColumns);
  fit_reports_to(200);
  EXPECT_EQ(widest_line(made_up_table(name).format(false)), kMostColumns);
}

TEST(ReportTable, WideCharactersAreCutByTheirColumns) {
  std::string name;
  for (int i = 0; i < 80; ++i) name += "漢";
  EXPECT_LE(widest_line(made_up_table(name).format(false)), kMostColumns);
}

TEST(ReportTable, TheLastColumnIsWrapped) {
  std::string words = "word";
  for (int i = 0; i < 60; ++i) words += " word";
  ReportTable table;
  table.words({"name", "its name"}, {"a"}).words({"what", "what it is"}, {words}, Long::kWrap);
  const std::string text = table.format(false);
  EXPECT_LE(widest_line(text), kMostColumns);
  EXPECT_THAT(text, HasSubstr("\n      word word"));
  EXPECT_THAT(text, Not(HasSubstr("...")));
  EXPECT_THAT(table.format(true), HasSubstr(words));
}

TEST(ReportTable, TooManyColumnsAreFoldedUnderTheirNames) {
  ReportTable table;
  table.words({"pool", "its name"}, {"naive", "round"});
  for (int i = 0; i < 20; ++i) {
    table.numbers({"a heading " + std::to_string(i), "a figure"}, {std::to_string(i), "-"});
  }
  const std::string text = table.format(false);
  EXPECT_LE(widest_line(text), kMostColumns);
  EXPECT_THAT(text, HasSubstr("\n\npool   a heading "));
  for (int i = 0; i < 20; ++i) EXPECT_THAT(text, HasSubstr(" a heading " + std::to_string(i)));
  EXPECT_THAT(table.format(true), Not(HasSubstr("\n\n")));
}

TEST(ReportTable, FoldedTablesAreOfAboutTheSameWidth) {
  ReportTable table;
  table.words({"pool", "its name"}, {"naive"});
  for (int i = 0; i < 4; ++i) table.numbers({std::string(10, 'a'), "a figure"}, {"1"});
  EXPECT_EQ(table.rows(false, 45),
            "pool   aaaaaaaaaa  aaaaaaaaaa\nnaive           1           1\n\n"
            "pool   aaaaaaaaaa  aaaaaaaaaa\nnaive           1           1\n");
}

TEST(ReportTable, NoLineEndsWithASpace) {
  EXPECT_THAT(made_up_table("a").format(true), Not(HasSubstr(" \n")));
}

TEST(ReportTable, IsEmptyWithoutRows) {
  ReportTable table;
  table.words({"pool", "its name"}, {}).bytes({"reserved", "memory"}, {});
  EXPECT_EQ(table.format(false), "");
}

TEST(ReportTable, FactsAreWrappedUnderTheirValue) {
  EXPECT_EQ(format_facts({{"a", "one two three four"}, {"long", "five"}}, 20),
            "a     one two three\n"
            "      four\n"
            "long  five\n");
  EXPECT_EQ(format_facts({{"path", std::string(120, 'p')}}),
            "path  " + std::string(120, 'p') + "\n");
}

TEST(ReportTable, TextIsWrappedWithAnIndent) {
  EXPECT_EQ(wrapped("one two three", 2, 8), "one two\n  three\n");
}

TEST(ProgressBar, IsShownOnTerminalsThatCanRedrawALine) {
  EXPECT_TRUE(shows_progress(true, "xterm"));
  EXPECT_FALSE(shows_progress(false, "xterm"));
  EXPECT_FALSE(shows_progress(true, "dumb"));
  EXPECT_FALSE(shows_progress(true, ""));
  EXPECT_FALSE(shows_progress(true, nullptr));
}

}  // namespace
}  // namespace weir::testing
