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
