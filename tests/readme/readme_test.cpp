// Compiles and runs the C++ block of README.md, which CMake cuts out of the page.

#include <gtest/gtest.h>

#include <vector>

#include "kernels/blas/blas.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "scheduler/scheduler.hpp"

namespace {

struct HostBatch {
  std::vector<float> inputs;
  std::size_t rows;
};

TEST(Readme, ExampleCompilesAndReadsBackWhatItWrote) {
  const std::vector<HostBatch> reader(
      3, {.inputs = std::vector<float>(std::size_t{8} * 512, 1.0F), .rows = 8});
#include "readme_example.inc"
  ASSERT_EQ(result.size(), std::size_t{512} * 2048);
  EXPECT_EQ(result.front(), 0.5F);
  EXPECT_EQ(result.back(), 0.5F);
}

}  // namespace
