// Two processes, each with a stand-in GPU, over the stand-in NCCL.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "trainer/ranks/socket.hpp"

namespace weir {
namespace {

using testing::ChildProcess;
using testing::Finished;
using ::testing::HasSubstr;

std::string free_port() { return std::to_string(port_of(listen_on(0, true))); }

/// One rank with torchrun's variables.
std::unique_ptr<ChildProcess> start_rank(int rank, int size, const std::string& port,
                                         const std::string& seed) {
  testing::Variables environment{{"RANK", std::to_string(rank)},
                                 {"WORLD_SIZE", std::to_string(size)},
                                 {"LOCAL_RANK", std::to_string(rank)},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", port},
                                 {"WEIR_STANDIN_DEVICES", "2"},
                                 {"CUDA_VISIBLE_DEVICES", "0,1"}};
  return std::make_unique<ChildProcess>(
      std::vector<std::string>{seed},
      testing::ChildOptions{.program = WEIR_NCCL_PROGRAM, .environment = std::move(environment)});
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
  const testing::Variables environment{{"PATH", "/usr/bin:/bin"},
                                       {"WEIR_STANDIN_DEVICES", "2"},
                                       {"CUDA_VISIBLE_DEVICES", "0,1"},
                                       {"ASAN_OPTIONS", "detect_leaks=0"}};  // MPI's own
  const Finished finished =
      ChildProcess({"-n", "2", WEIR_NCCL_PROGRAM},
                   {.program = "/usr/bin/mpirun.mpich", .environment = environment})
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
