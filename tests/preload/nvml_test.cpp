// What the management library reports to a program about its own memory. The hooks are linked in,
// so its calls here are those of a program linked with the library. Each test is a separate
// process.

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "tests/standin/standin.hpp"
#include "tools/preload/driver/nvml_api.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

constexpr std::size_t kOneMiB = 1U << 20U;
constexpr unsigned long long kReal = 1ULL << 40U;  ///< a device's memory in the stand-in
constexpr unsigned kVersion = sizeof(NvmlMemoryV2) | 2U << 24U;

class NvmlView : public ::testing::Test {
 protected:
  using Variables = std::initializer_list<std::pair<const char*, const char*>>;

  void SetUp() override {
    setenv("WEIR_BUDGET", "100MiB", 1);
    setenv("WEIR_POOL", "naive", 1);
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    ASSERT_NE(library_, nullptr);
  }
  /// The program begins to use CUDA, on one device.
  static void start(int device = 0, Variables variables = {}) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    weir_standin_reset();
    CUcontext context = nullptr;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  template <typename F>
  [[nodiscard]] F* function(const char* name) const {
    return reinterpret_cast<F*>(dlsym(library_, name));
  }
  [[nodiscard]] void* handle(unsigned index = 0) const {
    void* device = nullptr;
    EXPECT_EQ(function<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2")(index, &device), 0);
    return device;
  }
  [[nodiscard]] static NvmlMemory memory(void* device) {
    NvmlMemory memory{};
    EXPECT_EQ(nvmlDeviceGetMemoryInfo(device, &memory), 0);
    return memory;
  }
  static CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc(&pointer, bytes), CUDA_SUCCESS);
    return pointer;
  }
  static void expect_budget(const NvmlMemory& told) {
    std::size_t free = 0;
    std::size_t total = 0;
    ASSERT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(told.total, total);
    EXPECT_EQ(told.free, free);
    EXPECT_EQ(told.used, total - free);
  }

 private:
  void* library_ = nullptr;
};

TEST_F(NvmlView, IsThatOfCuMemGetInfo) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr pointer = allocate(30 * kOneMiB);
  NvmlMemory told = memory(handle());
  EXPECT_EQ(told.total, 100 * kOneMiB);
  EXPECT_EQ(told.used, 30 * kOneMiB);
  expect_budget(told);
  // Cached memory is free, though taken from the device.
  ASSERT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  EXPECT_GE(weir_standin_used(0), 30 * kOneMiB);
  told = memory(handle());
  EXPECT_EQ(told.used, 0U);
  expect_budget(told);
}

TEST_F(NvmlView, OfTheSecondVersionAddsUp) {
  ASSERT_NO_FATAL_FAILURE(start());
  (void)allocate(30 * kOneMiB);
  NvmlMemoryV2 told{};
  told.version = kVersion;
  ASSERT_EQ(nvmlDeviceGetMemoryInfo_v2(handle(), &told), 0);
  EXPECT_EQ(told.version, kVersion);
  EXPECT_EQ(told.reserved + told.used + told.free, told.total);
  expect_budget({.total = told.total, .free = told.free, .used = told.used});
  told.version = 1;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(handle(), &told), 25) << "refused as by the library";
}

TEST_F(NvmlView, OfThisProcessIsWhatItHoldsAndOthersStayAsTheyAre) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(cuMemFree(allocate(20 * kOneMiB)), CUDA_SUCCESS);
  (void)allocate(30 * kOneMiB);
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(handle(), &count, nullptr), 7);
  const auto expect = [](const auto& list, unsigned listed) {
    ASSERT_EQ(listed, 2U);
    EXPECT_EQ(list[0].pid, 1U);
    EXPECT_EQ(list[0].used, 7 * kOneMiB);
    EXPECT_EQ(list[1].pid, static_cast<unsigned>(getpid()));
    EXPECT_EQ(list[1].used, 30 * kOneMiB);
  };
  std::array<NvmlProcess, 4> list{};
  std::array<NvmlProcessV1, 4> first{};
  count = 4;
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(handle(), &count, list.data()), 0);
  expect(list, count);
  list = {};
  count = 4;
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v2(handle(), &count, list.data()), 0);
  expect(list, count);
  count = 4;
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses(handle(), &count, first.data()), 0);
  expect(first, count);
}

