#include "tools/weir/live/ps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/table_checks.hpp"
#include "tools/weir/live/live_programs.hpp"

namespace weir::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::uint64_t kNow = 1'000'000'000'000;

timeline::LiveProgram ps_program(std::uint32_t pid) {
  timeline::LiveProgram program{.pid = pid, .uid = 3, .program = "train.py"};
  program.samples.push_back({.time_ns = kNow});
  program.device_figures = {{.device = 1,
                             .total = gib(16).count,
                             .budget = gib(8).count,
                             .used = gib(3).count,
                             .allocated = gib(1).count,
                             .reserved = gib(2).count,
                             .waits = 12,
                             .waited_ns = 530'000'000},
                            {.device = 2, .budget = gib(4).count}};
  return program;
}

std::string name_of(std::uint32_t uid) { return "user" + std::to_string(uid); }

TEST(Ps, HasALineForEachProgramAndDevice) {
  const Ps ps = ps_of({.programs = {ps_program(7), {.pid = 9, .program = "idle"}}}, kNow, name_of);
  const std::string text = ps_text(ps, {.utf8 = true});
  EXPECT_THAT(
      text,
      StartsWith("pid  device  reserved GiB  budget GiB  allocated GiB  waits  program\n"
                 "7    GPU 0              2           8              1     12  train.py\n"
                 "7    GPU 1              0           4              0      0  train.py\n"
                 "9    -                  -           -              -      -  (silent) idle\n"));
  weir::testing::expect_legend_of(text, "pid");
}

TEST(Ps, SizesAreComparedInOneUnitAlsoWithThoseOfShares) {
  timeline::LiveProgram program = ps_program(7);
  program.device_figures.resize(1);
  program.device_figures[0].allocated = mib(200).count;
  Ps ps = ps_of({.programs = {program}}, kNow, name_of);
  ps.shares.push_back(
      {.id = {.name = "job", .owner = {.id = 3}},
       .budget = gib(8),
       .used = {{.index = 0, .slot = ShareSlot{mib(512), gib(5), gib(6)}, .pid = 7}}});
  const std::string text = ps_text(ps, {.utf8 = true});
  EXPECT_THAT(
      text, StartsWith("pid  device  reserved GiB  budget GiB  allocated GiB  waits  program\n"
                       "7    GPU 0           2.00        8.00           0.20     12  train.py\n"));
  EXPECT_THAT(text, HasSubstr("share  pid  lease GiB  wanted GiB  floor GiB  budget GiB\n"
                              "job    7         5.00        6.00       0.50        8.00\n"));
}

TEST(Ps, AWideTableHasAllColumnsAndCutsNothing) {
  timeline::LiveProgram program = ps_program(7);
  program.program = std::string(300, 'x');
  const std::string text = ps_text(ps_of({.programs = {program}}, kNow, name_of), {.wide = true});
  EXPECT_THAT(text, HasSubstr("allocated GiB  waits  waited ms  program\n"));
  EXPECT_THAT(text, HasSubstr("     12        530  " + std::string(300, 'x') + "\n"));
  weir::testing::expect_legend_of(text, "pid");
}

TEST(Ps, TablesFitTheTerminalWhateverTheFiguresAre) {
  timeline::LiveProgram program = ps_program(4'194'304);
  program.program = std::string(4000, 'x') + "漢字";
  for (timeline::LiveDevice& device : program.device_figures) {
    device.device = 128;
    device.budget = UINT64_MAX;
    device.reserved = UINT64_MAX - 1;
    device.waits = 9'999'999'999;
  }
  Ps ps = ps_of({.programs = {program, ps_program(1)}}, kNow,
                [](std::uint32_t) { return std::string(32, 'u'); });
  ps.shares.push_back(
      {.id = {.name = std::string(200, 's'), .owner = {.id = 3}},
       .budget = {UINT64_MAX},
       .used = {
           {.index = 0, .slot = ShareSlot{Bytes{1}, Bytes{UINT64_MAX}, gib(6)}, .pid = 4'194'304},
           {.index = 2}}});
  const std::string text = ps_text(ps, {.users = true, .utf8 = true});
  EXPECT_LE(weir::testing::widest_line(text), 100U) << text;
  EXPECT_THAT(ps_text(ps, {.users = true, .utf8 = true, .wide = true}),
              HasSubstr(std::string(200, 's')));
}

