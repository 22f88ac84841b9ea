#include "tools/weir/live/top_screen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "allocator/base/bytes.hpp"
#include "support/table_checks.hpp"
#include "tools/program/printable.hpp"
#include "tools/weir/live/top.hpp"

namespace weir::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using weir::testing::lines_of_text;

TopRow row(std::uint32_t pid, const std::string& program) {
  TopRow row{.pid = pid, .user = "ann", .program = program};
  row.last = {.budget = mib(6144).count,
              .allocated = mib(1024).count,
              .awaiting = mib(256).count,
              .reserved = mib(3072).count};
  row.rates = {.batches = 12.34, .stalls = 0.5, .stalled = 0.123, .idle = std::nullopt};
  for (std::uint64_t i = 0; i < 120; ++i) row.allocated.push_back(i);
  return row;
}

TEST(TopScreen, ShowsEveryColumnWhereThereIsRoom) {
  const std::string text = top_text({.rows = {row(7, "train")}}, {.width = kEveryColumn});
  const std::vector<std::string> lines = lines_of_text(text);
  ASSERT_GE(lines.size(), 4U) << text;
  EXPECT_EQ(lines[0], "1 program: 3 GiB reserved, 1 GiB allocated, 256 MiB awaiting");
  for (const char* heading :
       {"pid", "program", "budget GiB", "allocated GiB", "awaiting GiB", "reserved GiB",
        "batches/s", "stalls/s", "stalled", "idle", "history"}) {
    EXPECT_THAT(lines[1], HasSubstr(heading));
    EXPECT_THAT(text, ContainsRegex("[ \n]" + std::string(heading) + ": "));
  }
  EXPECT_THAT(lines[1], Not(HasSubstr("user")));
  for (const char* cell : {"  7 train ", " 6.00 ", " 1.00 ", " 0.25 ", " 3.00 ", " #####..... ",
                           " 12.3 ", " 0.5 ", " 12.3% ", " - ", "####"}) {
    EXPECT_THAT(lines[2], HasSubstr(cell));
  }
}

TEST(TopScreen, FitsEveryWidth) {
  Top top{
      .rows = {row(7, "a program of many words --with --flags"), row(4'194'304, "漢字 é\x1b[2J")}};
  top.rows[0].user = "somebody with a long name";
  top.rows[0].last.budget = std::numeric_limits<std::uint64_t>::max();
  top.rows[0].last.reserved = std::numeric_limits<std::uint64_t>::max();
  top.rows[1].rates = {.batches = 1e300, .stalls = 1e300, .stalled = 1e300, .idle = 1.0};
  top.unreadable = 3;
  for (std::size_t width = 20; width <= 200; ++width) {
    for (const bool utf8 : {false, true}) {
      const std::string text = top_text(top, {.width = width, .utf8 = utf8});
      const auto lines = lines_of_text(text);
      ASSERT_GE(lines.size(), 6U);
      for (const std::string& line : lines) {
        ASSERT_LE(columns_of(line), width) << line;
        ASSERT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
        ASSERT_EQ(line.find('\x1b'), std::string::npos);
      }
      ASSERT_THAT(lines[2], HasSubstr("program"));
    }
  }
}

TEST(TopScreen, ColumnsStandUnderTheirHeadingAtEveryWidth) {
  const Top top{.rows = {row(1234567, "漢字"), row(7, "b")}};
  for (std::size_t width = 34; width <= 200; ++width) {
    const auto lines = lines_of_text(top_text(top, {.width = width, .utf8 = true}));
    const std::size_t end = lines[1].find("reserved GiB") + 12;
    for (std::size_t i = 2; i < 4; ++i) {
      ASSERT_THAT(fitted(lines[i], end, Align::kLeft), ::testing::EndsWith(" 3.00")) << lines[i];
    }
  }
}

