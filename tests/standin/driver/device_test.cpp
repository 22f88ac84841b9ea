// Devices, contexts, and what remains after a reset.

#include <cstdlib>
#include <string_view>
#include <thread>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInDevice : public StandIn {};

TEST_F(StandInDevice, AreAsManyAsWasSet) {
  weir_standin_set_devices(3);
  int count = 0;
  ok(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 3);
  ok(cudaSetDevice(2));
  EXPECT_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
  int device = -1;
  ok(cudaGetDevice(&device));
  EXPECT_EQ(device, 2);
  ok(cudaSetDevice(0));
}

TEST_F(StandInDevice, NoneIsAnError) {
  weir_standin_set_devices(0);
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorInvalidDevice);
  weir_standin_set_devices(1);
  ok(cudaSetDevice(0));
}

TEST_F(StandInDevice, TellsWhatItIs) {
  weir_standin_set_memory(std::size_t{96} << 20);
  cudaDeviceProp properties{};
  ok(cudaGetDeviceProperties(&properties, 0));
  EXPECT_EQ(std::string_view(properties.name), "Weir stand-in 0");
  EXPECT_EQ(properties.totalGlobalMem, std::size_t{96} << 20);
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.multiProcessorCount, 2);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.sharedMemPerBlock, 48U << 10);
  EXPECT_EQ(properties.maxThreadsPerBlock, 1024);
  int value = 0;
  ok(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  EXPECT_EQ(value, 2);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1), cudaErrorInvalidDevice);
}

TEST_F(StandInDevice, HasVersions) {
  int version = 0;
  ok(cudaDriverGetVersion(&version));
  EXPECT_EQ(version, CUDA_VERSION);
  ok(cudaRuntimeGetVersion(&version));
  EXPECT_EQ(version, CUDART_VERSION);
}

TEST_F(StandInDevice, IsEachThreadsOwnChoice) {
  weir_standin_set_devices(2);
  ok(cudaSetDevice(1));
  std::thread([] {
    int device = -1;
    ok(cudaGetDevice(&device));
    EXPECT_EQ(device, 0);
    ok(cudaFree(make_memory()));
  }).join();
  EXPECT_EQ(weir_standin_peak(0), 512U);
  EXPECT_EQ(weir_standin_peak(1), 0U);
  ok(cudaSetDevice(0));
}

TEST_F(StandInDevice, KeepsNothingWhenReset) {
  unsigned char* memory = make_memory();
  cudaEvent_t event = make_event();
  ok(cudaEventRecord(event, stream_));
  ok(cudaDeviceReset());
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_live().streams, 0U);
  EXPECT_EQ(weir_standin_live().events, 0U);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorInvalidResourceHandle);
  ok(cudaFree(make_memory()));
}

TEST_F(StandInDevice, IsUsableByOtherThreadsAfterAReset) {
  ok(cudaFree(make_memory()));
  std::thread([] { ok(cudaDeviceReset()); }).join();
  ok(cudaFree(make_memory()));
}

TEST_F(StandInDevice, DoesNotWorkInAForkedChild) {
  const auto try_it = [] {
    void* memory = nullptr;
    std::_Exit(cudaMalloc(&memory, 1));
  };
  EXPECT_EXIT(try_it(), ::testing::ExitedWithCode(cudaErrorInitializationError), "");
}

TEST_F(StandInDevice, NeedsAContextAtTheDriver) {
  std::thread([] {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc_v2(&memory, 512), CUDA_ERROR_INVALID_CONTEXT);
    CUcontext primary = nullptr;
    ok(cuDevicePrimaryCtxRetain(&primary, 0));
    ok(cuCtxPushCurrent_v2(primary));
    ok(cuMemAlloc_v2(&memory, 512));
    ok(cuMemFree_v2(memory));
    CUcontext popped = nullptr;
    ok(cuCtxPopCurrent_v2(&popped));
    EXPECT_EQ(popped, primary);
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuDevicePrimaryCtxRelease_v2(0));
  }).join();
}

#if CUDA_VERSION >= 13000
TEST_F(StandInDevice, AContextTakesItsMemoryAlong) {
  CUcontext context = nullptr;
  ok(cuCtxCreate_v4(&context, nullptr, 0, 0));
  CUdeviceptr memory = 0;
  ok(cuMemAlloc_v2(&memory, 1024));
  EXPECT_EQ(weir_standin_used(0), 1024U);
  ok(cuCtxDestroy_v2(context));
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
  ok(cudaFree(make_memory()));
}
#endif

TEST_F(StandInDevice, NamesItsErrors) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(555)), "unrecognized error code");
  const char* name = nullptr;
  ok(cuGetErrorName(CUDA_ERROR_NOT_READY, &name));
  EXPECT_STREQ(name, "CUDA_ERROR_NOT_READY");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(555), &name), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StandInDevice, SaysOfWhatIsNotImitatedThatItIsNotSupported) {
  cudaArray_t array = nullptr;
  cudaChannelFormatDesc description{};
  EXPECT_EQ(cudaMalloc3DArray(&array, &description, {1, 1, 1}, 0), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
  EXPECT_EQ(cuArrayGetDescriptor_v2(nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  const void* table = nullptr;
  EXPECT_EQ(cuGetExportTable(&table, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(weir_standin_calls("cuGetExportTable"), 1U);
}

}  // namespace
}  // namespace weir::standin::testing
