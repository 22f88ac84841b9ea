// Training the wide network on two processes with a stand-in GPU each, over the stand-in NCCL.

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "shared_results.hpp"
#include "support/child_process.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/ranks/star.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;

/// Of a machine with two GPUs.
Variables two_gpus() {
  return {
      {"PATH", "/usr/bin:/bin"}, {"WEIR_STANDIN_DEVICES", "2"}, {"CUDA_VISIBLE_DEVICES", "0,1"}};
}

/// One of two ranks with torchrun's variables, with a stand-in GPU of its own.
std::unique_ptr<ChildProcess> start_rank(int rank, const std::string& port,
                                         const std::string& program, const Words& words) {
  Variables environment = two_gpus();
  environment.insert({{"RANK", std::to_string(rank)},
                      {"WORLD_SIZE", "2"},
                      {"LOCAL_RANK", std::to_string(rank)},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", port}});
  return std::make_unique<ChildProcess>(
      words, ChildOptions{.program = program, .environment = std::move(environment)});
}

TEST(SharedTrainingByNccl, IsAsOfOneProcessAndSendsTheBytesOfItsFormula) {
  const TemporaryDirectory directory;
  const std::string port = std::to_string(port_of(listen_on(0, true)));
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
  const std::string port = std::to_string(port_of(listen_on(0, true)));
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
