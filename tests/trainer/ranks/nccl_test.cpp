// Two processes, each with a stand-in GPU, over the stand-in NCCL.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "torchrun.hpp"

namespace weir {
namespace {

using testing::ChildProcess;
using testing::Finished;
using testing::free_port;
using ::testing::HasSubstr;

std::unique_ptr<ChildProcess> start_rank(int rank, int size, const std::string& port,
                                         const std::string& seed) {
  return testing::start_rank(rank, size, port, WEIR_NCCL_PROGRAM, {seed});
}

TEST(RanksByNccl, TwoProcessesWithTorchrunsVariablesReduceAndGather) {
  const std::string port = free_port();
  const auto zero = start_rank(0, 2, port, "1");
  const auto one = start_rank(1, 2, port, "1");
  for (const auto& rank : {&zero, &one}) {
    const Finished finished = (*rank)->wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_THAT(finished.out, HasSubstr(" of 2 by NCCL 2.21.5: done"));
  }
}

#ifndef __SANITIZE_THREAD__  // it knows nothing of MPI's own threads
TEST(RanksByNccl, TwoProcessesUnderMpirunGetTheIdByMpi) {
  const Finished finished =
      ChildProcess({"-n", "2", WEIR_NCCL_PROGRAM},
                   {.program = "/usr/bin/mpirun.mpich", .environment = testing::two_gpus()})
          .wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("rank 0 of 2 by NCCL 2.21.5: done"));
  EXPECT_THAT(finished.out, HasSubstr("rank 1 of 2 by NCCL 2.21.5: done"));
}
#endif

TEST(RanksByNccl, OneProcessTakesTheSameWay) {
  const Finished finished = start_rank(0, 1, free_port(), "1")->wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("rank 0 of 1 by NCCL 2.21.5: done"));
}

TEST(RanksByNccl, ADifferenceEndsBothWithTheSameLine) {
  const std::string port = free_port();
  const auto zero = start_rank(0, 2, port, "7");
  const auto one = start_rank(1, 2, port, "7");
  for (const auto& rank : {&zero, &one}) {
    const Finished finished = (*rank)->wait();
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(finished.err,
              "nccl_program: the ranks differ in --seed: rank 0 has '1'; rank 1 has '7'\n");
  }
}

}  // namespace
}  // namespace weir