TEST(TopScreen, ANarrowOneKeepsWhatMattersMost) {
  const std::string text = top_text({.rows = {row(7, "train")}}, {.width = 40});
  EXPECT_THAT(text, HasSubstr("reserved"));
  EXPECT_THAT(text, HasSubstr("budget"));
  EXPECT_THAT(text, Not(HasSubstr("history")));
}

TEST(TopScreen, SaysHowManyRowsHadNoRoom) {
  Top top;
  for (std::uint32_t i = 1; i <= 10; ++i) top.rows.push_back(row(i, "train"));
  for (std::size_t height = 4; height <= 14; ++height) {
    const auto lines = lines_of_text(top_text(top, {.width = 80, .height = height}));
    ASSERT_LE(lines.size(), height);
    if (height >= 12) {
      EXPECT_EQ(lines.size(), 12U) << "and no room for a legend";
    } else {
      EXPECT_EQ(lines.back(), "and " + std::to_string(10 - (height - 3)) + " more");
    }
  }
}

TEST(TopScreen, IsNeverHigherThanTheTerminal) {
  Top top;
  for (std::uint32_t programs = 0; programs <= 6; ++programs) {
    for (const std::size_t unreadable : {0U, 1U}) {
      top.unreadable = unreadable;
      for (std::size_t height = 1; height <= 9; ++height) {
        EXPECT_LE(lines_of_text(top_text(top, {.width = 80, .height = height})).size(), height);
      }
    }
    top.rows.push_back(row(programs + 1, "train"));
  }
}

TEST(TopScreen, TellsUsersApartWhereThereAreSeveral) {
  Top top{.rows = {row(1, "a"), row(2, "b")}};
  top.rows[1].user = "bob";
  const std::string text = top_text(top, {.width = 150});
  EXPECT_THAT(text, HasSubstr("user"));
  EXPECT_THAT(text, HasSubstr(" bob "));
}

TEST(TopScreen, TheLegendIsThereIfAllOfItFits) {
  const Top top{.rows = {row(1, "a")}};
  const std::string all = top_text(top, {.width = 100});
  const std::size_t lines = lines_of_text(all).size();
  EXPECT_LE(weir::testing::widest_line(all), 100U);
  EXPECT_THAT(all, HasSubstr("\n  pid: process; program: command line; "));
  EXPECT_EQ(top_text(top, {.width = 100, .height = lines}), all);
  EXPECT_EQ(lines_of_text(top_text(top, {.width = 100, .height = lines - 1})).size(), 3U);
}

TEST(TopScreen, HasNoColours) {
  EXPECT_THAT(top_text({.rows = {row(1, "a")}}, {.width = 100, .utf8 = true}),
              Not(HasSubstr("\x1b")));
}

TEST(TopScreen, SaysThatNothingRuns) {
  EXPECT_EQ(top_text({}, {.width = 80}), "no program runs under Weir\n");
  EXPECT_THAT(top_text({.rows = {}, .unreadable = 1}, {.width = 80}),
              HasSubstr("\n1 program not shown: they run under another version"));
}

TEST(TopScreen, SaysWhoIsSilent) {
  TopRow silent = row(1, "train");
  silent.silent = true;
  EXPECT_THAT(top_text({.rows = {silent}}, {.width = 80}), HasSubstr(" (silent) train "));
  EXPECT_THAT(top_text({.rows = {silent}}, {.width = 20}), HasSubstr(" train"));
  silent.program = std::string(300, 'x');
  EXPECT_THAT(top_text({.rows = {silent}}, {.width = 80}), HasSubstr(" (silent) xxx"));
}

TEST(TopScreen, BarsAreFilledByShare) {
  EXPECT_EQ(bar(0.5, 4, false), "##..");
  EXPECT_EQ(bar(7, 4, false), "####");
  EXPECT_EQ(bar(-1, 4, false), "....");
  EXPECT_EQ(bar(0.5, 4, true), "██░░");
  EXPECT_EQ(bar(0.625, 4, true), "██▌░");
  for (int i = 0; i <= 1000; ++i) {
    ASSERT_EQ(columns_of(bar(i / 1000.0, 10, true)), 10U) << i;
    ASSERT_EQ(bar(i / 1000.0, 10, false).size(), 10U) << i;
  }
}

