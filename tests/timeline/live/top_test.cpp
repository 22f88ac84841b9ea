#include "tools/weir/live/top.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

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