TEST(Ps, ShowsUsersWhereAsked) {
  const Ps ps = ps_of({.programs = {ps_program(7)}}, kNow, name_of);
  EXPECT_THAT(ps_text(ps, {.users = true, .utf8 = true}), HasSubstr("user3"));
  EXPECT_THAT(ps_text(ps, {.utf8 = true}), Not(HasSubstr("user3")));
}

TEST(Ps, SaysWhatItDoesNotShow) {
  EXPECT_EQ(ps_text({.unreadable = 2}, {.utf8 = true}),
            "no program runs under Weir\n"
            "2 programs not shown: they run under another version of Weir\n");
}

TEST(Ps, ShowsWhoHasHowMuchOfEachSharedBudget) {
  const ShareReport used{
      .id = {.name = "job", .owner = {.id = 3}},
      .budget = gib(8),
      .used = {{.index = 0, .slot = ShareSlot{gib(2), gib(5), gib(6)}, .pid = 7}, {.index = 2}}};
  const ShareReport left{.id = {.name = "old", .owner = {}}, .budget = gib(1)};
  const ShareReport bad{.id = {.name = "bad", .owner = {}}, .fault = "it is no share of Weir"};
  const Ps ps{.shares = {used, left, bad}};
  const std::string text = ps_text(ps, {.utf8 = true});
  EXPECT_THAT(text,
              StartsWith("no program runs under Weir\n"
                         "\n"
                         "share  pid  lease GiB  wanted GiB  floor GiB  budget GiB  fault\n"
                         "job    7            5           6          2           8\n"
                         "job    ?            -           -          -           8  tampered\n"));
  weir::testing::expect_legend_of(text, "share");
  const auto json = nlohmann::json::parse(ps_json(ps)).at("shares");
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0].at("share"), "job");
  EXPECT_EQ(json[0].at("processes")[0].at("lease_bytes"), gib(5).count);
  EXPECT_EQ(json[0].at("processes")[1].at("tampered"), true);
  EXPECT_EQ(share_faults_text(ps.shares), "weir: passed over: it is no share of Weir\n");
}

TEST(Ps, AStrangersNameIsShownAndNotObeyed) {
  timeline::LiveProgram strange = ps_program(7);
  strange.program = "evil\x1b[2J\n8 root";
  const std::string text = ps_text(ps_of({.programs = {strange}}, kNow, name_of), {.utf8 = true});
  EXPECT_THAT(text, HasSubstr("evil\\x1b[2J\\x0a8 root"));
}

TEST(Ps, JsonHasTheSameFigures) {
  const auto json =
      nlohmann::json::parse(ps_json(ps_of({.programs = {ps_program(7)}}, kNow, name_of)));
  const auto& program = json["programs"][0];
  EXPECT_EQ(program["pid"], 7);
  EXPECT_EQ(program["user"], "user3");
  EXPECT_EQ(program["silent"], false);
  ASSERT_EQ(program["devices"].size(), 2U);
  const auto& device = program["devices"][0];
  EXPECT_EQ(device["device"], "GPU 0");
  EXPECT_EQ(device["total_bytes"], gib(16).count);
  EXPECT_EQ(device["budget_bytes"], gib(8).count);
  EXPECT_EQ(device["used_bytes"], gib(3).count);
  EXPECT_EQ(device["reserved_bytes"], gib(2).count);
  EXPECT_EQ(device["waits"], 12);
  EXPECT_EQ(device["waited_ns"], 530'000'000);
  EXPECT_TRUE(program["devices"][1]["total_bytes"].is_null());
}

}  // namespace
}  // namespace weir::cli
