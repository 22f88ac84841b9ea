// What people and programs read, and what is left out of it.

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
  Findings found;
  found.begin(Group::kDriver, "driver", {});
  found.ok("NVIDIA's driver");
  found.begin(Group::kDriver, "cupti", {Use::kDeviceWork});
  found.lacks("CUPTI was not found", "install it");
  found.begin(Group::kLibrary, "library", {Use::kRun, Use::kPlug});
  found.fails("there is no library at /home/anna/weir/libweir.so", "install the wheel");
  return {.version = "0.1.0",
          .findings = found.take(),
          .variables = {{"WEIR_ALLOC_LOG", "/home/anna/log"}},
          .whose = {.homes = {"/home/anna"}, .user = "anna", .host = "gpu7"}};
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
            "Works here: weir-train on a GPU, weir-train on the cpu, a budget shared by\n"
            "processes; does not: GPU programs under weir run, the device's work in\n"
            "timelines.\n");
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
            "weir-train on the cpu, the device's work in timelines, a budget shared by processes; "
            "does not: nothing.");
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
  EXPECT_EQ(json.at("works"), Json({"train-gpu", "train-cpu", "share"}));
  EXPECT_EQ(json.at("does_not"), Json({"run", "device-work"}));
  ASSERT_EQ(json.at("findings").size(), 3U);
  EXPECT_EQ(json.at("findings").at(2), Json({{"group", "library"},
                                             {"check", "library"},
                                             {"state", "fails"},
                                             {"text", "there is no library at ~/weir/libweir.so"},
                                             {"remedy", "install the wheel"}}));
  EXPECT_EQ(json.at("variables"), Json({{"WEIR_ALLOC_LOG", "~/log"}}));
}

const Private kAnna{.homes = {"/home/anna"}, .user = "anna", .host = "gpu7"};

TEST(DoctorRedact, TheHomeFolderIsATilde) {
  EXPECT_EQ(redacted("/home/anna/run.log", kAnna), "~/run.log");
  EXPECT_EQ(redacted("WEIR_ALLOC_LOG='/home/anna' and (/home/anna/x)", kAnna),
            "WEIR_ALLOC_LOG='~' and (~/x)");
  EXPECT_EQ(redacted("in /home/anna.", kAnna), "in ~.");
  EXPECT_EQ(redacted("/home/anna/x:/home/anna/y", kAnna), "~/x:~/y");
  EXPECT_EQ(redacted("/home/annabel/x", kAnna), "/home/annabel/x");
  EXPECT_EQ(redacted("/mnt/home/anna.old", {.homes = {"/home/anna/"}, .user = "", .host = ""}),
            "/mnt/home/anna.old");
}

TEST(DoctorRedact, AHomeThatIsNoFolderOfSomebodyChangesNothing) {
  for (const char* home : {"", "/"}) {
    EXPECT_EQ(redacted("/tmp/x", {.homes = {home}, .user = "", .host = ""}), "/tmp/x");
  }
  EXPECT_EQ(redacted("/usr/sbin/x", {.homes = {"/usr/sbin"}, .user = "", .host = ""}),
            "/usr/sbin/x");
}

TEST(DoctorRedact, BothHomesAreTildesWhereHomeIsSetToAnother) {
  const Private two{.homes = {"/tmp/scene", "/home/anna"}, .user = "anna", .host = ""};
  EXPECT_EQ(redacted("/tmp/scene/x and /home/anna/y", two), "~/x and ~/y");
}

TEST(DoctorRedact, FoldersNamedAsUserOrMachineLoseTheName) {
  EXPECT_EQ(redacted("/data/anna/gpu7/x", kAnna), "/data/USER/HOST/x");
  EXPECT_EQ(redacted("/data/annas/x", kAnna), "/data/annas/x");
  EXPECT_EQ(redacted("anna trains", kAnna), "anna trains");
}

TEST(DoctorRedact, TheSystemsFoldersStay) {
  const Private weir{.homes = {"/home/weir"}, .user = "weir", .host = ""};
  EXPECT_EQ(redacted("/usr/lib/weir/libweir.so, /home/weir/lib/weir/x", weir),
            "/usr/lib/weir/libweir.so, ~/lib/USER/x");
  EXPECT_EQ(redacted("/opt/weir", weir), "/opt/weir");
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
