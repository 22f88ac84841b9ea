// What a stream capture forbids, what breaks it, and its result.

#include <thread>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInCapture : public StandIn {
 protected:
  static cudaStreamCaptureStatus status_of(cudaStream_t stream) {
    cudaStreamCaptureStatus status{};
    ok(cudaStreamIsCapturing(stream, &status));
    return status;
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

}  // namespace
}  // namespace weir::standin::testing
