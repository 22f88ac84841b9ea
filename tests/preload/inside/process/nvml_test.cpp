// What the management library reports to a program about its own memory. The hooks are linked in,
// so its calls here are those of a program linked with the library.

#include <dlfcn.h>
#include <unistd.h>

#include <array>

#include "tests/preload/inside/inside.hpp"
#include "tools/preload/driver/nvml_api.hpp"

namespace weir::preload::testing {
namespace {

constexpr unsigned long long kReal = 1ULL << 40U;  ///< a device's memory in the stand-in
constexpr unsigned kVersion = sizeof(NvmlMemoryV2) | 2U << 24U;

class NvmlView : public Inside {
 protected:
  void SetUp() override {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    ASSERT_NE(library_, nullptr);
  }
  static void start(Variables variables = {}) {
    std::vector all(variables);
    all.emplace_back("WEIR_BUDGET", "100MiB");
    all.emplace_back("WEIR_POOL", "naive");
    start_with(all);
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
  const CUdeviceptr pointer = allocate(30 * kMib);
  NvmlMemory told = memory(handle());
  EXPECT_EQ(told.total, 100 * kMib);
  EXPECT_EQ(told.used, 30 * kMib);
  expect_budget(told);
  // Cached memory is free, though taken from the device.
  free(pointer);
  EXPECT_GE(weir_standin_used(0), 30 * kMib);
  told = memory(handle());
  EXPECT_EQ(told.used, 0U);
  expect_budget(told);
}

TEST_F(NvmlView, OfTheSecondVersionAddsUp) {
  ASSERT_NO_FATAL_FAILURE(start());
  (void)allocate(30 * kMib);
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
  free(allocate(20 * kMib));
  (void)allocate(30 * kMib);
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(handle(), &count, nullptr), 7);
  const auto expect = [](const auto& list, unsigned listed) {
    ASSERT_EQ(listed, 2U);
    EXPECT_EQ(list[0].pid, 1U);
    EXPECT_EQ(list[0].used, 7 * kMib);
    EXPECT_EQ(list[1].pid, static_cast<unsigned>(getpid()));
    EXPECT_EQ(list[1].used, 30 * kMib);
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
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_NVML", "real"}}));
  (void)allocate(30 * kMib);
  const NvmlMemory told = memory(handle());
  EXPECT_EQ(told.total, kReal);
  EXPECT_EQ(told.used, weir_standin_used(0));
  unsigned count = 4;
  std::array<NvmlProcess, 4> list{};
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(handle(), &count, list.data()), 0);
  EXPECT_EQ(list[1].used, weir_standin_used(0));
}

// The library's first device is CUDA's last here, as CUDA_VISIBLE_DEVICES can cause.
class NvmlOfTwo : public NvmlView, public ::testing::WithParamInterface<const char*> {};

TEST_P(NvmlOfTwo, IsOfTheDeviceThatIsUsed) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_DEVICES", "2"},
                                 {"WEIR_STANDIN_NVML_REVERSED", "1"},
                                 {"WEIR_STANDIN_NVML_NO_UUID", GetParam()}}));
  (void)allocate(30 * kMib);
  EXPECT_EQ(memory(handle(0)).used, 0U);
  EXPECT_EQ(memory(handle(1)).used, 30 * kMib);
}

INSTANTIATE_TEST_SUITE_P(WithoutUuids, NvmlOfTwo, ::testing::Values("0", "1"));

// As documented; unverified on a device.
TEST_F(NvmlView, OfADeviceInPartsIsOfThePartThatCudaShows) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_MIG", "1"}}));
  (void)allocate(30 * kMib);
  void* part = nullptr;
  ASSERT_EQ(function<int(void*, unsigned, void**)>("nvmlDeviceGetMigDeviceHandleByIndex")(handle(),
                                                                                          0, &part),
            0);
  expect_budget(memory(part));
  EXPECT_EQ(memory(handle()).total, kReal) << "the whole device is not what CUDA shows";
}

TEST_F(NvmlView, OfWeirItselfIsTheLibrarys) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_CONTEXT_MEMORY", "5M"}}));
  // The context's memory was measured by the real figures, and is in the program's.
  const NvmlMemory told = memory(handle());
  EXPECT_EQ(told.used, 5 * kMib);
  expect_budget(told);
}

}  // namespace
}  // namespace weir::preload::testing
