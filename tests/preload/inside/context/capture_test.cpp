// While a stream is captured, our calls do not touch the capture, and allocations continue.

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

class Capture : public Inside {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start()); }
  /// Frees a block while `stream` continues to use it, so that an event covers it.
  [[nodiscard]] static CUdeviceptr freed_in_use(CUstream stream) {
    const CUdeviceptr block = allocate(kBytes);
    keep_busy(stream, block);
    free(block);
    EXPECT_FALSE(is_handed_out(block, kBytes));
    EXPECT_NE(weir_standin_calls("cuEventRecord"), 0U);
    return block;
  }
  /// Calls that a capture forbids, or that could become a part of it.
  static std::uint64_t unsafe_calls() {
    std::uint64_t sum = 0;
    for (const char* call :
         {"cuEventQuery", "cuStreamQuery", "cuEventRecord", "cuEventSynchronize",
          "cuStreamSynchronize", "cuCtxSynchronize", "cuStreamWaitEvent", "cuMemFree"}) {
      sum += weir_standin_calls(call);
    }
    return sum;
  }
};
class CaptureUnder : public Capture {
  void SetUp() override {}
};

TEST_F(Capture, AnAllocationOnTheCapturedStreamIsTheGraphs) {
  const CUstream stream = make_stream();
  begin_capture(stream);
  const CUdeviceptr block = allocate(kBytes, stream);
  ASSERT_EQ(cuMemsetD8Async(block, 1, kBytes, stream), CUDA_SUCCESS);
  free(block, stream);
  EXPECT_EQ(weir_standin_calls("cuMemAllocAsync"), 1U);
  EXPECT_EQ(weir_standin_calls("cuMemFreeAsync"), 1U);
  EXPECT_EQ(statistics().reserved.current, Bytes{});
  end_capture(stream);
  EXPECT_EQ(allocate(kBytes, stream) != 0, true);
  EXPECT_EQ(weir_standin_calls("cuMemAllocAsync"), 1U);
}

TEST_F(CaptureUnder, WhatGraphsReserveIsCounted) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUstream stream = make_stream();
  begin_capture(stream);
  free(allocate(4 * kMib, stream), stream);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), 60 * kMib);
}

TEST_F(Capture, OnlyMemoryOnItsOwnStreamsStaysWithTheGraph) {
  const CUstream captured = make_stream();
  const CUstream other = make_stream();
  begin_capture(captured);
  void* const inside = allocate_on(0, kBytes, captured);
  void* const beside = allocate_on(0, kBytes, other);
  void* const legacy = allocate_on(0, kBytes, nullptr);
  ASSERT_NE(inside, nullptr);
  ASSERT_NE(beside, nullptr);
  ASSERT_NE(legacy, nullptr);
  free_on(0, inside, captured);
  free_on(0, beside, other);
  free_on(0, legacy, nullptr);
  end_capture(captured);
  EXPECT_EQ(statistics().requested.current, Bytes{kBytes});
}

TEST_F(Capture, OtherStreamsAreServedFromTheCache) {
  const CUstream captured = make_stream();
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBytes, stream);
  const CUdeviceptr any = allocate(kBytes);
  free(block, stream);
  free(any);
  settle();
  begin_capture(captured);
  weir_standin_clear_counters();
  // By now both are available to everybody, in any order.
  const CUdeviceptr first = allocate(kBytes, stream);
  const CUdeviceptr second = allocate(kBytes);
  EXPECT_TRUE((first == block && second == any) || (first == any && second == block));
  EXPECT_EQ(unsafe_calls(), 0U);
  end_capture(captured);
}

