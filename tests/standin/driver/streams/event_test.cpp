// Events: which record counts, and when.

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInEvent : public StandIn {
 protected:
  cudaEvent_t event_ = make_event();
};

TEST_F(StandInEvent, NeverRecordedIsReadyAndHoldsNobodyUp) {
  ok(cudaEventQuery(event_));
  ok(cudaEventSynchronize(event_));
  ok(cudaStreamWaitEvent(stream_, event_, 0));
  sync();
}

TEST_F(StandInEvent, IsReadyWhenTheStreamHasComeToItsLatestRecord) {
  for (int i = 0; i < 2; ++i) {
    while_held([&] {
      ok(cudaEventRecord(event_, stream_));
      EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
    });
    ok(cudaEventSynchronize(event_));
    ok(cudaEventQuery(event_));
  }
}

TEST_F(StandInEvent, OrdersAnotherStreamBehindItsRecord) {
  unsigned char* memory = make_memory();
  cudaStream_t second = make_stream();
  while_held([&] {
    ok(cudaMemsetAsync(memory, 1, 512, stream_));
    ok(cudaEventRecord(event_, stream_));
    ok(cudaStreamWaitEvent(second, event_, 0));
    ok(cudaMemsetAsync(memory, 2, 512, second));
    EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  });
  sync(second);
  EXPECT_TRUE(all_bytes(memory, 2));
}

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
