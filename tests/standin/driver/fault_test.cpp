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
