// Calls that return an error are counted, and a test fails that has one and does not say so.

#include <cuda.h>

#include <map>
#include <string>
#include <utility>

#include "tests/standin/fixture.hpp"

namespace {

using weir::standin::testing::ok;

using weir::testing::expect_refused;

class StandInRefused : public ::testing::Test {
 protected:
  StandInRefused() {
    weir_standin_reset();
    ok(cudaSetDevice(0));
  }
  ~StandInRefused() override {
    (void)cudaGetLastError();
    weir_standin_reset();
  }
};

TEST_F(StandInRefused, CountsCallsThatReturnAnErrorByName) {
  expect_refused("cuMemAlloc", CUDA_ERROR_INVALID_VALUE);
  expect_refused("cuMemFree", CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc(nullptr, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(3), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemAlloc(&pointer, 512));
  ok(cuMemFree(pointer));
  EXPECT_EQ(weir_standin_refused("cuMemAlloc"), 2U);
  EXPECT_EQ(weir_standin_refused("cuMemFree"), 1U);
  EXPECT_EQ(weir_standin_refused(nullptr), 3U);
  weir_standin_reset();
  EXPECT_EQ(weir_standin_refused(nullptr), 3U) << "fixtures reset before a test is over";
}

TEST_F(StandInRefused, CountsOnceWhatTheRuntimeHandsOn) {
  expect_refused("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  weir_standin_set_memory(1024);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 2048), cudaErrorMemoryAllocation);
  EXPECT_EQ(weir_standin_refused(nullptr), 1U);
}

TEST_F(StandInRefused, CountsWhatTheRuntimeRefusesByItself) {
  expect_refused("cudart", cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(5), cudaErrorInvalidDevice);
  EXPECT_EQ(weir_standin_refused("cudart"), 1U);
}

TEST_F(StandInRefused, CountsWhatTheRuntimeRefusesAfterTheDriverRefusedTheSame) {
  expect_refused("cuMemAlloc", CUDA_ERROR_INVALID_VALUE);
  expect_refused("cudart", cudaErrorInvalidValue);
  EXPECT_EQ(cuMemAlloc(nullptr, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudaGetDevice(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(weir_standin_refused("cudart"), 1U);
  EXPECT_EQ(cuMemAlloc(nullptr, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudaRuntimeGetVersion(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(weir_standin_refused("cudart"), 2U);
}

TEST_F(StandInRefused, DoesNotCountAnswersAndWishes) {
  cudaStream_t stream = nullptr;
  ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaEvent_t event = nullptr;
  ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  weir_standin_hold(stream);
  ok(cudaEventRecord(event, stream));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  weir_standin_release(stream);
  weir_standin_fail("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinOnce);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 512), cudaErrorMemoryAllocation);
  EXPECT_EQ(weir_standin_refused(nullptr), 0U);
}

TEST_F(StandInRefused, TellsOfEachCallAndForgets) {
  EXPECT_EQ(cuMemAlloc(nullptr, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc(nullptr, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(3), CUDA_ERROR_INVALID_VALUE);
  using All = std::map<std::pair<std::string, int>, std::uint64_t>;
  All all;
  const auto add = [](void* data, const WeirStandinRefused* refused) {
    (*static_cast<All*>(data))[{refused->name, refused->code}] = refused->calls;
  };
  weir_standin_take_refused(add, &all);
  EXPECT_EQ(all, (All{{{"cuMemAlloc", 1}, 2}, {{"cuMemFree", 1}, 1}}));
  EXPECT_EQ(weir_standin_refused(nullptr), 0U);
}

}  // namespace
