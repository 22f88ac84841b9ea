// Launches of kernels that a test registered.

#include <vector>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

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

TEST_F(StandInLaunch, GoesByAConfigurationToo) {
  int number = 1;
  void* arguments[] = {static_cast<void*>(&total_), &number};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(4);
  config.blockDim = dim3(8);
  config.stream = stream_;
  ok(cudaLaunchKernelExC(&config, &kKernel, arguments));
  sync();
  EXPECT_EQ(*total_, 32);
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

TEST_F(StandInLaunch, KnowsKernelsByNameAtTheDriver) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  const char code = 0;
  ok(cuLibraryLoadData(&library, &code, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ok(cuLibraryGetKernel(&kernel, library, "by_name"));
  ok(cuKernelGetFunction(&function, kernel));
  int number = 2;
  void* arguments[] = {static_cast<void*>(&total_), &number};
  const auto launch_it = [&] {
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr);
  };
  EXPECT_EQ(launch_it(), CUDA_ERROR_NOT_FOUND);
  const std::size_t sizes[] = {sizeof(int*), sizeof(int)};
  weir_standin_register_kernel(nullptr, "by_name", &add, sizes, 2);
  ok(launch_it());
  sync();
  EXPECT_EQ(*total_, 2);
  weir_standin_register_kernel(nullptr, "by_name", nullptr, nullptr, 0);
  EXPECT_EQ(launch_it(), CUDA_ERROR_NOT_FOUND);
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

TEST_F(StandInLaunch, TellsPlausibleThingsOfAKernel) {
  cudaFuncAttributes attributes{};
  ok(cudaFuncGetAttributes(&attributes, &kKernel));
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  int blocks = 0;
  ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &kKernel, 256, 0));
  EXPECT_EQ(blocks, 8);
}

}  // namespace
}  // namespace weir::standin::testing
