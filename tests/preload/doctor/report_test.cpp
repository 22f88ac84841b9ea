// What people and programs read.

#include "tools/weir/doctor/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "support/environment.hpp"
#include "tools/program/colour.hpp"

namespace weir::cli::doctor {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Report sample() {
  Findings driver(Group::kDriver);
  driver.ok("driver", "NVIDIA's driver");
  driver.warn("cupti", "CUPTI was not found", "install it", {Use::kDeviceWork});
  Findings library(Group::kLibrary);
  library.fails("library", "there is no library at /home/anna/weir/libweir.so", "install the wheel",
                {Use::kRun, Use::kPlug});
  Report report{.version = "0.1.0",
                .findings = driver.take(),
                .variables = {{"WEIR_ALLOC_LOG", "/home/anna/log"}},
                .whose = {.homes = {"/home/anna"}, .user = "anna", .host = "gpu7"}};
  for (Finding& finding : library.take()) report.findings.push_back(std::move(finding));
  return report;
}

TEST(DoctorReport, IsInGroupsWithARemedyUnderWhatIsNotOk) {
  EXPECT_EQ(report_text(sample(), false),
            "weir 0.1.0\n"
            "\n"
            "driver\n"
            "  ok     NVIDIA's driver\n"
            "  warn   CUPTI was not found\n"
            "         fix: install it\n"
            "\n"
            "library\n"
            "  fails  there is no library at ~/weir/libweir.so\n"
            "         fix: install the wheel\n"
            "\n"
            "1 check fails, 1 warns.\n"
            "Works here: weir-train on a GPU, weir-train on the cpu, weir ps, top and set, a\n"
            "budget shared by processes; does not: GPU programs under weir run, the device's\n"
            "work in timelines.\n");
}

TEST(DoctorReport, LinesAreAtMost80ColumnsAndLoseNoWord) {
  Report report = sample();
  std::string text;
  for (int word = 0; word < 60; ++word) text += "word" + std::to_string(word) + " ";
  report.findings.front().text = text;
  report.findings.back().remedy = text;
  const std::string shown = report_text(report, false);
  std::istringstream lines(shown);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  EXPECT_LE(longest, 80U);
  EXPECT_GE(longest, 70U);
  for (int word = 0; word < 60; ++word)
    EXPECT_THAT(shown, HasSubstr("word" + std::to_string(word)));
}

TEST(DoctorReport, AWordLongerThanALineStaysWhole) {
  Report report = sample();
  const std::string path = "/" + std::string(120, 'x');
  report.findings.front().text = "in " + path;
  EXPECT_THAT(report_text(report, false), HasSubstr("  ok     in\n         " + path + "\n"));
}

TEST(DoctorReport, ColourIsBesideTheWords) {
  const std::string text = report_text(sample(), true);
  EXPECT_THAT(text, HasSubstr("  \x1b[32mok\x1b[0m     NVIDIA's driver\n"));
  EXPECT_THAT(text, HasSubstr("  \x1b[33mwarn\x1b[0m   CUPTI was not found\n"));
  EXPECT_THAT(text, HasSubstr("  \x1b[31mfails\x1b[0m  there is no library"));
  EXPECT_THAT(report_text(sample(), false), ::testing::Not(HasSubstr("\x1b")));
}

TEST(DoctorReport, WhatCouldMoveTheCursorIsEscaped) {
  Report report = sample();
  report.findings.front().text = "WEIR_LOG='\x1b[2J'";
  EXPECT_THAT(report_text(report, false), HasSubstr("WEIR_LOG='\\x1b[2J'"));
}

TEST(DoctorReport, ThePlugIsMentionedWherePyTorchIs) {
  Report report = sample();
  EXPECT_THAT(summary(report), ::testing::Not(HasSubstr("PyTorch")));
  report.has_torch = true;
  EXPECT_THAT(summary(report), HasSubstr("does not: GPU programs under weir run, PyTorch's plug"));
  report.findings.clear();
  EXPECT_EQ(summary(report),
            "Works here: GPU programs under weir run, PyTorch's plug, weir-train on a GPU, "
            "weir-train on the cpu, the device's work in timelines, weir ps, top and set, a budget "
            "shared by processes; does not: nothing.");
}

TEST(DoctorReport, TheStandInIsInTheSummaryToo) {
  Report report = sample();
  report.is_standin = true;
  EXPECT_THAT(summary(report),
              ::testing::StartsWith("Works here, on the stand-in driver and no GPU: weir-train"));
}

TEST(DoctorReport, TheExitCodeCountsOnlyWhatFails) {
  Report report = sample();
  EXPECT_EQ(exit_code(report), 1);
  report.findings.pop_back();
  EXPECT_EQ(exit_code(report), 0);
  EXPECT_THAT(report_text(report, false), HasSubstr("\n0 checks fail, 1 warns.\n"));
}

TEST(DoctorReport, JsonHasTheSame) {
  const Json json = Json::parse(report_json(sample()));
  EXPECT_EQ(json.at("weir"), "0.1.0");
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("standin"), false);
  EXPECT_EQ(json.at("works"), Json({"train-gpu", "train-cpu", "live", "share"}));
  EXPECT_EQ(json.at("does_not"), Json({"run", "device-work"}));
  ASSERT_EQ(json.at("findings").size(), 3U);
  EXPECT_EQ(json.at("findings").at(2), Json({{"group", "library"},
                                             {"check", "library"},
                                             {"state", "fails"},
                                             {"text", "there is no library at ~/weir/libweir.so"},
                                             {"remedy", "install the wheel"}}));
  EXPECT_EQ(json.at("variables"), Json({{"WEIR_ALLOC_LOG", "~/log"}}));
}

TEST(Colour, IsForTerminalsAloneAndNeverWhereNobodyWantsIt) {
  using weir::testing::environment_of;
  EXPECT_TRUE(may_colour(true, environment_of({{"TERM", "xterm"}})));
  EXPECT_TRUE(may_colour(true, environment_of({{"TERM", "xterm"}, {"NO_COLOR", ""}})));
  EXPECT_FALSE(may_colour(false, environment_of({{"TERM", "xterm"}})));
  EXPECT_FALSE(may_colour(true, environment_of({{"TERM", "xterm"}, {"NO_COLOR", "1"}})));
  EXPECT_FALSE(may_colour(true, environment_of({{"TERM", "dumb"}})));
  EXPECT_FALSE(may_colour(true, environment_of({})));
}

}  // namespace
}  // namespace weir::cli::doctor
