// The order of work: between streams, around the default ones, and by events.

#include <thread>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInStream : public StandIn {};

/// Sets a byte in each of two streams. The second may run while the first is held, or waits for it.
void expect_order(cudaStream_t first, cudaStream_t second, bool waits) {
  void* memory = nullptr;
  ok(cudaMalloc(&memory, 512));
  auto* const bytes = static_cast<unsigned char*>(memory);
  weir_standin_hold(first);
  ok(cudaMemsetAsync(bytes, 1, 512, first));
  ok(cudaMemsetAsync(bytes, 2, 256, second));
  if (waits) {
    EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  } else {
    ok(cudaStreamSynchronize(second));
    EXPECT_EQ(bytes[0], 2);
  }
  EXPECT_EQ(cudaStreamQuery(first), cudaErrorNotReady);
  weir_standin_release(first);
  ok(cudaStreamSynchronize(second));
  ok(cudaStreamSynchronize(first));
  EXPECT_EQ(bytes[0], waits ? 2 : 1);
}

TEST_F(StandInStream, WaitsForAnotherOnlyIfOneIsTheLegacyOneAndTheOtherBlocks) {
  cudaStream_t blocking = make_stream(cudaStreamDefault);
  expect_order(stream_, make_stream(), false);
  expect_order(blocking, make_stream(cudaStreamDefault), false);
  expect_order(blocking, nullptr, true);
  expect_order(cudaStreamLegacy, blocking, true);
  expect_order(nullptr, stream_, false);
}

TEST_F(StandInStream, IsHeldWithAllOthers) {
  unsigned char* memory = make_memory();
  weir_standin_hold(weir_standin_all_streams());
  cudaStream_t later = make_stream();
  ok(cudaMemsetAsync(memory, 1, 256, stream_));
  ok(cudaMemsetAsync(memory + 256, 2, 256, later));
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(later), cudaErrorNotReady);
  EXPECT_EQ(weir_standin_pending(weir_standin_all_streams()), 2U);
  weir_standin_release(weir_standin_all_streams());
  ok(cudaDeviceSynchronize());
  EXPECT_EQ(weir_standin_pending(weir_standin_all_streams()), 0U);
}

TEST_F(StandInStream, EndsItsWorkWhenDestroyedAndIsUnknownThen) {
  unsigned char* memory = make_memory();
  while_held([&] { ok(cudaMemsetAsync(memory, 7, 512, stream_)); });
  ok(cudaStreamDestroy(stream_));
  EXPECT_EQ(weir_standin_live().streams, 0U);
  ok(cudaDeviceSynchronize());
  EXPECT_TRUE(all_bytes(memory, 7));
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(stream_), cudaErrorInvalidResourceHandle);
}

TEST_F(StandInStream, HostFunctionsOfAStreamNeedNoCurrentContext) {
  bool ran = false;
  std::thread([&] {
    const auto run = [](void* data) { *static_cast<bool*>(data) = true; };
    ok(cuLaunchHostFunc(stream_, run, &ran));
    EXPECT_EQ(cuLaunchHostFunc(nullptr, run, &ran), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  sync();
  EXPECT_TRUE(ran);
}

TEST_F(StandInStream, CallbacksAreToldOfABrokenContext) {
  const auto nothing = [](const WeirStandinLaunch*) {};
  static const char kKernel = 0;
  weir_standin_register_kernel(&kKernel, nullptr, nothing, nullptr, 0);
  weir_standin_fail_kernel(1, CUDA_ERROR_LAUNCH_FAILED);
  weir_standin_hold(stream_);
  ok(cudaLaunchKernel(&kKernel, dim3(1), dim3(1), nullptr, 0, stream_));
  bool hosted = false;
  cudaError_t seen = cudaSuccess;
  ok(cudaLaunchHostFunc(
      stream_, [](void* data) { *static_cast<bool*>(data) = true; }, &hosted));
  ok(cudaStreamAddCallback(
      stream_,
      [](cudaStream_t, cudaError_t state, void* data) { *static_cast<cudaError_t*>(data) = state; },
      &seen, 0));
  weir_standin_release(stream_);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorLaunchFailure);
  // Nobody waits for a broken context: it may be refused before the callback has run.
  while (weir_standin_pending(stream_) != 0) std::this_thread::yield();
  EXPECT_EQ(seen, cudaErrorLaunchFailure);
  EXPECT_FALSE(hosted);
  weir_standin_clear_faults();
}

TEST_F(StandInStream, IsSlowOnDemand) {
  cudaEvent_t start = make_event(cudaEventDefault);
  cudaEvent_t end = make_event(cudaEventDefault);
  weir_standin_delay(stream_, 2'000'000);
  ok(cudaEventRecord(start, stream_));
  ok(cudaEventRecord(end, stream_));
  sync();
  float milliseconds = 0;
  ok(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 2.0F);
}

class StandInEvent : public StandIn {
 protected:
  cudaEvent_t event_ = make_event();
};

TEST_F(StandInEvent, AWaitIsForTheRecordOfItsTime) {
  cudaStream_t waiting = make_stream();
  ok(cudaEventRecord(event_, make_stream()));
  ok(cudaStreamWaitEvent(waiting, event_, 0));
  while_held([&] {
    ok(cudaEventRecord(event_, stream_));
    sync(waiting);
    EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  });
}

TEST_F(StandInEvent, MayBeDestroyedWhileAStreamWaitsForIt) {
  cudaStream_t second = make_stream();
  while_held([&] {
    ok(cudaEventRecord(event_, stream_));
    ok(cudaStreamWaitEvent(second, event_, 0));
    ok(cudaEventDestroy(event_));
    EXPECT_EQ(weir_standin_live().events, 0U);
    EXPECT_EQ(cudaEventQuery(event_), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  });
  sync(second);
}

TEST_F(StandInEvent, OutlivesTheStreamOfItsRecord) {
  ok(cudaEventRecord(event_, stream_));
  ok(cudaStreamDestroy(stream_));
  ok(cudaEventSynchronize(event_));
  ok(cudaEventQuery(event_));
}

TEST_F(StandInEvent, TimeNeedsTimedEventsAndBothRecordsToBeReached) {
  cudaEvent_t start = make_event(cudaEventDefault);
  cudaEvent_t end = make_event(cudaEventDefault);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  ok(cudaEventRecord(start, stream_));
  while_held([&] {
    ok(cudaEventRecord(end, stream_));
    ok(cudaEventRecord(event_, stream_));
    EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  });
  ok(cudaEventSynchronize(event_));
  ok(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 0.0F);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, event_), cudaErrorInvalidResourceHandle);
}

}  // namespace
}  // namespace weir::standin::testing
