// Events: which record counts, and when.

#include <thread>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInEvent : public StandIn {};

TEST_F(StandInEvent, NeverRecordedIsReadyAndHoldsNobodyUp) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = make_stream();
  ok(cudaEventQuery(event));
  ok(cudaEventSynchronize(event));
  ok(cudaStreamWaitEvent(stream, event, 0));
  ok(cudaStreamSynchronize(stream));
}

TEST_F(StandInEvent, IsReadyWhenTheStreamHasComeToIt) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = make_stream();
  weir_standin_hold(stream);
  ok(cudaEventRecord(event, stream));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  weir_standin_release(stream);
  ok(cudaEventSynchronize(event));
  ok(cudaEventQuery(event));
}

TEST_F(StandInEvent, OrdersAnotherStreamBehindItsRecord) {
  unsigned char* memory = make_memory();
  cudaEvent_t event = make_event();
  cudaStream_t first = make_stream();
  cudaStream_t second = make_stream();
  weir_standin_hold(first);
  ok(cudaMemsetAsync(memory, 1, 512, first));
  ok(cudaEventRecord(event, first));
  ok(cudaStreamWaitEvent(second, event, 0));
  ok(cudaMemsetAsync(memory, 2, 512, second));
  EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  weir_standin_release(first);
  ok(cudaStreamSynchronize(second));
  EXPECT_TRUE(all_bytes(memory, 2));
}

TEST_F(StandInEvent, AWaitIsForTheRecordOfItsTime) {
  cudaEvent_t event = make_event();
  cudaStream_t quick = make_stream();
  cudaStream_t held = make_stream();
  cudaStream_t waiting = make_stream();
  ok(cudaEventRecord(event, quick));
  ok(cudaStreamWaitEvent(waiting, event, 0));
  weir_standin_hold(held);
  ok(cudaEventRecord(event, held));
  ok(cudaStreamSynchronize(waiting));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  weir_standin_release(held);
}

TEST_F(StandInEvent, AnEarlierRecordDoesNotMakeALaterOneReady) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = make_stream();
  ok(cudaEventRecord(event, stream));
  ok(cudaEventSynchronize(event));
  weir_standin_hold(stream);
  ok(cudaEventRecord(event, stream));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  weir_standin_release(stream);
}

TEST_F(StandInEvent, MayBeDestroyedWhileAStreamWaitsForIt) {
  cudaEvent_t event = make_event();
  cudaStream_t first = make_stream();
  cudaStream_t second = make_stream();
  weir_standin_hold(first);
  ok(cudaEventRecord(event, first));
  ok(cudaStreamWaitEvent(second, event, 0));
  ok(cudaEventDestroy(event));
  EXPECT_EQ(weir_standin_live().events, 0U);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  weir_standin_release(first);
  ok(cudaStreamSynchronize(second));
}

TEST_F(StandInEvent, OutlivesTheStreamOfItsRecord) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = make_stream();
  ok(cudaEventRecord(event, stream));
  ok(cudaStreamDestroy(stream));
  ok(cudaEventSynchronize(event));
  ok(cudaEventQuery(event));
}

TEST_F(StandInEvent, WithoutTimingHasNoTime) {
  cudaEvent_t timed = make_event(cudaEventDefault);
  cudaEvent_t untimed = make_event(cudaEventDisableTiming);
  cudaStream_t stream = make_stream();
  ok(cudaEventRecord(timed, stream));
  ok(cudaEventRecord(untimed, stream));
  ok(cudaStreamSynchronize(stream));
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, timed, untimed), cudaErrorInvalidResourceHandle);
}

TEST_F(StandInEvent, TimeNeedsBothRecordsToBeReached) {
  cudaEvent_t start = make_event(cudaEventDefault);
  cudaEvent_t end = make_event(cudaEventDefault);
  cudaStream_t stream = make_stream();
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  ok(cudaEventRecord(start, stream));
  weir_standin_hold(stream);
  ok(cudaEventRecord(end, stream));
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  weir_standin_release(stream);
  ok(cudaEventSynchronize(end));
  ok(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 0.0F);
}

}  // namespace
}  // namespace weir::standin::testing
