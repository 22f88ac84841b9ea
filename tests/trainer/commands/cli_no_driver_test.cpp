// weir-train, with CUDA's own runtime, when no driver can be loaded: an invalid file replaces the
// driver, so that this also works on a machine with a GPU.

#include <gtest/gtest.h>

#include "support/child_process.hpp"
#include "support/joined_lines.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

struct CliWithoutDriver : ::testing::Test {
  CliWithoutDriver() { write_file(directory.file("libcuda.so.1"), ""); }
  [[nodiscard]] Finished run(const std::string& device) const {
    return run_weir_train({"run", "--batches", "1", "--batch-size", "4", "--device", device},
                          {{"LD_LIBRARY_PATH", directory.file("")}});
  }
  TemporaryDirectory directory;
};

TEST_F(CliWithoutDriver, RefusesAGpuInOneLine) {
  expect_refused_in_one_line(run("cuda"),
                             {"device cuda:0: there is no NVIDIA driver (libcuda.so.1)"});
}

TEST_F(CliWithoutDriver, TakesTheCpuWhereItMayChooseAndSaysWhy) {
  const Finished child = succeeded(run("auto"));
  EXPECT_NE(joined_lines(child.err, 2)
                .find("device=cpu (--device: no GPU answers: there is no NVIDIA driver"),
            std::string::npos)
      << child.err;
}

}  // namespace
}  // namespace weir::testing
