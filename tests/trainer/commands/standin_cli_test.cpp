// weir-train with the stand-in driver as the GPU: which device it selects, and its message about
// one that is not available.

#include <gtest/gtest.h>

#include "support/child_process.hpp"
#include "support/joined_lines.hpp"
#include "trainer/expect_parts.hpp"

namespace weir::testing {
namespace {

const std::vector<std::string> kRun{"run", "--batches", "2", "--batch-size", "4"};

std::vector<std::string> run_on(std::vector<std::string> flags) {
  flags.insert(flags.begin(), kRun.begin(), kRun.end());
  return flags;
}

TEST(StandinCli, TakesTheGpuWhereOneAnswersAndSaysSo) {
  const Finished child = succeeded(run_weir_train(run_on({"--budget", "64MiB"})));
  EXPECT_NE(child.err.find("device=cuda"), std::string::npos) << child.err;
}

TEST(StandinCli, TakesTheCpuWhereNoneAnswersAndSaysWhy) {
  const Finished child =
      succeeded(run_weir_train(run_on({"--budget", "64MiB"}), {{"WEIR_STANDIN_DEVICES", "0"}}));
  EXPECT_NE(child.err.find("device=cpu"), std::string::npos) << child.err;
  EXPECT_NE(joined_lines(child.err, 2).find("the driver sees no GPU"), std::string::npos)
      << child.err;
}

TEST(StandinCli, ABudgetMayBeAShareOfTheGpu) {
  // Too little for the model, so that the report names the resulting budget.
  const Finished child = run_weir_train(run_on({"--device", "cuda", "--budget", "80%"}),
                                        {{"WEIR_STANDIN_MEMORY", "20M"}});
  EXPECT_EQ(child.exit_code, 3) << child.err;
  EXPECT_NE(child.err.find("budget 16 MiB"), std::string::npos) << child.err;
}

TEST(StandinCli, SaysHowMuchHostMemoryTheWideNetworkPinnedAndNothingOfCopiesThatNobodyRecorded) {
  const Finished child = succeeded(run_weir_train(
      {"wide", "--device", "cuda", "--budget", "64MiB", "--scale", "0.002", "--batch-size", "8",
       "--nnz", "10", "--batches", "8", "--readers", "3", "--test-batches", "1"}));
  const std::size_t row = child.out.find("\nhost memory pinned  ");
  ASSERT_NE(row, std::string::npos) << child.out;
  expect_parts(child.out.substr(row), {" in the first 8 batches, 0 B later\n"});
  EXPECT_EQ(child.out.find("copies hidden"), std::string::npos) << child.out;
}

TEST(StandinCli, RefusesADeviceThatCannotServeIt) {
  const auto expect_refused = [](const Words& flags, const Variables& standin, const Words& parts) {
    expect_refused_in_one_line(run_weir_train(run_on(flags), standin), parts);
  };
  expect_refused({"--device", "cuda"}, {{"WEIR_STANDIN_DRIVER_VERSION", "11080"}},
                 {"the NVIDIA driver is too old", "CUDA 11.8"});
  expect_refused({"--device", "cuda:3"}, {}, {"device cuda:3 does not exist", "cuda:0"});
  expect_refused({"--device", "cuda"}, {{"WEIR_STANDIN_DEVICES", "0"}},
                 {"device cuda:0: the driver sees no GPU", "device cpu"});
  expect_refused({"--device", "cuda", "--budget", "2GiB"}, {{"WEIR_STANDIN_MEMORY", "1G"}},
                 {"at most the device's memory, 1 GiB"});
}

}  // namespace
}  // namespace weir::testing
