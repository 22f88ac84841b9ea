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
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) const {
    ok(cudaStreamBeginCapture(stream_, mode));
  }
  /// Ends the capture and returns its result.
  [[nodiscard]] cudaError_t end() const {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream_, &graph);
    EXPECT_EQ(error == cudaSuccess, graph != nullptr);
    if (graph != nullptr) ok(cudaGraphDestroy(graph));
    return error;
  }
  /// In a capture of its own, `call` returns `code` and breaks the capture.
  template <typename Call>
  void expect_breaks(cudaError_t code, const Call& call,
                     cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) const {
    begin(mode);
    EXPECT_EQ(call(), code);
    EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(number_of(stream_), 0U);
    EXPECT_EQ(cudaMemsetAsync(memory_, 0, 1, stream_), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  }
  static cudaError_t allocate() {
    void* memory = nullptr;
    return cudaMalloc(&memory, 1);
  }
  /// Puts `to` behind what `from` has so far.
  static void order(cudaStream_t to, cudaStream_t from) {
    cudaEvent_t event = make_event();
    ok(cudaEventRecord(event, from));
    ok(cudaStreamWaitEvent(to, event, 0));
  }
  /// An object of the program in the graph of the capture, with `references` in all.
  CUuserObject retain_object(std::atomic<int>& destroyed, unsigned references,
                             CUgraph* graph) const {
    CUuserObject object = nullptr;
    const auto destroy = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
    ok(cuUserObjectCreate(&object, &destroyed, destroy, references,
                          CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CUstreamCaptureStatus status{};
    ok(cuStreamGetCaptureInfo_v2(stream_, &status, nullptr, graph, nullptr, nullptr));
    EXPECT_EQ(cuGraphRetainUserObject(*graph, object, references + 1, CU_GRAPH_USER_OBJECT_MOVE),
              CUDA_ERROR_INVALID_VALUE);
    ok(cuGraphRetainUserObject(*graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    return object;
  }

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
    sync();
    EXPECT_TRUE(all_bytes(memory_, 9));
  }
  EXPECT_EQ(weir_standin_live().graphs, 1U);
  ok(cudaGraphExecDestroy(exec));
  EXPECT_EQ(weir_standin_live().graphs, 0U);
}

TEST_F(StandInCapture, OfGlobalModeForbidsUnsafeCallsOfAllThreads) {
  cudaEvent_t event = make_event();
  constexpr cudaError_t kUnsafe = cudaErrorStreamCaptureUnsupported;
  expect_breaks(kUnsafe, &allocate);
  expect_breaks(kUnsafe, [&] { return cudaFree(memory_); });
  expect_breaks(kUnsafe, [&] { return cudaEventQuery(event); });
  expect_breaks(kUnsafe, &cudaDeviceSynchronize);
  expect_breaks(kUnsafe, [] {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = allocate(); }).join();
    return error;
  });
  ok(cudaFree(memory_));
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
  const auto allocate_here = [&] {
    std::thread([] { ok(cudaFree(make_memory())); }).join();
    EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusActive);
    return allocate();
  };
  expect_breaks(cudaErrorStreamCaptureUnsupported, allocate_here, cudaStreamCaptureModeThreadLocal);
}

TEST_F(StandInCapture, OfRelaxedModeForbidsThemToNobody) {
  begin(cudaStreamCaptureModeRelaxed);
  ok(cudaFree(make_memory()));
  ok(end());
}

TEST_F(StandInCapture, IsBrokenByAskingForItsStreamAndByACallback) {
  const Relaxed relaxed;
  constexpr cudaError_t kUnsafe = cudaErrorStreamCaptureUnsupported;
  expect_breaks(kUnsafe, [&] { return cudaStreamQuery(stream_); });
  expect_breaks(kUnsafe, [&] { return cudaStreamSynchronize(stream_); });
  expect_breaks(kUnsafe, &cudaDeviceSynchronize);
  expect_breaks(kUnsafe, [&] {
    return cudaStreamAddCallback(
        stream_, [](cudaStream_t, cudaError_t, void*) {}, nullptr, 0);
  });
}

