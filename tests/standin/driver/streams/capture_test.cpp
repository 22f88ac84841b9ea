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
    EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    return status;
  }
  /// The driver's number of its capture; 0 for none.
  static cuuint64_t number_of(cudaStream_t stream) {
    CUstreamCaptureStatus status{};
    cuuint64_t id = 0;
    EXPECT_EQ(cuStreamGetCaptureInfo_v2(stream, &status, &id, nullptr, nullptr, nullptr),
              CUDA_SUCCESS);
    return id;
  }
  static CUresult graph_of(cudaStream_t stream, CUgraph& graph) {
    CUstreamCaptureStatus status{};
    return cuStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, nullptr, nullptr);
  }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, mode), cudaSuccess);
  }
  /// Ends the capture and returns its result.
  cudaError_t end() {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream_, &graph);
    EXPECT_EQ(error == cudaSuccess, graph != nullptr);
    if (graph != nullptr) {
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    return error;
  }

  cudaStream_t stream_ = make_stream();
  unsigned char* memory_ = make_memory();
};

/// Relaxes the rules for the calling thread as long as it lives.
class Relaxed {
 public:
  Relaxed() { EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode_), cudaSuccess); }
  ~Relaxed() { EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode_), cudaSuccess); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

TEST_F(StandInCapture, RecordsWorkInsteadOfDoingIt) {
  begin();
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusActive);
  ASSERT_EQ(cudaMemsetAsync(memory_, 9, 512, stream_), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusNone);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(all_bytes(memory_, 0xA5));
  std::size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 1U);

  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaMemsetAsync(memory_, 1, 512, stream_), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_TRUE(all_bytes(memory_, 9));
  }
  EXPECT_EQ(weir_standin_live().graphs, 1U);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
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
  EXPECT_EQ(cudaFree(memory_), cudaSuccess);
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
    EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
    EXPECT_EQ(cudaFree(more), cudaSuccess);
  }
  std::thread([] {
    const Relaxed relaxed;
    EXPECT_EQ(cudaFree(make_memory()), cudaSuccess);
  }).join();
  EXPECT_EQ(end(), cudaSuccess);
}

TEST_F(StandInCapture, OfThreadLocalModeForbidsThemToItsThreadAlone) {
  begin(cudaStreamCaptureModeThreadLocal);
  std::thread([] { EXPECT_EQ(cudaFree(make_memory()), cudaSuccess); }).join();
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusActive);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 1), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, OfRelaxedModeForbidsThemToNobody) {
  begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaFree(make_memory()), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
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
  ASSERT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  ASSERT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
}

TEST_F(StandInCapture, OfABlockingStreamKeepsTheLegacyStreamFromWork) {
  cudaStream_t blocking = make_stream(cudaStreamDefault);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  cudaStreamCaptureStatus status{};
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(status_of(blocking), cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaMemsetAsync(memory_, 1, 512, nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(status_of(blocking), cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaMemsetAsync(memory_, 1, 512, nullptr), cudaSuccess);
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
  ASSERT_EQ(cudaEventRecord(forked, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other, forked, 0), cudaSuccess);
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusActive);
  ASSERT_EQ(cudaMemsetAsync(memory_, 2, 512, other), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(joined, other), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream_, joined, 0), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusNone);
}

TEST_F(StandInCapture, TakesInAStreamOfAnotherDevice) {
  weir_standin_set_devices(2);
  cudaEvent_t forked = make_event();
  begin();
  ASSERT_EQ(cudaEventRecord(forked, stream_), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t other = make_stream();
  cudaEvent_t joined = make_event();
  ASSERT_EQ(cudaStreamWaitEvent(other, forked, 0), cudaSuccess);
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusActive);
  EXPECT_EQ(number_of(other), number_of(stream_));
  ASSERT_EQ(cudaMemsetAsync(memory_, 2, 512, other), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(joined, other), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream_, joined, 0), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusNone);
}

TEST_F(StandInCapture, IsBrokenByAskingForItsStreamOfAnotherDevice) {
  weir_standin_set_devices(2);
  cudaEvent_t forked = make_event();
  begin(cudaStreamCaptureModeRelaxed);
  ASSERT_EQ(cudaEventRecord(forked, stream_), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t other = make_stream();
  ASSERT_EQ(cudaStreamWaitEvent(other, forked, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(other), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, HasANumberOfItsOwn) {
  EXPECT_EQ(number_of(stream_), 0U);
  begin();
  const cuuint64_t first = number_of(stream_);
  EXPECT_NE(first, 0U);
  EXPECT_EQ(end(), cudaSuccess);
  EXPECT_EQ(number_of(stream_), 0U);
  begin();
  EXPECT_NE(number_of(stream_), first);
  EXPECT_NE(number_of(stream_), 0U);
  EXPECT_EQ(end(), cudaSuccess);
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
  ASSERT_EQ(cuUserObjectCreate(
                &object, &destroyed, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, 1,
                CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_SUCCESS);
  CUgraph captured = nullptr;
  ASSERT_EQ(graph_of(stream_, captured), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphRetainUserObject(captured, object, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
  ASSERT_EQ(cudaMemsetAsync(memory_, 2, 512, stream_), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(graph, captured);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  weir_standin_hold(stream_);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
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
  ASSERT_EQ(cuUserObjectCreate(
                &object, &destroyed, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, 2,
                CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_SUCCESS);
  CUgraph captured = nullptr;
  ASSERT_EQ(graph_of(stream_, captured), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphRetainUserObject(captured, object, 3, CU_GRAPH_USER_OBJECT_MOVE),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuGraphRetainUserObject(captured, object, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(weir_standin_live().graphs, 0U);
  ASSERT_EQ(cuUserObjectRelease(object, 1), CUDA_SUCCESS);
  while (destroyed == 0) std::this_thread::yield();
  EXPECT_EQ(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StandInCapture, NeedsItsStreamsJoinedAtTheEnd) {
  cudaStream_t other = make_stream();
  cudaEvent_t forked = make_event();
  cudaEvent_t joined = make_event();
  begin();
  ASSERT_EQ(cudaEventRecord(forked, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other, forked, 0), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(joined, other), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream_, joined, 0), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory_, 2, 512, other), cudaSuccess);
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusNone);
}

TEST_F(StandInCapture, TakesInNoDependencyFromOutside) {
  cudaStream_t other = make_stream();
  cudaEvent_t event = make_event();
  ASSERT_EQ(cudaEventRecord(event, other), cudaSuccess);
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, DoesNotMergeWithAnother) {
  cudaStream_t other = make_stream();
  cudaEvent_t event = make_event();
  begin();
  ASSERT_EQ(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, other), cudaSuccess);
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
  ASSERT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, IsOverWhenItsStreamIsDestroyed) {
  begin();
  ASSERT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  EXPECT_EQ(cudaFree(memory_), cudaSuccess);
}

}  // namespace
}  // namespace weir::standin::testing