TEST_F(CaptureUnder, NothingIsQueriedRecordedOrGivenBack) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "20ms"}}));
  const CUstream captured = make_stream();
  const CUstream stream = make_stream();
  const CUstream other = make_stream();
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(allocate(kBytes));
  std::vector<CUdeviceptr> ordered;
  for (int i = 0; i < 100; ++i) ordered.push_back(allocate(kBytes, stream));
  const CUmemoryPool pool = default_pool();
  free(allocate(kMib));
  settle();

  begin_capture(captured);
  weir_standin_clear_counters();
  for (const CUdeviceptr block : blocks) free(block);
  for (const CUdeviceptr block : ordered) free(block, other);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(trim(0), Bytes{});
  EXPECT_EQ(cuMemGetInfo(nullptr, nullptr), CUDA_SUCCESS);
  cuuint64_t used = 0;
  EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(cuLaunchHostFunc(
                  captured, [](void*) {}, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(ordered.front(), 1, 1, captured), CUDA_SUCCESS);
  }
  EXPECT_EQ(try_allocate(8 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  const CUstream brief = make_stream();
  free(allocate(kBytes, brief), brief);
  EXPECT_EQ(unsafe_calls(), 0U);
  EXPECT_EQ(cuStreamDestroy(brief), CUDA_SUCCESS);
  end_capture(captured);

  // Memory freed meanwhile is usable afterwards.
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
  (void)allocate(8 * kMib);
}

// A program that lost its way in a capture goes on with other streams.
TEST_F(CaptureUnder, OneInRelaxedModeThatNeverEndsKeepsNoFreedMemoryBack) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "16MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUstream captured = make_stream();
  const CUstream stream = make_stream();
  const CUdeviceptr before = allocate(kBytes);
  ASSERT_EQ(cuMemsetD8Async(before, 1, kBytes, captured), CUDA_SUCCESS);
  begin_capture(captured, CU_STREAM_CAPTURE_MODE_RELAXED);
  on_another_thread([&] {
    for (int i = 0; i < 20; ++i) {
      const CUdeviceptr any = allocate(8 * kMib);
      const CUdeviceptr ordered = allocate(4 * kMib, stream);
      ASSERT_EQ(cuMemsetD8Async(any, 1, 8 * kMib, stream), CUDA_SUCCESS);
      free(any);
      free(ordered, stream);
    }
  });
  free(before);
  EXPECT_EQ(weir_standin_late_uses(), 0U);
  end_capture(captured);
}