TEST_F(NvmlView, IsTheLibrarysBeforeTheProgramUsesCuda) {
  EXPECT_EQ(memory(handle()).total, kReal);
  EXPECT_EQ(Process::get_if_any(), nullptr) << "a look at devices sets nothing up";
}

TEST_F(NvmlView, IsTheLibrarysWhereTheProgramWantsIt) {
  ASSERT_NO_FATAL_FAILURE(start(0, {{"WEIR_NVML", "real"}}));
  (void)allocate(30 * kOneMiB);
  const NvmlMemory told = memory(handle());
  EXPECT_EQ(told.total, kReal);
  EXPECT_EQ(told.used, weir_standin_used(0));
  unsigned count = 4;
  std::array<NvmlProcess, 4> list{};
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(handle(), &count, list.data()), 0);
  EXPECT_EQ(list[1].used, weir_standin_used(0));
}

// The library's first device is CUDA's last here, as CUDA_VISIBLE_DEVICES can cause.
void expect_the_device_that_is_used(void* first, void* last) {
  NvmlMemory of_first{};
  NvmlMemory of_last{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(first, &of_first), 0);
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(last, &of_last), 0);
  EXPECT_EQ(of_first.used, 0U);
  EXPECT_EQ(of_last.used, 30 * kOneMiB);
}

TEST_F(NvmlView, IsOfTheDeviceOfTheSameUuidAndNotOfTheSameNumber) {
  ASSERT_NO_FATAL_FAILURE(
      start(0, {{"WEIR_STANDIN_DEVICES", "2"}, {"WEIR_STANDIN_NVML_REVERSED", "1"}}));
  (void)allocate(30 * kOneMiB);
  expect_the_device_that_is_used(handle(0), handle(1));
}

TEST_F(NvmlView, IsOfTheDeviceAtTheSamePlaceWhereThereIsNoUuid) {
  ASSERT_NO_FATAL_FAILURE(start(0, {{"WEIR_STANDIN_DEVICES", "2"},
                                    {"WEIR_STANDIN_NVML_REVERSED", "1"},
                                    {"WEIR_STANDIN_NVML_NO_UUID", "1"}}));
  (void)allocate(30 * kOneMiB);
  expect_the_device_that_is_used(handle(0), handle(1));
}

// As documented; unverified on a device.
TEST_F(NvmlView, OfADeviceInPartsIsOfThePartThatCudaShows) {
  ASSERT_NO_FATAL_FAILURE(start(0, {{"WEIR_STANDIN_MIG", "1"}}));
  (void)allocate(30 * kOneMiB);
  void* part = nullptr;
  ASSERT_EQ(function<int(void*, unsigned, void**)>("nvmlDeviceGetMigDeviceHandleByIndex")(handle(),
                                                                                          0, &part),
            0);
  expect_budget(memory(part));
  EXPECT_EQ(memory(handle()).total, kReal) << "the whole device is not what CUDA shows";
}

TEST_F(NvmlView, OfWeirItselfIsTheLibrarys) {
  weir_standin_set_context_memory(5 * kOneMiB);
  setenv("WEIR_STANDIN_CONTEXT_MEMORY", "5M", 1);
  ASSERT_NO_FATAL_FAILURE(start());
  // The context's memory was measured by the real figures, and is in the program's.
  const NvmlMemory told = memory(handle());
  EXPECT_EQ(told.used, 5 * kOneMiB);
  expect_budget(told);
}

}  // namespace
}  // namespace weir::preload
