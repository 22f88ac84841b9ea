#include "trainer/dispatch/dispatch.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/table_checks.hpp"
#include "tools/program/json_text.hpp"
#include "trainer/expect_parts.hpp"

namespace weir::testing {
namespace {

/// Binary fractions, so that sums and ratios are exact.
DispatchRound made_up_round(double each, double once) {
  return {.stages = {.submit = 0.0625,
                     .submit_waking = 0.125,
                     .execute = 1,
                     .device = 1.5,
                     .back = 0.4375},
          .each = each,
          .once = once,
          .issued = 0.25};
}

CaseFigures made_up_case() {
  return {.what = {.elements = 7},
          .rounds = {made_up_round(12, 8.5), made_up_round(24, 17), made_up_round(6, 4.25)}};
}

/// A frontend slower by so much that the sides differ, or not.
CaseFigures frontend_case(double submit) {
  CaseFigures figures = made_up_case();
  for (DispatchRound& round : figures.rounds) {
    round.stages = {.submit = submit, .submit_waking = submit, .execute = 1, .device = 1.5};
  }
  return figures;
}

DispatchFigures made_up_figures() {
  return {
      .cases = {made_up_case(), frontend_case(16)},
      .products = {
          {.returned = 0.001, .completed = 0.25, .many_returned = 0.002, .many_completed = 2.5}}};
}

TEST(Dispatch, ARoundMeasuresEachStageAndBothRuns) {
  Addition addition("cpu", {.elements = 100, .frontend = std::chrono::microseconds(5)});
  const auto round = addition.round(8);
  ASSERT_TRUE(round);
  const Stages& s = round->stages;
  for (const double stage :
       {s.submit, s.submit_waking, s.execute, s.device, round->each, round->issued}) {
    EXPECT_GT(stage, 0);
  }
  // Each whole cannot be shorter than its part. (For the device's time that is not certain: only
  // the execution contains the operation that marks its beginning, and it may be interrupted.)
  EXPECT_GE(s.submit, 5e-6);
  EXPECT_GE(s.submit_waking, 5e-6);
  EXPECT_GE(round->once, round->issued);
}

TEST(Dispatch, TheOperationAddsOne) {
  Addition addition("cpu", {.elements = 3});
  EXPECT_EQ(addition.result(), std::vector<float>(3, 2.0F));
  ASSERT_TRUE(addition.round(2));
  EXPECT_EQ(addition.result(), std::vector<float>(3, 2.0F));
}

TEST(Dispatch, AStoppedRoundIsNoRound) {
  std::stop_source source;
  Addition addition("cpu", {.elements = 3}, source.get_token());
  Product product("cpu", 4, source.get_token());
  EXPECT_TRUE(product.round());
  source.request_stop();
  EXPECT_FALSE(addition.round(1000000));
  EXPECT_FALSE(product.round());
}

TEST(Dispatch, AProductIsThereNoEarlierThanItsCallReturns) {
  Product product("cpu", 16);
  const auto round = product.round();
  ASSERT_TRUE(round);
  EXPECT_GT(round->returned, 0);
  EXPECT_GE(round->completed, round->returned);
  EXPECT_GE(round->many_completed, round->many_returned);
}

TEST(Dispatch, MeasuresEveryCaseInEveryRound) {
  const DispatchSettings settings{
      .operations = 4, .rounds = 7, .elements_large = 64, .frontend = 1, .matrix = 4};
  const DispatchFigures figures = measure_dispatch(settings);
  ASSERT_EQ(figures.cases.size(), 3U);
  for (const CaseFigures& c : figures.cases) EXPECT_EQ(c.rounds.size(), 7U);
  EXPECT_EQ(figures.cases[0].what.elements, 64U);
  EXPECT_EQ(figures.cases[1].what.frontend.count(), 1);
  EXPECT_EQ(figures.cases[2].what.frontend.count(), 0);
  EXPECT_EQ(figures.products.size(), 5U);
  EXPECT_FALSE(figures.interrupted);
}

TEST(DispatchSummary, TakesMediansAndTheRatiosOfEachRound) {
  const CaseSummary s = summarize(made_up_case(), 8);
  EXPECT_EQ(s.rounds, 3U);
  EXPECT_EQ(s.stages.submit, 0.0625);
  EXPECT_EQ(s.stages.back, 0.4375);
  EXPECT_EQ(s.issued, 0.25);
  ASSERT_EQ(s.predictions.size(), 2U);
  const Prediction& each = s.predictions[0];
  EXPECT_EQ(each.measured, 12);
  EXPECT_EQ(each.predicted, 12);
  EXPECT_EQ(each.ratio, 1);  // of 0.5, 1 and 2
  EXPECT_EQ(each.low, 0.75);
  EXPECT_EQ(each.high, 1.5);
  EXPECT_EQ(s.predictions[1].predicted, 8.5);
}

TEST(DispatchSummary, ExpectsThePredictionWhoseAssumptionHolds) {
  const auto expected = [](const CaseFigures& figures) {
    std::vector<std::string> formulas;
    for (const Prediction& p : summarize(figures, 8).predictions) {
      if (p.expected) formulas.push_back(p.formula);
    }
    return formulas;
  };
  using Formulas = std::vector<std::string>;
  EXPECT_EQ(expected(made_up_case()), (Formulas{"n*(t1 + t2 + t3)", "t1 + n*t2 + t3"}));
  EXPECT_EQ(expected(frontend_case(16)), (Formulas{"n*(t1 + t2 + t3)", "n*t1 + t2 + t3"}));
  EXPECT_EQ(expected(frontend_case(4)), (Formulas{"n*(t1 + t2 + t3)"}));
}

TEST(DispatchSummary, ShowsTheSumOfTheSidesOnlyWhereTheyAreNear) {
  EXPECT_EQ(summarize(frontend_case(16), 8).predictions.size(), 3U);
  const CaseSummary near = summarize(frontend_case(4), 8);
  ASSERT_EQ(near.predictions.size(), 4U);
  EXPECT_EQ(near.predictions.back().predicted, 8 * (4 + 1.5));
}

TEST(DispatchReport, ShowsStagesPredictionsAndTheProduct) {
  const std::string text = format_dispatch({.operations = 8}, made_up_figures());
  expect_parts(
      text,
      {"n = 8 operations", "7 elements", "62500.00", "  the device", "the frontend",
       "waiting for each: n*(t1 + t2 + t3)          1.000    12000.000     12000.000  yes",
       "waiting once: until the last call returned      -      250.000             -  -",
       "waiting once: t1 + n*t2 + t3", "waiting once: n*t1 + t2 + t3", "1024 x 1024 matrix product",
       "10 times, one wait                 2.000          2500.000"});
  EXPECT_EQ(text.find("interrupted"), std::string::npos);
  expect_legend_of(text, "x");
  expect_legend_of(text, "waiting");
  expect_legend_of(text, "1024 x 1024 matrix product");
}

TEST(DispatchReport, AWideOneHasAllColumns) {
  const std::string text = format_dispatch({.operations = 8}, made_up_figures(), true);
  expect_parts(text, {"t1 us", "waking us", "t2 us", "device us", "t3 us", "     3  the device",
                      "  0.750 to 1.500  "});
  expect_legend_of(text, "x");
  expect_legend_of(text, "waiting");
}

TEST(DispatchReport, FitsTheTerminalWhateverTheFiguresAre) {
  DispatchFigures figures = made_up_figures();
  for (CaseFigures& c : figures.cases) {
    c.what.elements = 100'000'000;
    c.what.frontend = std::chrono::microseconds(18'446'744'073'709);
  }
  EXPECT_LE(widest_line(format_dispatch({.operations = UINT64_MAX}, figures)), 100U);
}

TEST(DispatchReport, JsonHasTheSameFigures) {
  const DispatchSettings settings{.operations = 8};
  const auto j = nlohmann::json::parse(dispatch_json(settings, made_up_figures()));
  EXPECT_EQ(j["settings"], settings_json(settings.lines()));
  EXPECT_EQ(j["settings"]["operations"], (nlohmann::json{{"value", "8"}, {"source", "program"}}));
  EXPECT_EQ(j["operations"], 8);
  EXPECT_EQ(j["interrupted"], false);
  ASSERT_EQ(j["cases"].size(), 2U);
  const auto& c = j["cases"][0];
  EXPECT_EQ(c["elements"], 7);
  EXPECT_EQ(c["rounds"], 3);
  EXPECT_EQ(c["slower_side"], "device");
  EXPECT_EQ(j["cases"][1]["slower_side"], "frontend");
  EXPECT_EQ(c["stages_seconds"]["t1_submit"], 0.0625);
  EXPECT_EQ(c["stages_seconds"]["t1_submit_waking"], 0.125);
  EXPECT_EQ(c["stages_seconds"]["t2_execute"], 1);
  EXPECT_EQ(c["stages_seconds"]["device"], 1.5);
  EXPECT_EQ(c["stages_seconds"]["t3_return"], 0.4375);
  const auto& each = c["predictions"][0];
  EXPECT_EQ(each["measured_seconds"], 12);
  EXPECT_EQ(each["predicted_seconds"], 12);
  EXPECT_EQ(each["ratio"], 1);
  EXPECT_EQ(each["ratio_lower_quartile"], 0.75);
  EXPECT_EQ(each["ratio_upper_quartile"], 1.5);
  EXPECT_EQ(each["expected_to_hold"], true);
  EXPECT_EQ(j["matrix_product"]["one"]["completed_seconds"], 0.25);
  EXPECT_EQ(j["matrix_product"]["many"]["products"], 10);
}

TEST(DispatchReport, WithoutARoundItSaysOnlyThatItWasInterrupted) {
  const DispatchFigures none{.cases = {{.what = {}, .rounds = {}}}, .interrupted = true};
  const std::string text = format_dispatch({}, none);
  EXPECT_EQ(text.find("t1 us"), std::string::npos) << text;
  EXPECT_NE(text.find("interrupted: these are the figures so far"), std::string::npos) << text;
  const auto j = nlohmann::json::parse(dispatch_json({}, none));
  EXPECT_EQ(j["cases"][0]["rounds"], 0);
  EXPECT_FALSE(j["cases"][0].contains("predictions"));
  EXPECT_EQ(j["interrupted"], true);
}

/// Binary fractions, so that sums are exact.
constexpr Stages kDeviceSlower{
    .submit = 0.25, .submit_waking = 1, .execute = 8, .device = 8.5, .back = 2};
constexpr Stages kFrontendSlower{
    .submit = 8, .submit_waking = 9, .execute = 0.25, .device = 0.5, .back = 2};

TEST(DispatchModel, TheDeviceIsSlowerWhenAllItsWorkTakesLongerThanTheOtherCalls) {
  Stages s{.submit = 4, .execute = 3};
  EXPECT_EQ(slower_side(3, s), SlowerSide::kDevice);    // 9 > 8
  EXPECT_EQ(slower_side(4, s), SlowerSide::kFrontend);  // 12 = 12
  EXPECT_EQ(slower_side(5, s), SlowerSide::kFrontend);  // 15 < 16
  s.execute = 4;
  EXPECT_EQ(slower_side(1000, s), SlowerSide::kDevice);  // 4000 > 3996
}

TEST(DispatchModel, WaitingForEachOverlapsNothing) {
  EXPECT_EQ(predict_each(1000, kDeviceSlower), 10250);
  EXPECT_EQ(predict_each(1000, kFrontendSlower), 10250);
}

TEST(DispatchModel, WaitingOnceBehindASlowerDeviceLeavesOnlyItsWorkBetweenTheEnds) {
  EXPECT_EQ(predict_once(1000, kDeviceSlower), 8002.25);
}

TEST(DispatchModel, WaitingOnceBehindASlowerFrontendLeavesOnlyTheLastOperation) {
  constexpr Stages kNeverAsleep{.submit = 2, .submit_waking = 9, .execute = 0.5, .back = 2};
  EXPECT_FALSE(runs_dry(kNeverAsleep));
  EXPECT_EQ(predict_once_frontend(1000, kNeverAsleep), 2002.5);
}

TEST(DispatchModel, ADeviceThatRunsDryIsWokenByEveryCall) {
  EXPECT_TRUE(runs_dry(kFrontendSlower));
  EXPECT_FALSE(runs_dry(kDeviceSlower));
  EXPECT_EQ(predict_once_frontend(1000, kFrontendSlower), 9002.25);
}

TEST(DispatchModel, AWakingCallIsNeverTakenToBeTheCheaperOne) {
  Stages s = kFrontendSlower;
  s.submit_waking = 7;
  EXPECT_EQ(predict_once_frontend(1000, s), 8002.25);
}

TEST(DispatchModel, SidesThatExcludeEachOtherAddUp) {
  EXPECT_EQ(predict_once_in_turns(1000, kFrontendSlower), 8502);
}

TEST(DispatchModel, SidesAreApartWhicheverIsTheSlower) {
  EXPECT_TRUE(sides_apart(kDeviceSlower));
  EXPECT_TRUE(sides_apart(kFrontendSlower));
  EXPECT_FALSE(sides_apart({.submit = 1, .device = 8}));
  EXPECT_FALSE(sides_apart({.submit = 8, .device = 1}));
  EXPECT_FALSE(sides_apart({.submit = 1, .device = 1}));
}

TEST(DispatchModel, OneOperationIsOneRoundTripHoweverItIsWaitedFor) {
  EXPECT_EQ(predict_each(1, kDeviceSlower), 10.25);
  EXPECT_EQ(predict_once(1, kDeviceSlower), 10.25);
  EXPECT_EQ(predict_once_frontend(1, kDeviceSlower), 10.25);
}

}  // namespace
}  // namespace weir::testing
