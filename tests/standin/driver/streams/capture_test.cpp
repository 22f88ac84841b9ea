// What a stream capture forbids, what breaks it, and its result.

#include <atomic>
#include <thread>

#include "tests/standin/fixture.hpp"

extern "C" CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status,
                                              cuuint64_t* id, CUgraph* graph,
                                              const CUgraphNode** dependencies, size_t* count);

namespace weir::standin::testing {
namespace {

class StandInCapture : public StandIn {
 protected:
  static cudaStreamCaptureStatus status_of(cudaStream_t stream) {
    cudaStreamCaptureStatus status{};
    ok(cudaStreamIsCapturing(stream, &status));
    return status;
  }
  /// The driver's number of its capture; 0 for none.
  static cuuint64_t number_of(cudaStream_t stream) {
    CUstreamCaptureStatus status{};
    cuuint64_t id = 0;
    ok(cuStreamGetCaptureInfo_v2(stream, &status, &id, nullptr, nullptr, nullptr));
    return id;
  }
  static CUresult graph_of(cudaStream_t stream, CUgraph& graph) {
    CUstreamCaptureStatus status{};
    return cuStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, nullptr, nullptr);
  }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    ok(cudaStreamBeginCapture(stream_, mode));
  }
  /// Ends the capture and returns its result.
  cudaError_t end() {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream_, &graph);
    EXPECT_EQ(error == cudaSuccess, graph != nullptr);
    if (graph != nullptr) {
      ok(cudaGraphDestroy(graph));
    }
    return error;
  }

  cudaStream_t stream_ = make_stream();
  unsigned char* memory_ = make_memory();
};

