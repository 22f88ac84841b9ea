#include "bench/simulate/real.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "simulate/run.hpp"

namespace weir::simulate {
namespace {

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
