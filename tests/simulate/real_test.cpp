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
  }
}

}  // namespace
}  // namespace weir::simulate
