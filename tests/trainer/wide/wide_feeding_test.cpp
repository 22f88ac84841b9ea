// Readers at half the device's speed, at the same and at twice it. docs/wide.md has what they do to
// the time of a step; here is what holds whatever the time.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "trainer/sparse/sparse_reader.hpp"
#include "trainer/wide/wide_jobs.hpp"

namespace weir::testing {
namespace {

/// The readers' time for a batch, as a multiple of the device's.
constexpr std::array kReaderTimes{2.0, 1.0, 0.5};

/// The device's time for a batch, in seconds: the least of some runs, since other programs may take
/// its core.
double device_time(WideSettings settings) {
  settings.train.batches = 8;
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const WideResult run = train_with(settings, Policy::kThrottled, gib(1));
    least = std::min(least, run.run.seconds * (1 - run.run.idle_share) / 8);
  }
  return least;
}

/// Returns the settings with readers that together take `times` the `seconds` for a batch.
WideSettings read_slowly(WideSettings settings, double seconds, double times) {
  const auto readers = static_cast<double>(settings.readers.value);
  settings.read_time = std::chrono::nanoseconds(
      std::max<std::int64_t>(1, std::llround(1e9 * seconds * times * readers)));
  return settings;
}

/// The most that a staging buffer of these batches may have.
Bytes largest_buffer(const WideSettings& settings) {
  std::size_t words = 0;
  BatchPacker packer;
  for (std::uint64_t i = 0; i < settings.train.batches.value; ++i) {
    words = std::max(words, packed_words(packer.prepare(batch_rows(settings, i))));
  }
  return {staging_room(words, 0) * sizeof(float)};
}

TEST(WideFeeding, MemoryIsBoundedAtEachSpeedOfTheReaders) {
  const WideSettings settings = large_batches();
  const WideMemory memory = memory_of(settings);
  const Bytes budget = memory.live + memory.batch * 2;
  const Bytes buffer = largest_buffer(settings);
  const double seconds = device_time(settings);
  const std::uint64_t ahead = settings.readers.value + 1;
  for (const double times : kReaderTimes) {
    SCOPED_TRACE(times);
    const WideResult run =
        finished(train_with(read_slowly(settings, seconds, times), Policy::kThrottled, budget));
    EXPECT_LE(run.run.pool.reserved.peak, budget);
    // A buffer for each batch ahead, the one at hand and each in flight: however many batches.
    const std::uint64_t buffers = ahead + 1 + run.run.admission.most_submitted;
    EXPECT_EQ(run.host_memory.warm_up_batches, 2 * ahead);
    EXPECT_GT(run.host_memory.warm_up, Bytes{});
    EXPECT_GE(run.host_memory.warm_up + run.host_memory.later, run.run.samples.back().staging);
    for (const BatchSample& sample : run.run.samples) {
      EXPECT_GT(sample.staging, Bytes{});
      EXPECT_LE(sample.staging, buffer * buffers);
      EXPECT_LE(sample.staging, budget);
    }
  }
}

TEST(WideFeeding, HostMemoryIsConstantWhereOneBatchIsInFlight) {
  WideSettings settings = large_batches();
  settings.train.batches = 12;
  const double seconds = device_time(settings);
  for (const double times : kReaderTimes) {
    SCOPED_TRACE(times);
    const WideResult run =
        finished(train_with(read_slowly(settings, seconds, times), Policy::kBarrier, gib(1)));
    EXPECT_EQ(run.host_memory.later, Bytes{});
    EXPECT_EQ(run.run.samples.front().staging, run.run.samples.back().staging);
  }
}

TEST(WideFeeding, WeightsAreTheSameUnderEveryPolicyAtEachSpeedOfTheReaders) {
  const WideSettings settings = tiny_wide();
  const WideResult expected = train_to_weights(settings);
  const double seconds = device_time(settings);
  for (const double times : kReaderTimes) {
    for (const Policy policy : kAllPolicies) {
      SCOPED_TRACE(std::string(to_string(policy)) + ", " + std::to_string(times));
      const WideResult run =
          finished(train_with(read_slowly(settings, seconds, times), policy, mib(64)));
      EXPECT_EQ(run.run.weights, expected.run.weights);
      EXPECT_EQ(run.run.mean_loss, expected.run.mean_loss);
    }
  }
}

TEST(WideFeeding, SlowReadersHoldTheDeviceBackAndNothingElse) {
  WideSettings settings = tiny_wide();
  settings.train.batches = 10;
  settings.read_time.value = std::chrono::milliseconds(4);
  const WideResult run = finished(train_to_weights(settings));
  // When the time begins at most three batches are made or being made; two readers make the rest.
  EXPECT_GE(run.run.seconds, 0.004 * (10 - 3) / 2);
  EXPECT_EQ(run.run.admission.forced, 0U);
}

}  // namespace
}  // namespace weir::testing
