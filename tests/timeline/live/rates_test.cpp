#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tools/timeline/live/reader.hpp"

namespace weir::timeline {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(LiveRates, AreDifferencesOverTheTimeBetween) {
  const std::vector<LiveSample> samples{
      {.time_ns = 10 * kSecond, .settled = 5, .stalls = 2, .stalled_ns = 0, .knows_busy = 1},
      {.time_ns = 12 * kSecond,
       .settled = 11,
       .stalls = 3,
       .stalled_ns = kSecond / 2,
       .knows_busy = 1,
       .busy_ns = kSecond}};
  const LiveRates rates = rates_of(samples);
  EXPECT_DOUBLE_EQ(rates.batches.value(), 3.0);
  EXPECT_DOUBLE_EQ(rates.stalls.value(), 0.5);
  EXPECT_DOUBLE_EQ(rates.stalled.value(), 0.25);
  EXPECT_DOUBLE_EQ(rates.idle.value(), 0.5);
}

TEST(LiveRates, LookBackNoFurtherThanTheWindow) {
  std::vector<LiveSample> samples;
  for (std::uint64_t i = 0; i < 20; ++i) {
    samples.push_back({.time_ns = i * kSecond, .settled = i < 10 ? 1000 * i : 10'000});
  }
  EXPECT_DOUBLE_EQ(rates_of(samples, std::chrono::seconds(9)).batches.value(), 0.0);
  EXPECT_GT(rates_of(samples, std::chrono::seconds(12)).batches.value(), 0.0);
}

TEST(LiveRates, NeedTwoSamples) {
  EXPECT_FALSE(rates_of({}).batches.has_value());
  const std::vector<LiveSample> one{{.time_ns = 1, .settled = 1}};
  EXPECT_FALSE(rates_of(one).batches.has_value());
  const std::vector<LiveSample> far_apart{{.time_ns = 1}, {.time_ns = 60 * kSecond}};
  EXPECT_FALSE(rates_of(far_apart).batches.has_value());
}

TEST(LiveRates, OfACounterThatJustWentBackAreNotKnown) {
  const std::vector<LiveSample> samples{{.time_ns = kSecond, .settled = 9, .stalls = 1},
                                        {.time_ns = 2 * kSecond, .settled = 3, .stalls = 2}};
  EXPECT_FALSE(rates_of(samples).batches.has_value());
  EXPECT_DOUBLE_EQ(rates_of(samples).stalls.value(), 1.0);
}

TEST(LiveRates, OfACounterThatWentBackAreOfTheTimeSince) {
  // By its end the next scheduler has counted more than the first had.
  const std::vector<LiveSample> samples{{.time_ns = 1 * kSecond, .settled = 5, .stalled_ns = 7},
                                        {.time_ns = 2 * kSecond, .settled = 9, .stalled_ns = 8},
                                        {.time_ns = 3 * kSecond, .settled = 1, .stalled_ns = 8},
                                        {.time_ns = 5 * kSecond, .settled = 21, .stalled_ns = 11}};
  EXPECT_DOUBLE_EQ(rates_of(samples).batches.value(), 10.0);
  EXPECT_DOUBLE_EQ(rates_of(samples).stalled.value(), 1e-9) << "this one never went back";
}

TEST(LiveRates, IdleIsOfTheTimeSinceTheDeviceIsThere) {
  std::vector<LiveSample> samples{
      {.time_ns = 1 * kSecond}, {.time_ns = 2 * kSecond, .knows_busy = 1, .busy_ns = kSecond / 2}};
  EXPECT_FALSE(rates_of(samples).idle.has_value()) << "one sample of it";
  samples.push_back({.time_ns = 4 * kSecond, .knows_busy = 1, .busy_ns = 2 * kSecond});
  EXPECT_DOUBLE_EQ(rates_of(samples).idle.value(), 0.25);
}

TEST(LiveRates, IdleIsOfTheTimeSinceTheNextDeviceIsThere) {
  const std::vector<LiveSample> samples{
      {.time_ns = 1 * kSecond, .knows_busy = 1, .busy_ns = kSecond},
      {.time_ns = 2 * kSecond},
      {.time_ns = 3 * kSecond, .knows_busy = 1, .busy_ns = 3 * kSecond},
      {.time_ns = 4 * kSecond, .knows_busy = 1, .busy_ns = 0},
      {.time_ns = 5 * kSecond, .knows_busy = 1, .busy_ns = kSecond / 4}};
  EXPECT_DOUBLE_EQ(rates_of(samples).idle.value(), 0.75);
}

TEST(LiveRates, OfADeviceThatDoesNotSayHowBusyItIsHaveNoIdleShare) {
  const std::vector<LiveSample> samples{{.time_ns = kSecond, .knows_busy = 1},
                                        {.time_ns = 2 * kSecond}};
  EXPECT_FALSE(rates_of(samples).idle.has_value());
}

TEST(LiveRates, OfImpossibleSamplesAreFiniteOrNotKnown) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::vector<LiveSample> samples{
      {.time_ns = kMost, .settled = kMost},
      {.time_ns = 5, .knows_busy = 7},
      {.time_ns = 6, .settled = kMost, .stalled_ns = kMost, .knows_busy = 9, .busy_ns = kMost}};
  const LiveRates rates = rates_of(samples);
  EXPECT_TRUE(std::isfinite(rates.batches.value()));
  EXPECT_TRUE(std::isfinite(rates.stalled.value()));
  EXPECT_DOUBLE_EQ(rates.idle.value(), 0.0);
}

}  // namespace
}  // namespace weir::timeline
