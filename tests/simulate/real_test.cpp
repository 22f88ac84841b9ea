#include "bench/simulate/real.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <thread>

#include "simulate/run.hpp"

namespace weir::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

/// Three batches whose copies take 10 and computes 20. The last one fails after its copy.
class RecordedBatches {
 public:
  RecordedBatches() {
    const std::array<std::array<int, 4>, 3> times{
        {{0, 12, 5, 35}, {1, 23, 6, 59}, {40, 51, 0, 0}}};  // the copy's, the compute's
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      batches_[i].shape.copy = Time(10);
      batches_[i].shape.compute = Time(20);
      batches_[i].delays.host = Time(7);
      batches_[i].copy_enqueued = Time(times[i][0]);
      batches_[i].copied = times[i][1];
      batches_[i].enqueued = Time(times[i][2]);
      batches_[i].computed = times[i][3];
    }
  }
  JitterSamples samples(bool for_device = true) {
    return samples_of(std::array{&batches_[2], &batches_[1], &batches_[0]}, for_device);
  }
  Moments& operator[](std::size_t index) { return batches_.at(index); }

 private:
  std::array<Moments, 3> batches_;
};

TEST(SimulatedMoments, ADelayIsWhatATaskTookFromWhenItCouldBegin) {
  RecordedBatches batches;
  const JitterSamples samples = batches.samples();
  EXPECT_THAT(samples.copy, ElementsAre(Time(2), Time(1), Time(1)));
  EXPECT_THAT(samples.device_idle, ElementsAre(Time(3))) << "it waited for its copy";
  EXPECT_THAT(samples.device, ElementsAre(Time(4))) << "it followed the first at once";
  EXPECT_THAT(samples.host, ElementsAre(Time(7), Time(7)));
  EXPECT_THAT(samples.wake_up, IsEmpty());
  EXPECT_THAT(batches[1].delays.copy, Optional(Time(1)));
  EXPECT_THAT(batches[1].delays.device, Optional(Time(4)));
  EXPECT_FALSE(batches[2].delays.device) << "it has failed";
}

TEST(SimulatedMoments, ATaskThatWaitedOnTheDeviceForMemorySaysNothingOfItsDelay) {
  RecordedBatches batches;
  batches[1].copy_is_handed_over = true;
  batches[0].work_is_handed_over = true;
  const JitterSamples samples = batches.samples();
  EXPECT_THAT(samples.copy, ElementsAre(Time(2), Time(1)));
  EXPECT_THAT(samples.device_idle, IsEmpty());
  EXPECT_FALSE(batches[1].delays.copy);
}

TEST(SimulatedMoments, AWakeUpIsWhatPassedSinceTheLastComputeThatHadEnded) {
  RecordedBatches batches;
  batches[1].woken = Time(38);
  batches[2].woken = Time(59);
  EXPECT_THAT(batches.samples().wake_up, ElementsAre(Time(0), Time(3)));
  EXPECT_THAT(batches[1].delays.wake_up, Optional(Time(3)));
  EXPECT_FALSE(batches[0].delays.wake_up);
  batches[1].own = Time(1);
  batches[2].own = Time(1);
  EXPECT_THAT(batches.samples().wake_up, ElementsAre(Time(0), Time(2)));
  EXPECT_THAT(batches.samples(false).wake_up, IsEmpty());
}

TEST(SimulatedMoments, ALateWakeUpIsCountedFromWhatItWaitedFor) {
  RecordedBatches batches;
  batches[2].computed = 90;
  batches[2].slept_from = Time(30);
  batches[2].woken = Time(62);
  EXPECT_THAT(batches.samples().wake_up, ElementsAre(Time(3))) << "of several waits the last";
  batches[2].slept_once_to_begin = true;
  EXPECT_THAT(batches.samples().wake_up, ElementsAre(Time(27))) << "for the oldest of two";
}

TEST(SimulatedMoments, TheHostsTimeIsWithoutItsSleep) {
  const Spent before = spent();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LT(host_time(before, spent()), std::chrono::milliseconds(10));
  EXPECT_GE(host_time(before, spent(), false), std::chrono::milliseconds(20)) << "not for us";
  EXPECT_EQ(host_time({.wall = Time(5), .cpu = Time(1)}, {.wall = Time(9), .cpu = Time(2)}),
            Time(4));
}

TEST(SimulateReal, ProducersTakeTheirBatchesFromOneCount) {
  Workload of = workload("producers-1:1");
  of.compute = std::chrono::microseconds(200);
  for (const std::uint64_t batches : {1U, 5U}) {
    const RealResult run =
        run_for_real(of, policy("unbounded"), {.budget = gib(1), .batches = batches});
    ASSERT_EQ(run.batches.size(), 2U);
    EXPECT_EQ(std::accumulate(run.batches.begin(), run.batches.end(), std::uint64_t{}), batches);
    EXPECT_EQ(run.failed, 0U);
    ASSERT_EQ(run.recorded.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(run.recorded[i].size(), run.batches[i]);
    EXPECT_EQ(run.samples.host.size(), batches);
    EXPECT_EQ(run.samples.device.size() + run.samples.device_idle.size(), batches);
  }
}

}  // namespace
}  // namespace weir::simulate
