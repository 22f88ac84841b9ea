// Faults on demand, counters, and errors that stay.

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInFault : public StandIn {
 protected:
  static void nothing(const WeirStandinLaunch* /*launch*/) {}
  static const void* kernel() { return reinterpret_cast<const void*>(&nothing); }
  static cudaError_t launch(cudaStream_t stream) {
    weir_standin_register_kernel(kernel(), nullptr, &nothing, nullptr, 0);
    return cudaLaunchKernel(kernel(), dim3(1), dim3(1), nullptr, 0, stream);
  }
};

TEST_F(StandInFault, StrikesTheCallItIsFor) {
  weir_standin_fail("cuMemAlloc", 3, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinOnce);
  void* memory = nullptr;
  ok(cudaMalloc(&memory, 1));
  ok(cudaMalloc(&memory, 1));
  EXPECT_EQ(cudaMalloc(&memory, 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(weir_standin_live().device_blocks, 2U);
  ok(cudaMalloc(&memory, 1));
}

TEST_F(StandInFault, LastsWhenItIsToLast) {
  weir_standin_fail("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinFromThenOn);
  void* memory = nullptr;
  ok(cudaMalloc(&memory, 1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cudaMalloc(&memory, 1), cudaErrorMemoryAllocation);
  weir_standin_clear_faults();
  ok(cudaMalloc(&memory, 1));
}

TEST_F(StandInFault, OfOneCallLeavesOthersAlone) {
  weir_standin_fail("cuEventQuery", 1, CUDA_ERROR_ILLEGAL_ADDRESS, kWeirStandinOnce);
  cudaEvent_t event = make_event();
  ok(cudaEventSynchronize(event));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorIllegalAddress);
  ok(cudaEventQuery(event));
}

TEST_F(StandInFault, OfALaunchDoesNotRunIt) {
  weir_standin_fail("cuLaunchKernel", 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, kWeirStandinOnce);
  EXPECT_EQ(launch(stream_), cudaErrorLaunchOutOfResources);
  EXPECT_EQ(weir_standin_pending(stream_), 0U);
  ok(launch(stream_));
}

TEST_F(StandInFault, OfAKernelBreaksItsContext) {
  unsigned char* memory = make_memory();
  weir_standin_fail_kernel(2, CUDA_ERROR_ILLEGAL_ADDRESS);
  ok(launch(stream_));
  sync();
  while_held([&] {
    ok(launch(stream_));
    ok(cudaMemsetAsync(memory, 1, 512, stream_));
  });
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  EXPECT_TRUE(all_bytes(memory, 0xA5));
  EXPECT_EQ(cudaFree(memory), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorIllegalAddress);
  weir_standin_clear_faults();
  ok(cudaFree(memory));
}

TEST_F(StandInFault, OfTheDeviceStaysTheLastError) {
  weir_standin_fail_kernel(1, CUDA_ERROR_LAUNCH_FAILED);
  ok(launch(nullptr));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorLaunchFailure);
  ok(cudaDeviceReset());
  (void)cudaGetLastError();
  ok(cudaGetLastError());
  ok(cudaFree(make_memory()));
}

TEST_F(StandInFault, OfACallIsTheLastErrorOnce) {
  EXPECT_EQ(cudaFree(this), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  ok(cudaFree(nullptr));
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  ok(cudaPeekAtLastError());
}

TEST_F(StandInFault, CallsAreCountedByName) {
  weir_standin_clear_counters();
  EXPECT_EQ(weir_standin_calls(nullptr), 0U);
  cudaFree(make_memory());
  cudaFreeHost(make_pinned());
  EXPECT_EQ(weir_standin_calls("cuMemAlloc"), 1U);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 1U);
  EXPECT_EQ(weir_standin_calls("cuMemHostAlloc"), 1U);
  EXPECT_EQ(weir_standin_calls("cuMemAllocAsync"), 0U);
  EXPECT_GE(weir_standin_calls(nullptr), 4U);
}

TEST_F(StandInFault, AResetTakesEverythingBack) {
  weir_standin_set_memory(1024);
  weir_standin_fail("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinFromThenOn);
  weir_standin_hold(weir_standin_all_streams());
  ok(launch(stream_));
  weir_standin_reset();
  EXPECT_EQ(weir_standin_live().streams, 0U);
  EXPECT_EQ(weir_standin_calls("cuStreamCreateWithPriority"), 0U);
  unsigned char* memory = make_memory(4096);
  cudaStream_t other = make_stream();
  ok(cudaMemsetAsync(memory, 1, 4096, other));
  ok(cudaStreamSynchronize(other));
}

}  // namespace
}  // namespace weir::standin::testing