/// Relaxes the rules for the calling thread as long as it lives.
class Relaxed {
 public:
  Relaxed() { ok(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~Relaxed() { ok(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

TEST_F(StandInCapture, RecordsWorkInsteadOfDoingIt) {
  begin();
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusActive);
  ok(cudaMemsetAsync(memory_, 9, 512, stream_));
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusNone);
  ok(cudaDeviceSynchronize());
  EXPECT_TRUE(all_bytes(memory_, 0xA5));
  std::size_t nodes = 0;
  ok(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 1U);

  cudaGraphExec_t exec = nullptr;
  ok(cudaGraphInstantiate(&exec, graph, 0));
  ok(cudaGraphDestroy(graph));
  for (int i = 0; i < 2; ++i) {
    ok(cudaMemsetAsync(memory_, 1, 512, stream_));
    ok(cudaGraphLaunch(exec, stream_));
    ok(cudaStreamSynchronize(stream_));
    EXPECT_TRUE(all_bytes(memory_, 9));
  }
  EXPECT_EQ(weir_standin_live().graphs, 1U);
  ok(cudaGraphExecDestroy(exec));
  EXPECT_EQ(weir_standin_live().graphs, 0U);
}

TEST_F(StandInCapture, OfGlobalModeForbidsUnsafeCallsOfThisThread) {
  cudaEvent_t event = make_event();
  begin();
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 1), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(cudaMemsetAsync(memory_, 0, 1, stream_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin();
  EXPECT_EQ(cudaFree(memory_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin();
  EXPECT_EQ(cudaEventQuery(event), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  ok(cudaFree(memory_));
}

TEST_F(StandInCapture, OfGlobalModeForbidsThemToOtherThreadsToo) {
  begin();
  std::thread([&] {
    void* more = nullptr;
    EXPECT_EQ(cudaMalloc(&more, 1), cudaErrorStreamCaptureUnsupported);
  }).join();
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, LetsARelaxedThreadDoThem) {
  cudaEvent_t event = make_event();
  begin();
  {
    const Relaxed relaxed;
    unsigned char* more = make_memory();
    ok(cudaEventQuery(event));
    ok(cudaFree(more));
  }
  std::thread([] {
    const Relaxed relaxed;
    ok(cudaFree(make_memory()));
  }).join();
  ok(end());
}

TEST_F(StandInCapture, OfThreadLocalModeForbidsThemToItsThreadAlone) {
  begin(cudaStreamCaptureModeThreadLocal);
  std::thread([] { ok(cudaFree(make_memory())); }).join();
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusActive);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 1), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, OfRelaxedModeForbidsThemToNobody) {
  begin(cudaStreamCaptureModeRelaxed);
  ok(cudaFree(make_memory()));
  ok(end());
}

TEST_F(StandInCapture, IsBrokenByAskingForItsStream) {
  const Relaxed relaxed;
  begin();
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin();
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, IsBrokenByAskingForItsEvent) {
  const Relaxed relaxed;
  cudaEvent_t event = make_event();
  begin();
  ok(cudaEventRecord(event, stream_));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  ok(cudaEventRecord(event, stream_));
  ok(cudaEventSynchronize(event));
}

TEST_F(StandInCapture, OfABlockingStreamKeepsTheLegacyStreamFromWork) {
  cudaStream_t blocking = make_stream(cudaStreamDefault);
  ok(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  cudaStreamCaptureStatus status{};
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(status_of(blocking), cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaMemsetAsync(memory_, 1, 512, nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(status_of(blocking), cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  ok(cudaMemsetAsync(memory_, 1, 512, nullptr));
}

TEST_F(StandInCapture, OfTheLegacyStreamIsRefused) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
}

TEST_F(StandInCapture, TakesInAStreamThatWaitsForIt) {
  cudaStream_t other = make_stream();
  cudaEvent_t forked = make_event();
  cudaEvent_t joined = make_event();
  begin();
  ok(cudaEventRecord(forked, stream_));
  ok(cudaStreamWaitEvent(other, forked, 0));
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusActive);
  ok(cudaMemsetAsync(memory_, 2, 512, other));
  ok(cudaEventRecord(joined, other));
  ok(cudaStreamWaitEvent(stream_, joined, 0));
  ok(end());
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusNone);
}

TEST_F(StandInCapture, TakesInAStreamOfAnotherDevice) {
  weir_standin_set_devices(2);
  cudaEvent_t forked = make_event();
  begin();
  ok(cudaEventRecord(forked, stream_));
  ok(cudaSetDevice(1));
  cudaStream_t other = make_stream();
  cudaEvent_t joined = make_event();
  ok(cudaStreamWaitEvent(other, forked, 0));
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusActive);
  EXPECT_EQ(number_of(other), number_of(stream_));
  ok(cudaMemsetAsync(memory_, 2, 512, other));
  ok(cudaEventRecord(joined, other));
  ok(cudaStreamWaitEvent(stream_, joined, 0));
  ok(end());
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusNone);
}

TEST_F(StandInCapture, IsBrokenByAskingForItsStreamOfAnotherDevice) {
  weir_standin_set_devices(2);
  cudaEvent_t forked = make_event();
  begin(cudaStreamCaptureModeRelaxed);
  ok(cudaEventRecord(forked, stream_));
  ok(cudaSetDevice(1));
  cudaStream_t other = make_stream();
  ok(cudaStreamWaitEvent(other, forked, 0));
  EXPECT_EQ(cudaStreamQuery(other), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, HasANumberOfItsOwn) {
  EXPECT_EQ(number_of(stream_), 0U);
  begin();
  const cuuint64_t first = number_of(stream_);
  EXPECT_NE(first, 0U);
  ok(end());
  EXPECT_EQ(number_of(stream_), 0U);
  begin();
  EXPECT_NE(number_of(stream_), first);
  EXPECT_NE(number_of(stream_), 0U);
  ok(end());
}

TEST_F(StandInCapture, OfOneThatBrokeTellsNoNumber) {
  begin();
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(number_of(stream_), 0U);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, HasAGraphThatKeepsAnObjectUntilItsLastInstanceIsGone) {
  std::atomic<int> destroyed{0};
  begin();
  CUuserObject object = nullptr;
  ok(cuUserObjectCreate(
      &object, &destroyed, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, 1,
      CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CUgraph captured = nullptr;
  ok(graph_of(stream_, captured));
  ok(cuGraphRetainUserObject(captured, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  ok(cudaMemsetAsync(memory_, 2, 512, stream_));
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(graph, captured);
  cudaGraphExec_t exec = nullptr;
  ok(cudaGraphInstantiate(&exec, graph, 0));
  ok(cudaGraphDestroy(graph));
  weir_standin_hold(stream_);
  ok(cudaGraphLaunch(exec, stream_));
  ok(cudaGraphExecDestroy(exec));
  EXPECT_EQ(destroyed, 0);
  weir_standin_release(stream_);
  while (destroyed == 0) std::this_thread::yield();
  EXPECT_TRUE(all_bytes(memory_, 2));
  EXPECT_EQ(weir_standin_live().graphs, 0U);
}

TEST_F(StandInCapture, ThatFailsLetsGoOfItsGraphAndItsObjects) {
  std::atomic<int> destroyed{0};
  begin();
  CUuserObject object = nullptr;
  ok(cuUserObjectCreate(
      &object, &destroyed, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, 2,
      CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CUgraph captured = nullptr;
  ok(graph_of(stream_, captured));
  EXPECT_EQ(cuGraphRetainUserObject(captured, object, 3, CU_GRAPH_USER_OBJECT_MOVE),
            CUDA_ERROR_INVALID_VALUE);
  ok(cuGraphRetainUserObject(captured, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(weir_standin_live().graphs, 0U);
  ok(cuUserObjectRelease(object, 1));
  while (destroyed == 0) std::this_thread::yield();
  EXPECT_EQ(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StandInCapture, NeedsItsStreamsJoinedAtTheEnd) {
  cudaStream_t other = make_stream();
  cudaEvent_t forked = make_event();
  cudaEvent_t joined = make_event();
  begin();
  ok(cudaEventRecord(forked, stream_));
  ok(cudaStreamWaitEvent(other, forked, 0));
  ok(cudaEventRecord(joined, other));
  ok(cudaStreamWaitEvent(stream_, joined, 0));
  ok(cudaMemsetAsync(memory_, 2, 512, other));
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusNone);
}

TEST_F(StandInCapture, TakesInNoDependencyFromOutside) {
  cudaStream_t other = make_stream();
  cudaEvent_t event = make_event();
  ok(cudaEventRecord(event, other));
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, DoesNotMergeWithAnother) {
  cudaStream_t other = make_stream();
  cudaEvent_t event = make_event();
  begin();
  ok(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal));
  ok(cudaEventRecord(event, other));
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event, 0), cudaErrorStreamCaptureMerge);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, IsBrokenByACallback) {
  begin();
  EXPECT_EQ(cudaStreamAddCallback(
                stream_, [](cudaStream_t, cudaError_t, void*) {}, nullptr, 0),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, EndsWhereAndByWhomItBegan) {
  cudaStream_t other = make_stream();
  cudaEvent_t event = make_event();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorIllegalState);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  std::thread([&] {
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  ok(cudaEventRecord(event, stream_));
  ok(cudaStreamWaitEvent(other, event, 0));
  EXPECT_EQ(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, IsOverWhenItsStreamIsDestroyed) {
  begin();
  ok(cudaStreamDestroy(stream_));
  ok(cudaFree(memory_));
}

}  // namespace
}  // namespace weir::standin::testing
