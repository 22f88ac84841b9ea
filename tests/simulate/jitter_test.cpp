#include "bench/simulate/jitter.hpp"

#include <gtest/gtest.h>

#include "allocator/base/error.hpp"

namespace weir::simulate {
namespace {

TEST(SimulatedJitter, DrawsAsTheHistogramSays) {
  const Distribution of({{Time(10), Time(20), 3}, {Time(100), Time(200), 1}});
  Random random(1);
  int small = 0;
  constexpr int kDraws = 10'000;
  for (int i = 0; i < kDraws; ++i) {
    const Time time = of.draw(random);
    const bool is_small = time >= Time(10) && time <= Time(20);
    ASSERT_TRUE(is_small || (time >= Time(100) && time <= Time(200))) << time.count();
    small += is_small ? 1 : 0;
  }
  EXPECT_NEAR(small, 0.75 * kDraws, 200);
  EXPECT_EQ(of.quantile(0), Time(10));
  EXPECT_EQ(of.quantile(0.75), Time(100));
  EXPECT_EQ(of.quantile(1), Time(200));
  EXPECT_DOUBLE_EQ(of.mean_ns(), (3 * 15.0 + 150) / 4);
  EXPECT_EQ(Distribution().draw(random), Time(0));
}

TEST(SimulatedJitter, AHistogramHoldsEachSample) {
  std::vector<Time> samples;
  for (int i = 0; i < 1000; ++i) samples.emplace_back(i * i);
  const Distribution of(histogram(samples));
  EXPECT_EQ(of.buckets().back().count, samples.size());
  EXPECT_NEAR(static_cast<double>(of.quantile(0.5).count()), 500 * 500, 25'000);
}

TEST(SimulatedJitter, ReadsWhatItWrites) {
  const std::string text = format_jitter(assumed_jitter());
  EXPECT_EQ(format_jitter(parse_jitter("file", text)), text);
  EXPECT_NEAR(static_cast<double>(assumed_jitter().wake_up.quantile(0.5).count()), 20e3, 1e3);
}

TEST(SimulatedJitter, RefusesWhatIsNoHistogram) {
  for (const char* text :
       {"wake_up 1 2", "wake_up 1 2 3 4", "nobody 1 2 3", "wake_up 2 1 3", "wake_up -1 2 3",
        "wake_up 1 2 3\nwake_up 1 2 3", "host 1 99999999999999999 1", "device 1 2 x"}) {
    EXPECT_THROW((void)parse_jitter("file", text), UsageError) << text;
  }
  EXPECT_NO_THROW((void)parse_jitter("file", "# nothing\n\nhost 0 5 2 # two\n"));
  EXPECT_THROW((void)read_jitter("no/such/file"), UsageError);
}

}  // namespace
}  // namespace weir::simulate