TEST_F(StandInCapture, IsBrokenByAskingForItsEvent) {
  const Relaxed relaxed;
  cudaEvent_t event = make_event();
  expect_breaks(cudaErrorCapturedEvent, [&] {
    ok(cudaEventRecord(event, stream_));
    return cudaEventQuery(event);
  });
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

TEST_F(StandInCapture, TakesInAStreamOfAnyDeviceThatWaitsForIt) {
  weir_standin_set_devices(2);
  for (const int device : {0, 1}) {
    begin();
    cudaEvent_t forked = make_event();
    ok(cudaEventRecord(forked, stream_));
    ok(cudaSetDevice(device));
    cudaStream_t other = make_stream();
    ok(cudaStreamWaitEvent(other, forked, 0));
    EXPECT_EQ(status_of(other), cudaStreamCaptureStatusActive);
    EXPECT_EQ(number_of(other), number_of(stream_));
    ok(cudaMemsetAsync(memory_, 2, 512, other));
    order(stream_, other);
    ok(end());
    EXPECT_EQ(status_of(other), cudaStreamCaptureStatusNone);
  }
}

TEST_F(StandInCapture, IsBrokenByAskingForItsStreamOfAnotherDevice) {
  weir_standin_set_devices(2);
  cudaEvent_t forked = make_event();
  expect_breaks(
      cudaErrorStreamCaptureUnsupported,
      [&] {
        ok(cudaEventRecord(forked, stream_));
        ok(cudaSetDevice(1));
        cudaStream_t other = make_stream();
        ok(cudaStreamWaitEvent(other, forked, 0));
        return cudaStreamQuery(other);
      },
      cudaStreamCaptureModeRelaxed);
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

TEST_F(StandInCapture, HasAGraphThatKeepsAnObjectUntilItsLastInstanceIsGone) {
  std::atomic<int> destroyed{0};
  begin();
  CUgraph captured = nullptr;
  (void)retain_object(destroyed, 1, &captured);
  ok(cudaMemsetAsync(memory_, 2, 512, stream_));
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(graph, captured);
  cudaGraphExec_t exec = nullptr;
  ok(cudaGraphInstantiate(&exec, graph, 0));
  ok(cudaGraphDestroy(graph));
  while_held([&] {
    ok(cudaGraphLaunch(exec, stream_));
    ok(cudaGraphExecDestroy(exec));
    EXPECT_EQ(destroyed, 0);
  });
  while (destroyed == 0) std::this_thread::yield();
  EXPECT_TRUE(all_bytes(memory_, 2));
  EXPECT_EQ(weir_standin_live().graphs, 0U);
}

TEST_F(StandInCapture, ThatFailsLetsGoOfItsGraphAndItsObjects) {
  std::atomic<int> destroyed{0};
  begin();
  CUgraph captured = nullptr;
  CUuserObject object = retain_object(destroyed, 2, &captured);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(weir_standin_live().graphs, 0U);
  ok(cuUserObjectRelease(object, 1));
  while (destroyed == 0) std::this_thread::yield();
  EXPECT_EQ(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StandInCapture, NeedsItsStreamsJoinedAtTheEnd) {
  cudaStream_t other = make_stream();
  begin();
  order(other, stream_);
  order(stream_, other);
  ok(cudaMemsetAsync(memory_, 2, 512, other));
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(status_of(other), cudaStreamCaptureStatusNone);
}

TEST_F(StandInCapture, TakesInNoDependencyFromOutside) {
  cudaEvent_t event = make_event();
  ok(cudaEventRecord(event, make_stream()));
  expect_breaks(cudaErrorStreamCaptureIsolation,
                [&] { return cudaStreamWaitEvent(stream_, event, 0); });
}

TEST_F(StandInCapture, DoesNotMergeWithAnother) {
  cudaStream_t other = make_stream();
  cudaEvent_t event = make_event();
  ok(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal));
  ok(cudaEventRecord(event, other));
  expect_breaks(cudaErrorStreamCaptureMerge,
                [&] { return cudaStreamWaitEvent(stream_, event, 0); });
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StandInCapture, EndsWhereAndByWhomItBegan) {
  cudaStream_t other = make_stream();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorIllegalState);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  std::thread([&] {
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  order(other, stream_);
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
