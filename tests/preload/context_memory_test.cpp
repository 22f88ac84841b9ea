// The hooks are linked in, so a driver call here is one of a program under Weir. Each test is a
// separate process.

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/standin/standin.hpp"
#include "tools/preload/process/api.hpp"

namespace weir::preload {
namespace {

constexpr std::size_t kMiB = 1U << 20U;

class ContextMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("WEIR_BUDGET", "100MiB", 1);
    weir_standin_set_context_memory(5 * kMiB);
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  }

  CUcontext context_ = nullptr;
};

TEST_F(ContextMemory, IsCountedAgainstTheBudget) {
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 100 * kMiB);
  EXPECT_EQ(free, 95 * kMiB);
  MemoryInfo info{};
  ASSERT_TRUE(memory_info(0, info));
  EXPECT_EQ(info.passed, Bytes{5 * kMiB});
}

TEST_F(ContextMemory, IsCountedOnceHoweverOftenItIsRetained) {
  CUcontext again = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  EXPECT_EQ(again, context_);
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 95 * kMiB);
}

TEST_F(ContextMemory, EndsWithTheContext) {
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  weir_standin_set_context_memory(3 * kMiB);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 97 * kMiB);
}

TEST_F(ContextMemory, LeavesLessForThePool) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc(&pointer, 96 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&pointer, 94 * kMiB), CUDA_SUCCESS);
}

}  // namespace
}  // namespace weir::preload
