// The device memory of contexts, modules and libraries.

#include <thread>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInModule : public StandIn {
 protected:
  /// A context that begins with the current settings.
  static void begin_again() {
    ok(cudaDeviceReset());
    ok(cudaSetDevice(0));
  }
  static std::size_t free_bytes() {
    std::size_t free = 0;
    ok(cudaMemGetInfo(&free, nullptr));
    return free;
  }

  void load_alone() const {
    CUmodule module = nullptr;
    ok(cuModuleLoadData(&module, &image_));
  }

  const char image_ = 0;
};

TEST_F(StandInModule, OfNoneAContextTakesWhatWasSet) {
  const std::size_t before = free_bytes();
  weir_standin_set_context_memory(5 * kMiB);
  EXPECT_EQ(free_bytes(), before);
  begin_again();
  EXPECT_EQ(before - free_bytes(), 5 * kMiB);
  EXPECT_EQ(weir_standin_used(0), 5 * kMiB);
  ok(cudaDeviceReset());
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInModule, AContextNeedsRoom) {
  ok(cudaDeviceReset());
  weir_standin_set_memory(4 * kMiB);
  weir_standin_set_context_memory(5 * kMiB);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorMemoryAllocation);
  weir_standin_set_context_memory(4 * kMiB);
  ok(cudaSetDevice(0));
  EXPECT_EQ(free_bytes(), 0U);
}

TEST_F(StandInModule, AReadyContextIsAsTheSettingsAreAfterAReset) {
  weir_standin_set_context_memory(kMiB);
  begin_again();
  weir_standin_reset();
  EXPECT_EQ(weir_standin_used(0), 0U);
  ok(cudaFree(make_memory()));
}

TEST_F(StandInModule, EachContextHasItsNumber) {
  unsigned long long first = 0;
  unsigned long long second = 0;
  CUcontext context = nullptr;
  ok(cuCtxGetCurrent(&context));
  ok(cuCtxGetId(nullptr, &first));
  ok(cuCtxGetId(context, &second));
  EXPECT_EQ(first, second);
  ok(cudaDeviceReset());
  EXPECT_EQ(cuCtxGetId(context, &second), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ok(cudaSetDevice(0));
  ok(cuCtxGetId(nullptr, &second));
  EXPECT_NE(first, second);
}

TEST_F(StandInModule, TakesWhatWasSetFromLoadToUnload) {
  weir_standin_set_module_memory(3 * kMiB);
  CUmodule modules[3] = {};
  ok(cuModuleLoadData(&modules[0], &image_));
  ok(cuModuleLoadDataEx(&modules[1], &image_, 0, nullptr, nullptr));
  ok(cuModuleLoadFatBinary(&modules[2], &image_));
  EXPECT_EQ(weir_standin_used(0), 9 * kMiB);
  EXPECT_EQ(weir_standin_live().modules, 3U);
  // The size of a loaded module does not change.
  weir_standin_set_module_memory(kMiB);
  for (CUmodule module : modules) ok(cuModuleUnload(module));
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_live().modules, 0U);
  EXPECT_EQ(cuModuleUnload(modules[0]), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StandInModule, OfNoImageOrNoRoomIsRefused) {
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuModuleLoadData(nullptr, &image_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuModuleLoad(&module, "/nonexistent.cubin"), CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(cuModuleLoad(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  weir_standin_set_memory(kMiB);
  weir_standin_set_module_memory(2 * kMiB);
  EXPECT_EQ(cuModuleLoadData(&module, &image_), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(StandInModule, FromAFileIsOneToo) {
  CUmodule module = nullptr;
  ok(cuModuleLoad(&module, "/proc/self/exe"));
  ok(cuModuleUnload(module));
  CUlibrary library = nullptr;
  ok(cuLibraryLoadFromFile(&library, "/proc/self/exe", nullptr, nullptr, 0, nullptr, nullptr, 0));
  ok(cuLibraryUnload(library));
  EXPECT_EQ(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StandInModule, HasTheKernelsThatItIsAskedFor) {
  static int runs = 0;
  weir_standin_register_kernel(
      nullptr, "of_a_module", [](const WeirStandinLaunch*) { ++runs; }, nullptr, 0);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ok(cuModuleLoadData(&module, &image_));
  ok(cuModuleGetFunction(&function, module, "of_a_module"));
  ok(cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr));
  ok(cudaDeviceSynchronize());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(weir_standin_calls("cuLaunchKernel"), 1U);
  weir_standin_register_kernel(nullptr, "of_a_module", nullptr, nullptr, 0);
}

TEST_F(StandInModule, AndLibrariesGiveTheirMemoryBackWithTheContext) {
  weir_standin_set_module_memory(kMiB);
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  ok(cuModuleLoadData(&module, &image_));
  ok(cuLibraryLoadData(&library, &image_, nullptr, nullptr, 0, nullptr, nullptr, 0));
  EXPECT_EQ(weir_standin_used(0), 2 * kMiB);
  begin_again();
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  // A library belongs to no context.
  ok(cuLibraryUnload(library));
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInModule, LoadsWaitForEachOtherInsideWhereTheyAreToMeet) {
  weir_standin_set_module_memory(kMiB);
  weir_standin_set_loads_meet(2);
  const auto load = [&] {
    CUmodule module = nullptr;
    ok(cudaSetDevice(0));
    ok(cuModuleLoadData(&module, &image_));
    EXPECT_EQ(weir_standin_used(0), 2 * kMiB);
  };
  std::thread other(load);
  load();
  other.join();
  weir_standin_set_loads_meet(0);
  load_alone();
}

}  // namespace
}  // namespace weir::standin::testing