TEST(TopScreen, TheHistoryEndsOnTheRight) {
  EXPECT_EQ(sparkline({1}, 6, false), "     #");
  std::vector<std::uint64_t> rising(120);
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = i;
  EXPECT_EQ(sparkline(rising, 8, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline({}, 3, true), "   ");
  EXPECT_EQ(sparkline({0, 0}, 3, true), "   ");
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(sparkline({kMost, kMost, 1}, 120, false), std::string(117, ' ') + "##_");
}

constexpr std::uint64_t kSecond = 1'000'000'000;

timeline::LiveProgram program(std::uint32_t pid, std::uint64_t reserved) {
  timeline::LiveProgram program{.pid = pid, .uid = 3, .program = "train"};
  for (std::uint64_t i = 0; i < 3; ++i) {
    program.samples.push_back({.time_ns = (100 + i) * kSecond,
                               .allocated = i,
                               .reserved = reserved,
                               .settled = 10 * i,
                               .knows_busy = pid == 1 ? 1U : 0U});
  }
  return program;
}

std::string user_of(std::uint32_t uid) { return "user" + std::to_string(uid); }

TEST(Top, TheOneThatReservedMostIsFirst) {
  const Top top =
      top_of({.programs = {program(1, 5), program(2, 9), program(3, 5)}}, 102 * kSecond, user_of);
  ASSERT_EQ(top.rows.size(), 3U);
  EXPECT_EQ(top.rows[0].pid, 2U);
  EXPECT_EQ(top.rows[1].pid, 1U);
  EXPECT_EQ(top.rows[2].pid, 3U);
  EXPECT_EQ(top.rows[0].user, "user3");
  EXPECT_DOUBLE_EQ(top.rows[0].rates.batches.value(), 10.0);
}

TEST(Top, AProgramWithoutNewSamplesIsSilentAndHasNoRates) {
  const Top top = top_of({.programs = {program(1, 5)}}, 110 * kSecond, user_of);
  EXPECT_TRUE(top.rows[0].silent);
  EXPECT_FALSE(top.rows[0].rates.batches.has_value());
  EXPECT_EQ(top.rows[0].last.reserved, 5U) << "what it had is still there";
  EXPECT_TRUE(top_of({.programs = {{.pid = 1}}}, 0, user_of).rows[0].silent);
}

TEST(Top, TimesOfAnotherClockDoNotSilenceIt) {
  EXPECT_FALSE(top_of({.programs = {program(1, 5)}}, 5, user_of).rows[0].silent);
}

TEST(Top, JsonHasTheSameFiguresAndNullWhereNothingIsKnown) {
  timeline::LiveProgram strange = program(2, 4);
  strange.program = "\xff</script>";
  const auto json = nlohmann::json::parse(top_json(
      top_of({.programs = {program(1, 5), strange}, .unreadable = 2}, 102 * kSecond, user_of)));
  EXPECT_EQ(json["unreadable"], 2);
  const auto& first = json["programs"][0];
  EXPECT_EQ(first["pid"], 1);
  EXPECT_EQ(first["reserved_bytes"], 5);
  EXPECT_EQ(first["batches_per_second"], 10.0);
  EXPECT_EQ(first["idle_share"], 1.0);
  EXPECT_EQ(first["allocated_bytes_history"], nlohmann::json({0, 1, 2}));
  EXPECT_TRUE(json["programs"][1]["idle_share"].is_null());
  EXPECT_TRUE(json["programs"][1]["busy_ns"].is_null());
}

}  // namespace
}  // namespace weir::cli