TEST_F(Capture, AHostFunctionRunsWithEachLaunchOfItsGraph) {
  const CUstream stream = make_stream();
  begin_capture(stream);
  int runs = 0;
  ASSERT_EQ(cuLaunchHostFunc(
                stream, [](void* data) { ++*static_cast<int*>(data); }, &runs),
            CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  CUgraphExec launchable = nullptr;
  ASSERT_EQ(cuGraphInstantiateWithFlags(&launchable, graph, 0), CUDA_SUCCESS);
  for (int launch = 1; launch <= 3; ++launch) {
    ASSERT_EQ(cuGraphLaunch(launchable, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(runs, launch);
  }
}

TEST_F(Capture, AFreeDuringTheCaptureStillAwaitsTheDevice) {
  const CUstream captured = make_stream();
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBytes);
  keep_busy(stream, block);
  begin_capture(captured);
  free(block);
  EXPECT_FALSE(is_handed_out(block, kBytes));
  end_capture(captured);
  EXPECT_FALSE(is_handed_out(block, kBytes));
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(Capture, AnEndThatIsRefusedLeavesItUnderWay) {
  expect_refused("cuStreamEndCapture", CUDA_ERROR_INVALID_VALUE);
  const CUstream captured = make_stream();
  const CUdeviceptr block = freed_in_use(make_stream());
  begin_capture(captured);
  EXPECT_EQ(cuStreamEndCapture(captured, nullptr), CUDA_ERROR_INVALID_VALUE);
  weir_standin_clear_counters();
  EXPECT_FALSE(is_handed_out(block, kBytes));
  EXPECT_EQ(unsafe_calls(), 0U);
  end_capture(captured);
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(Capture, OneThatNobodyKnowsOfLosesNoFence) {
  expect_refused("cuEventQuery", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_refused("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  const CUstream captured = make_stream();
  const CUdeviceptr block = freed_in_use(make_stream());
  const Driver& driver = Process::get()->driver();  // past the hooks
  ASSERT_EQ(driver.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_FALSE(is_handed_out(block, kBytes));
  CUgraph graph = nullptr;
  (void)driver.cuStreamEndCapture(captured, &graph);  // our question may have broken it
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(Capture, OneWhoseStreamIsDestroyedIsReckonedWithUntilTheDriverEndsIt) {
  const CUstream captured = make_stream();
  free(allocate(kBytes));
  weir_standin_clear_counters();
  free(allocate(kBytes));
  EXPECT_EQ(weir_standin_calls("cuThreadExchangeStreamCaptureMode"), 0U);
  begin_capture(captured);
  ASSERT_EQ(cuStreamDestroy(captured), CUDA_SUCCESS);
  weir_standin_clear_counters();
  for (int i = 0; i < 2; ++i) free(allocate(kBytes));  // the second asks about the first's free
  EXPECT_NE(weir_standin_calls("cuThreadExchangeStreamCaptureMode"), 0U);
}

TEST_F(Capture, ThatIsBegunTwiceStaysUnbroken) {
  expect_refused("cuStreamBeginCapture", CUDA_ERROR_ILLEGAL_STATE);
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBytes);
  begin_capture(stream);
  EXPECT_NE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  free(block);
  end_capture(stream);
}

TEST_F(Capture, AStreamThatGoesMeanwhileIsWaitedForAllTheSame) {
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBytes, stream);
  weir_standin_delay(stream, 20'000'000);
  ASSERT_EQ(cuMemsetD8Async(block, 7, kBytes, stream), CUDA_SUCCESS);
  free(block, stream);
  begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  free(allocate(kBytes));
  // The stand-in breaks the context of a copy or set that reaches another block's memory.
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(Capture, OurCallsOnAnotherThreadDoNotBreakIt) {
  const CUstream captured = make_stream();
  begin_capture(captured);
  on_another_thread([] {
    const CUstream stream = make_stream();
    for (std::size_t bytes = 4096; bytes < kMib; bytes *= 2) {
      free(allocate(bytes));
      free(allocate(bytes, stream), stream);
    }
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  });
  end_capture(captured);
}

TEST_F(Capture, ACaptureThatBreaksEndsForUsToo) {
  expect_refused("cuStreamSynchronize", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_refused("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  const CUstream captured = make_stream();
  const CUdeviceptr block = allocate(kBytes);
  begin_capture(captured);
  free(block);
  EXPECT_NE(cuStreamSynchronize(captured), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(captured, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_FALSE(arena().fences().capturing());
  settle();
  EXPECT_EQ(allocate(kBytes), block);
}

TEST_F(Capture, AStreamThatIsDestroyedMeanwhileEndsItForUsToo) {
  const CUstream captured = make_stream();
  const CUdeviceptr block = allocate(kBytes);
  begin_capture(captured);
  free(block);
  EXPECT_EQ(cuStreamDestroy(captured), CUDA_SUCCESS);
  EXPECT_FALSE(arena().fences().capturing());
  settle();
  EXPECT_EQ(allocate(kBytes), block);
}

TEST_F(Capture, AWaitOnTheLegacyStreamMeanwhileIsNoFence) {
  const CUstream captured = make_stream();
  const CUevent event = make_event();
  begin_capture(captured, CU_STREAM_CAPTURE_MODE_RELAXED);
  weir_standin_clear_counters();
  EXPECT_EQ(cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(unsafe_calls(), 1U) << "blocking streams would wait for each other";
  end_capture(captured);
}

/// How to destroy a stream that has joined a capture.
enum class Destroyed : std::uint8_t {
  kBeforeTheEnd,
  kOfOneThatBroke,
  kBeforeItsOrigin,
  kMergedAgain
};

class CapturedStream : public Capture, public ::testing::WithParamInterface<Destroyed> {
 protected:
  void SetUp() override {}
  void end(CUstream origin, CUstream joined, CUevent event) {
    CUgraph graph = nullptr;
    if (GetParam() == Destroyed::kOfOneThatBroke) (void)cuStreamSynchronize(origin);
    if (GetParam() == Destroyed::kMergedAgain) {
      ASSERT_EQ(cuEventRecord(event, joined), CUDA_SUCCESS);
      ASSERT_EQ(cuStreamWaitEvent(origin, event, 0), CUDA_SUCCESS);
    }
    ASSERT_EQ(cuStreamDestroy(joined), CUDA_SUCCESS);
    if (GetParam() == Destroyed::kBeforeItsOrigin) {
      ASSERT_EQ(cuStreamDestroy(origin), CUDA_SUCCESS);
    } else {
      (void)cuStreamEndCapture(origin, &graph);
    }
  }
};

TEST_P(CapturedStream, ThatIsDestroyedLeavesMemoryUsable) {
  weir::testing::expect_any_refused();  // what ends is broken
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "50ms"}, {"WEIR_STANDIN_DEVICES", "2"}}));
  // Of another context, so that only the stream that waits for it blocks the memory here; a
  // destroyed one could not be released.
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  const CUstream gate = make_stream();
  hold(gate);
  ASSERT_EQ(cuMemsetD8Async(allocate(kBytes), 1, kBytes, gate), CUDA_SUCCESS);
  const CUevent opened = make_event();
  ASSERT_EQ(cuEventRecord(opened, gate), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(use_device(0));
  const CUstream origin = make_stream();
  const CUstream joined = make_stream();
  const CUevent event = make_event();
  const CUdeviceptr used = allocate(kBytes);
  ASSERT_EQ(cuStreamWaitEvent(joined, opened, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(used, 1, kBytes, joined), CUDA_SUCCESS);
  begin_capture(origin);
  ASSERT_EQ(cuEventRecord(event, origin), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(joined, event, 0), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(end(origin, joined, event));
  free(used);
  EXPECT_FALSE(is_handed_out(used, kBytes)) << "it did work before it was captured";
  settle();
  for (int i = 0; i < 8; ++i) free(allocate(4 * kMib));  // more than the budget in all
  EXPECT_EQ(weir_standin_late_uses(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Captures, CapturedStream,
                         ::testing::Values(Destroyed::kBeforeTheEnd, Destroyed::kOfOneThatBroke,
                                           Destroyed::kBeforeItsOrigin, Destroyed::kMergedAgain));

TEST_F(CaptureUnder, SegmentsMakeRoomOnlyAfterwards) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}}));
  const CUstream captured = make_stream();
  free(allocate(4 * kMib));
  settle();
  begin_capture(captured);
  weir_standin_clear_counters();
  EXPECT_EQ(try_allocate(8 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(unsafe_calls(), 0U);
  end_capture(captured);
  free(allocate(8 * kMib));
}

TEST_F(CaptureUnder, SegmentsThatAreGivenUpMeanwhileGoBackAfterwards) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "unpooled"}}));
  const CUstream captured = make_stream();
  const CUstream stream = make_stream();
  const CUdeviceptr passed = allocate(kBytes, stream);
  free(passed, stream);
  settle();
  (void)trim(0);
  EXPECT_EQ(weir_standin_used(0), 0U);
  const CUdeviceptr block = allocate(kBytes, stream);
  begin_capture(captured);
  weir_standin_clear_counters();
  free(block, stream);
  EXPECT_EQ(unsafe_calls(), 0U);
  end_capture(captured);
  settle();
  (void)trim(0);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

}  // namespace
}  // namespace weir::preload::testing
