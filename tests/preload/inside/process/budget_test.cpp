// The device memory that the program sees.

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

class BudgetView : public Inside {
 protected:
  struct Told {
    std::size_t free = 0;
    std::size_t total = 0;
  };
  [[nodiscard]] static Told told() {
    Told now;
    EXPECT_EQ(cuMemGetInfo(&now.free, &now.total), CUDA_SUCCESS);
    return now;
  }
};

TEST_F(BudgetView, IsWhatTheProgramSeesOfTheDevice) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  std::size_t total = 0;
  ASSERT_EQ(cuDeviceTotalMem(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, 64 * kMib);
  EXPECT_EQ(told().total, 64 * kMib);
  EXPECT_EQ(told().free, 64 * kMib);
}

TEST_F(BudgetView, AShareIsOfTheWholeDevice) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "25%"}, {"WEIR_STANDIN_MEMORY", "256M"}}));
  EXPECT_EQ(told().total, 64 * kMib);
}

TEST_F(BudgetView, FreeIsWhatTheProgramCouldStillHave) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(16 * kMib);
  EXPECT_EQ(told().free, 48 * kMib);
  keep_busy(stream, block);
  free(block);
  // The driver's own cuMemFree would have waited for the stream, and the memory would be free.
  EXPECT_EQ(told().free, 64 * kMib);
  settle();
  // It is cached, and still available to the program.
  EXPECT_EQ(weir_standin_used(0), 16 * kMib);
  EXPECT_EQ(told().free, 64 * kMib);
}

TEST_F(BudgetView, FreeIsNoMoreThanTheDeviceHas) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_MEMORY", "64M"}}));
  {
    // Like another process's: not counted here.
    all_is_counted = false;
    const preload::Inside inside;
    ASSERT_EQ(make_pages(40 * kMib), CUDA_SUCCESS);
  }
  EXPECT_EQ(told().free, 24 * kMib);
  free(allocate(16 * kMib));
  settle();
  EXPECT_EQ(told().free, 24 * kMib);
}

TEST_F(BudgetView, AcceptsThatAFigureIsNotAskedFor) {
  expect_refused("cuDeviceTotalMem", CUDA_ERROR_INVALID_VALUE);
  expect_refused("cuDeviceTotalMem", CUDA_ERROR_INVALID_DEVICE);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  std::size_t bytes = 0;
  EXPECT_EQ(cuMemGetInfo(nullptr, &bytes), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 64 * kMib);
  bytes = 0;
  EXPECT_EQ(cuMemGetInfo(&bytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 64 * kMib);
  EXPECT_EQ(cuMemGetInfo(nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceTotalMem(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceTotalMem(&bytes, 7), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(BudgetView, IsWhatTheApiTells) {
  expect_refused("cuDevicePrimaryCtxGetState", CUDA_ERROR_INVALID_DEVICE);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  MemoryInfo info;
  EXPECT_FALSE(memory_info(3, info));
  const CUstream stream = make_stream();
  const CUdeviceptr kept = allocate(kMib);
  const CUdeviceptr freed = allocate(2 * kMib);
  keep_busy(stream, freed);
  free(freed);
  ASSERT_TRUE(memory_info(0, info));
  EXPECT_EQ(info.total, gib(1));
  EXPECT_EQ(info.budget, mib(64));
  EXPECT_EQ(info.allocated, mib(1));
  EXPECT_EQ(info.awaiting, mib(2));
  EXPECT_EQ(info.reserved, mib(3));
  EXPECT_EQ(trim(0), Bytes{});
  settle();
  EXPECT_EQ(trim(-1), mib(2));
  EXPECT_EQ(trim(3), Bytes{});
  free(kept);
}

TEST_F(BudgetView, ThatIsLargerThanADeviceIsAllOfThatDevice) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_DEVICES", "2"}}));
  weir_standin_set_memory(32 * kMib);
  std::size_t total = 0;
  ASSERT_EQ(cuDeviceTotalMem(&total, 1), CUDA_SUCCESS);
  EXPECT_EQ(total, 32 * kMib);
}

/// What CUDA itself takes of a device.
class ContextMemory : public BudgetView {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(
        start({{"WEIR_BUDGET", "100MiB"}, {"WEIR_STANDIN_CONTEXT_MEMORY", "5M"}}));
  }
};

TEST_F(ContextMemory, IsCountedAgainstTheBudgetOnceHoweverOftenItIsRetained) {
  MemoryInfo info{};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(told().total, 100 * kMib);
    EXPECT_EQ(told().free, 95 * kMib);
    ASSERT_TRUE(memory_info(0, info));
    EXPECT_EQ(info.passed, mib(5));
    ASSERT_NO_FATAL_FAILURE(use_device(0));
  }
}

TEST_F(ContextMemory, EndsWithTheContext) {
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  weir_standin_set_context_memory(3 * kMib);
  ASSERT_NO_FATAL_FAILURE(use_device(0));
  EXPECT_EQ(told().free, 97 * kMib);
}

TEST_F(ContextMemory, LeavesLessForThePool) {
  EXPECT_EQ(try_allocate(96 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(try_allocate(94 * kMib), CUDA_SUCCESS);
}

}  // namespace
}  // namespace weir::preload::testing
