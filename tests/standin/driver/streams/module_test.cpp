// The device memory of contexts, modules and libraries, and launches of kernels.

#include <vector>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInModule : public StandIn {
 protected:
  const char image_ = 0;
};

TEST_F(StandInModule, AContextNeedsRoom) {
  ok(cudaDeviceReset());
  weir_standin_set_memory(4 * kMiB);
  weir_standin_set_context_memory(5 * kMiB);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorMemoryAllocation);
  weir_standin_set_context_memory(4 * kMiB);
  ok(cudaSetDevice(0));
  EXPECT_EQ(weir_standin_used(0), 4 * kMiB);
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

TEST_F(StandInModule, AndLibrariesGiveTheirMemoryBackWithTheContext) {
  weir_standin_set_module_memory(kMiB);
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  ok(cuModuleLoadData(&module, &image_));
  ok(cuLibraryLoadData(&library, &image_, nullptr, nullptr, 0, nullptr, nullptr, 0));
  EXPECT_EQ(weir_standin_used(0), 2 * kMiB);
  ok(cudaDeviceReset());
  ok(cudaSetDevice(0));
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  // A library belongs to no context.
  ok(cuLibraryUnload(library));
  EXPECT_EQ(weir_standin_used(0), 0U);
}

/// Adds `number` to *total, once a thread.
void add(const WeirStandinLaunch* launch) {
  auto* total = *static_cast<int**>(launch->arguments[0]);
  const int number = *static_cast<int*>(launch->arguments[1]);
  *total += number * static_cast<int>(launch->grid.x * launch->block.x);
}

class StandInLaunch : public StandIn {
 protected:
  StandInLaunch() {
    const std::size_t sizes[] = {sizeof(int*), sizeof(int)};
    weir_standin_register_kernel(&kKernel, nullptr, &add, sizes, 2);
    *total_ = 0;
  }
  cudaError_t launch(dim3 grid, dim3 block, int number) {
    void* arguments[] = {static_cast<void*>(&total_), &number};
    return cudaLaunchKernel(&kKernel, grid, block, arguments, 0, stream_);
  }

  static constexpr char kKernel = 0;  // an address like that of a function
  int* total_ = reinterpret_cast<int*>(make_pinned());
};

TEST_F(StandInLaunch, RunsLateWithTheArgumentsOfItsTime) {
  while_held([&] {
    ok(launch(dim3(2), dim3(3), 5));
    ok(launch(dim3(1), dim3(1), 7));
    EXPECT_EQ(*total_, 0);
  });
  sync();
  EXPECT_EQ(*total_, 37);
}

TEST_F(StandInLaunch, OfAnImpossibleShapeIsRefused) {
  const std::pair<dim3, dim3> shapes[] = {
      {0, 1}, {1, 1025}, {1, dim3(32, 32, 2)}, {dim3(1, 65536), 1}};
  for (const auto& [grid, block] : shapes) {
    EXPECT_EQ(launch(grid, block, 1), cudaErrorInvalidConfiguration);
  }
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  ok(launch(dim3(1), dim3(1024), 1));
}

TEST_F(StandInLaunch, OfAnUnknownKernelIsRefused) {
  static const char kUnknown = 0;
  EXPECT_EQ(cudaLaunchKernel(&kUnknown, dim3(1), dim3(1), nullptr, 0, stream_),
            cudaErrorInvalidDeviceFunction);
}

TEST_F(StandInLaunch, OnMemoryThatWasFreedDoesNotRun) {
  while_held([&] {
    void* memory = nullptr;
    ok(cudaMallocAsync(&memory, 512, stream_));
    int* const other = total_;
    total_ = static_cast<int*>(memory);
    ok(launch(dim3(1), dim3(1), 1));
    total_ = other;
    ok(cudaFree(memory));
  });
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  EXPECT_EQ(weir_standin_late_uses(), 1U);
  weir_standin_clear_faults();
}

}  // namespace
}  // namespace weir::standin::testing
