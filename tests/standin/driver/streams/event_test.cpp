// Events: which record counts, and when.

#include <thread>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInEvent : public StandIn {};

TEST_F(StandInEvent, NeverRecordedIsReadyAndHoldsNobodyUp) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = make_stream();
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST_F(StandInEvent, IsReadyWhenTheStreamHasComeToIt) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = make_stream();
  weir_standin_hold(stream);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  weir_standin_release(stream);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
}

TEST_F(StandInEvent, OrdersAnotherStreamBehindItsRecord) {
  unsigned char* memory = make_memory();
  cudaEvent_t event = make_event();
  cudaStream_t first = make_stream();
  cudaStream_t second = make_stream();
  weir_standin_hold(first);
  ASSERT_EQ(cudaMemsetAsync(memory, 1, 512, first), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory, 2, 512, second), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  weir_standin_release(first);
  ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  EXPECT_TRUE(all_bytes(memory, 2));
}

TEST_F(StandInEvent, AWaitIsForTheRecordOfItsTime) {
  cudaEvent_t event = make_event();
  cudaStream_t quick = make_stream();
  cudaStream_t held = make_stream();
  cudaStream_t waiting = make_stream();
  ASSERT_EQ(cudaEventRecord(event, quick), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(waiting, event, 0), cudaSuccess);
  weir_standin_hold(held);
  ASSERT_EQ(cudaEventRecord(event, held), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(waiting), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  weir_standin_release(held);
}

TEST_F(StandInEvent, AnEarlierRecordDoesNotMakeALaterOneReady) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = make_stream();
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  weir_standin_hold(stream);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  weir_standin_release(stream);
}

TEST_F(StandInEvent, MayBeDestroyedWhileAStreamWaitsForIt) {
  cudaEvent_t event = make_event();
  cudaStream_t first = make_stream();
  cudaStream_t second = make_stream();
  weir_standin_hold(first);
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(weir_standin_live().events, 0U);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  weir_standin_release(first);
  EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
}

TEST_F(StandInEvent, OutlivesTheStreamOfItsRecord) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = make_stream();
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
}

TEST_F(StandInEvent, WithoutTimingHasNoTime) {
  cudaEvent_t timed = make_event(cudaEventDefault);
  cudaEvent_t untimed = make_event(cudaEventDisableTiming);
  cudaStream_t stream = make_stream();
  ASSERT_EQ(cudaEventRecord(timed, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(untimed, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, timed, untimed), cudaErrorInvalidResourceHandle);
}

TEST_F(StandInEvent, TimeNeedsBothRecordsToBeReached) {
  cudaEvent_t start = make_event(cudaEventDefault);
  cudaEvent_t end = make_event(cudaEventDefault);
  cudaStream_t stream = make_stream();
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaEventRecord(start, stream), cudaSuccess);
  weir_standin_hold(stream);
  ASSERT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  weir_standin_release(stream);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0.0F);
}

}  // namespace
}  // namespace weir::standin::testing
