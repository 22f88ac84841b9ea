// Training the wide network on two processes with a stand-in GPU each, over the stand-in NCCL.

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "../ranks/torchrun.hpp"
#include "shared_results.hpp"
#include "trainer/expect_parts.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<ChildProcess> start_rank(int rank, const std::string& port,
                                         const std::string& program, const Words& words) {
  return testing::start_rank(rank, 2, port, program, words);
}

TEST(SharedTrainingByNccl, IsAsOfOneProcessAndSendsTheBytesOfItsFormula) {
  const TemporaryDirectory directory;
  const std::string port = free_port();
  const std::vector<std::string> words{"cuda", directory.file("")};
  const auto zero = start_rank(0, port, WEIR_SHARED_PROGRAM, words);
  const auto one = start_rank(1, port, WEIR_SHARED_PROGRAM, words);
  std::string out;
  for (const auto& rank : {&zero, &one}) {
    const Finished finished = succeeded((*rank)->wait());
    out += finished.out;
  }
  expect_as_alone(out, directory.file(""), 2);
}

/// --device cuda is each rank's own GPU.
std::vector<std::string> wide(const std::string& parallel, const std::string& json) {
  return {"wide",  "--device",       "cuda", "--budget",     "64MiB",  "--scale",
          "0.002", "--nnz",          "10",   "--batch-size", "8",      "--batches",
          "5",     "--test-batches", "1",    "--parallel",   parallel, "--json",
          json};
}

void expect_two_ranks(const std::string& json) {
  const auto figures = nlohmann::json::parse(read_file(json));
  const auto& ranks = figures["result"]["ranks"];
  EXPECT_EQ(ranks["ranks"], 2);
  EXPECT_EQ(ranks["engine"], "NCCL 2.21.5");
  EXPECT_EQ(ranks["sent_bytes"], ranks["formula_bytes"]);
  EXPECT_GT(ranks["sent_bytes"], 0);
}

TEST(SharedTrainingByNccl, TheCommandStartsWithTorchrunsVariables) {
  const TemporaryDirectory directory;
  const std::string port = free_port();
  const auto words = wide("model", directory.file("figures.json"));
  const auto zero = start_rank(0, port, WEIR_TRAIN_PROGRAM, words);
  const auto one = start_rank(1, port, WEIR_TRAIN_PROGRAM, words);
  const Finished first = zero->wait();
  const Finished second = one->wait();
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out, "") << "rank 0 prints";
  EXPECT_THAT(first.err, HasSubstr("device=cuda:0 (--device, local rank)"));
  expect_two_ranks(directory.file("figures.json"));
}

TEST(SharedTrainingByNccl, ADifferenceEndsBothAndRankZeroSaysInWhat) {
  const TemporaryDirectory directory;
  const std::string port = free_port();
  auto other = wide("data", directory.file("figures.json"));
  const auto zero = start_rank(0, port, WEIR_TRAIN_PROGRAM, other);
  other.insert(other.end(), {"--seed", "7"});
  const auto one = start_rank(1, port, WEIR_TRAIN_PROGRAM, other);
  const Finished first = zero->wait();
  EXPECT_EQ(first.exit_code, 2);
  const Finished second = one->wait();
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err, Not(HasSubstr("differ"))) << "rank 0 alone speaks";
  EXPECT_THAT(first.err, HasSubstr("the ranks differ in --seed: rank 0 has '1'; rank 1 has '7'"));
}

TEST(SharedTrainingByNccl, TheCommandStartsUnderMpirun) {
  const TemporaryDirectory directory;
  std::vector<std::string> words = wide("data", directory.file("figures.json"));
  words.insert(words.begin(), {"-n", "2", WEIR_TRAIN_PROGRAM});
  const Finished finished = succeeded(
      ChildProcess(words, {.program = "/usr/bin/mpirun.mpich", .environment = two_gpus()}).wait());
  expect_two_ranks(directory.file("figures.json"));
}

}  // namespace
}  // namespace weir::testing
