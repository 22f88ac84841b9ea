// A capture that begins on a stream of one context and is joined by a stream of another. One long
// file, because every case has the same two devices and the same capture over them.

#include <atomic>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

class CaptureOverContexts : public Inside {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start_two()); }
  /// Sets up two devices with an arena each; the second one's context is current afterwards.
  void start_two(Variables variables = {{"WEIR_STANDIN_DEVICES", "2"}}) {
    ASSERT_NO_FATAL_FAILURE(start(variables));
    ASSERT_EQ(cuCtxGetCurrent(&first_), CUDA_SUCCESS);
    origin_ = make_stream();
    ASSERT_EQ(cuEventCreate(&forked_, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    free(allocate(kBytes));
    ASSERT_NO_FATAL_FAILURE(use_device(1));
    ASSERT_EQ(cuCtxGetCurrent(&second_), CUDA_SUCCESS);
    joined_ = make_stream();
    ASSERT_EQ(cuEventCreate(&merged_, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    free(allocate(kBytes));
    settle();
  }
  /// Begins a capture on the first device and has the second one's stream join it.
  void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    use(first_);
    ASSERT_EQ(cuStreamBeginCapture(origin_, mode), CUDA_SUCCESS);
    join();
  }
  void join() {
    ASSERT_EQ(cuEventRecord(forked_, origin_), CUDA_SUCCESS);
    use(second_);
    ASSERT_EQ(cuStreamWaitEvent(joined_, forked_, 0), CUDA_SUCCESS);
  }
  /// Joins the second stream's work to the first's, and ends the capture there.
  [[nodiscard]] CUgraph end() {
    CUgraph graph = nullptr;
    use(second_);
    EXPECT_EQ(cuEventRecord(merged_, joined_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(origin_, merged_, 0), CUDA_SUCCESS);
    use(first_);
    EXPECT_EQ(cuStreamEndCapture(origin_, &graph), CUDA_SUCCESS);
    EXPECT_NE(graph, nullptr);
    use(second_);
    return graph;
  }
  [[nodiscard]] CUgraphExec instantiate(CUgraph graph) const {
    CUgraphExec launchable = nullptr;
    use(first_);
    EXPECT_EQ(cuGraphInstantiateWithFlags(&launchable, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    return launchable;
  }
  void launch(CUgraphExec launchable) const {
    ASSERT_EQ(cuGraphLaunch(launchable, origin_), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(origin_), CUDA_SUCCESS);
  }
  [[nodiscard]] Arena& arena_of(CUcontext context) const {
    use(context);
    Arena& found = arena();
    use(second_);
    return found;
  }
  [[nodiscard]] bool capturing(CUcontext context) const {
    return arena_of(context).fences().capturing();
  }
  /// Whether none of our calls broke it.
  [[nodiscard]] bool is_whole() const {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_EQ(cuStreamIsCapturing(origin_, &status), CUDA_SUCCESS);
    return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  }

  CUcontext first_ = nullptr;
  CUcontext second_ = nullptr;
  CUstream origin_ = nullptr;
  CUstream joined_ = nullptr;
  CUevent forked_ = nullptr;
  CUevent merged_ = nullptr;
};

TEST_F(CaptureOverContexts, AnAllocationOnTheStreamThatJoinedIsTheGraphs) {
  ASSERT_NO_FATAL_FAILURE(begin());
  weir_standin_clear_counters();
  const CUdeviceptr block = allocate(kBytes, joined_);
  ASSERT_EQ(cuMemsetD8Async(block, 1, kBytes, joined_), CUDA_SUCCESS);
  free(block, joined_);
  EXPECT_EQ(weir_standin_calls("cuMemAllocAsync"), 1U);
  EXPECT_EQ(weir_standin_calls("cuMemFreeAsync"), 1U);
  // Nobody may use it while the graph exists.
  EXPECT_FALSE(is_handed_out(block, kBytes));
  const CUgraphExec launchable = instantiate(end());
  EXPECT_FALSE(is_handed_out(block, kBytes));
  ASSERT_NO_FATAL_FAILURE(launch(launchable));
  EXPECT_EQ(cuGraphExecDestroy(launchable), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_late_uses(), 0U);
}

TEST_F(CaptureOverContexts, FreesOfTheContextThatJoinedDoNotBreakIt) {
  const CUstream other = make_stream();
  const CUdeviceptr busy = allocate(kBytes);
  keep_busy(other, busy);
  ASSERT_NO_FATAL_FAILURE(begin());
  EXPECT_TRUE(capturing(second_));
  free(busy);
  EXPECT_FALSE(is_handed_out(busy, kBytes));
  for (int i = 0; i < 200; ++i) free(allocate(kBytes));
  for (int i = 0; i < 200; ++i) free(allocate(kBytes, other), other);
  EXPECT_EQ(trim(-1), Bytes{});
  EXPECT_TRUE(is_whole());
  const CUgraph graph = end();
  EXPECT_FALSE(capturing(second_));
  EXPECT_FALSE(is_handed_out(busy, kBytes)) << "its stream still works";
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(CaptureOverContexts, AContextThatDoesNotJoinGoesOnAsBefore) {
  const CUstream stream = make_stream();
  use(first_);
  begin_capture(origin_);
  EXPECT_FALSE(capturing(second_));
  const CUdeviceptr block = allocate(kBytes);
  keep_busy(stream, block);
  free(block);
  weir_standin_release(stream);
  wait_until([&] { return is_handed_out(block, kBytes); });
  EXPECT_NE(trim(1), Bytes{});
  EXPECT_TRUE(is_whole());
  end_capture(origin_);
}

TEST_F(CaptureOverContexts, CostsNothingWhereNoneIsUnderWay) {
  ASSERT_EQ(cuEventRecord(merged_, joined_), CUDA_SUCCESS);
  weir_standin_clear_counters();
  ASSERT_EQ(cuStreamWaitEvent(joined_, merged_, 0), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls(nullptr), 1U);
  free(allocate(kBytes, joined_), joined_);
  free(allocate(kBytes));
  ASSERT_EQ(cuLaunchHostFunc(
                joined_, [](void*) {}, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuStreamIsCapturing"), 0U);
  EXPECT_EQ(weir_standin_calls("cuStreamGetCaptureInfo"), 0U);
}

/// Neither of these forbids our calls on this or other threads.
TEST_F(CaptureOverContexts, OfEveryModeIsLeftWhole) {
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED,
                          CU_STREAM_CAPTURE_MODE_GLOBAL}) {
    ASSERT_NO_FATAL_FAILURE(begin(mode));
    free(allocate(4 * kMib));
    free(allocate(kBytes));
    std::thread([&] {
      use(second_);
      free(allocate(5 * kMib));
      free(allocate(kBytes));
    }).join();
    EXPECT_TRUE(is_whole()) << mode;
    EXPECT_EQ(cuGraphDestroy(end()), CUDA_SUCCESS);
    EXPECT_FALSE(capturing(second_));
  }
}

#if CUDA_VERSION >= 12030
TEST_F(CaptureOverContexts, IntoAGraphThatIsThereIsKnownToo) {
  CUgraph graph = nullptr;
  use(first_);
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCaptureToGraph(origin_, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(join());
  EXPECT_TRUE(capturing(second_));
  free(allocate(kBytes));
  EXPECT_EQ(end(), graph);
  EXPECT_FALSE(capturing(second_));
}
#endif

TEST_F(CaptureOverContexts, GoesOnAfterAnEndOnTheStreamThatJoined) {
  expect_refused("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  expect_refused("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_NO_FATAL_FAILURE(begin());
  expect_end_refused(joined_, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_TRUE(capturing(first_));
  EXPECT_TRUE(capturing(second_));
  expect_end_refused(origin_, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_FALSE(capturing(first_));
  EXPECT_FALSE(capturing(second_));
}

TEST_F(CaptureOverContexts, ThatWasNeverJoinedAgainIsOverAllTheSame) {
  expect_refused("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  ASSERT_NO_FATAL_FAILURE(begin());
  const CUdeviceptr block = allocate(kBytes);
  ASSERT_EQ(cuMemsetD8Async(block, 1, 1, joined_), CUDA_SUCCESS);
  free(block);
  expect_end_refused(origin_, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_FALSE(capturing(second_));
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(CaptureOverContexts, ThatBrokeIsOverAtItsEnd) {
  expect_refused("cuStreamQuery", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_refused("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_NO_FATAL_FAILURE(begin());
  EXPECT_EQ(cuStreamQuery(joined_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_TRUE(capturing(second_));
  free(allocate(kBytes));
  expect_end_refused(origin_, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_FALSE(capturing(first_));
  EXPECT_FALSE(capturing(second_));
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(CaptureOverContexts, IsOverEverywhereWhenItsStreamIsDestroyed) {
  ASSERT_NO_FATAL_FAILURE(begin());
  const CUdeviceptr block = allocate(kBytes);
  free(block);
  EXPECT_EQ(cuStreamDestroy(origin_), CUDA_SUCCESS);
  EXPECT_FALSE(capturing(first_));
  EXPECT_FALSE(capturing(second_));
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(CaptureOverContexts, IsOverEverywhereWhenItsContextIsGone) {
  ASSERT_NO_FATAL_FAILURE(begin());
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  use(second_);
  EXPECT_FALSE(arena().fences().capturing());
  free(allocate(kBytes));
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(CaptureOverContexts, GoesOnWhenAContextThatJoinedIsGone) {
  expect_refused("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_NO_FATAL_FAILURE(begin());
  ASSERT_EQ(cuDevicePrimaryCtxReset(1), CUDA_SUCCESS);
  use(first_);
  EXPECT_TRUE(arena().fences().capturing());
  expect_end_refused(origin_, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_FALSE(arena().fences().capturing());
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  EXPECT_FALSE(arena().fences().capturing());
}

TEST_F(CaptureOverContexts, EndsOnAnotherThreadWhereItsModeAllowsThat) {
  ASSERT_NO_FATAL_FAILURE(begin(CU_STREAM_CAPTURE_MODE_RELAXED));
  std::thread([&] { EXPECT_EQ(cuGraphDestroy(end()), CUDA_SUCCESS); }).join();
  EXPECT_FALSE(capturing(first_));
  EXPECT_FALSE(capturing(second_));
}

TEST_F(CaptureOverContexts, IsNotJoinedByAWaitForWorkOfAnotherStream) {
  use(first_);
  begin_capture(origin_);
  use(second_);
  ASSERT_EQ(cuEventRecord(merged_, make_stream()), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(joined_, merged_, 0), CUDA_SUCCESS);
  EXPECT_FALSE(capturing(second_));
  ASSERT_NO_FATAL_FAILURE(join());
  EXPECT_TRUE(capturing(second_));
  EXPECT_EQ(cuGraphDestroy(end()), CUDA_SUCCESS);
  EXPECT_FALSE(capturing(second_));
  EXPECT_FALSE(CapturesUnderWay::any());
}

/// Each has its own number: the end of one does not end the other.
TEST_F(CaptureOverContexts, OfTwoAtOnceEachEndsForItself) {
  ASSERT_NO_FATAL_FAILURE(begin());
  use(first_);
  const CUstream another = make_stream();
  begin_capture(another);
  end_capture(another);
  EXPECT_TRUE(capturing(first_));
  EXPECT_TRUE(capturing(second_));
  free(allocate(kBytes));
  EXPECT_TRUE(is_whole());
  EXPECT_EQ(cuGraphDestroy(end()), CUDA_SUCCESS);
  EXPECT_FALSE(capturing(first_));
  EXPECT_FALSE(capturing(second_));
}

/// Like a library that gets the driver's functions elsewhere.
TEST_F(CaptureOverContexts, IsNotBrokenWhereNobodySawTheStreamJoin) {
  const Driver& driver = Process::get()->driver();  // past the hooks
  const CUdeviceptr busy = allocate(kBytes);
  use(first_);
  begin_capture(origin_);
  ASSERT_EQ(cuEventRecord(forked_, origin_), CUDA_SUCCESS);
  use(second_);
  ASSERT_EQ(driver.cuStreamWaitEvent(joined_, forked_, 0), CUDA_SUCCESS);
  weir_standin_clear_counters();
  const CUdeviceptr block = allocate(kBytes, joined_);
  EXPECT_EQ(weir_standin_calls("cuMemAllocAsync"), 1U);
  free(block, joined_);
  free(busy);
  for (int i = 0; i < 100; ++i) free(allocate(kBytes));
  EXPECT_TRUE(is_whole());
  EXPECT_EQ(cuGraphDestroy(end()), CUDA_SUCCESS);
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(CaptureOverContexts, ThatNobodySawBeginIsNotBrokenOnceItIsExpected) {
  const Driver& driver = Process::get()->driver();
  use(first_);
  CapturesUnderWay::expect_unknown();  // as if its context was not available
  ContextCaptures::expect_unknown();
  ASSERT_EQ(driver.cuStreamBeginCapture_v2(origin_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(join());
  weir_standin_clear_counters();
  const CUdeviceptr block = allocate(kBytes, joined_);
  EXPECT_EQ(weir_standin_calls("cuMemAllocAsync"), 1U);
  free(block, joined_);
  for (const CUcontext context : {first_, second_}) {
    use(context);
    for (int i = 0; i < 40; ++i) free(allocate(kBytes));
  }
  EXPECT_TRUE(is_whole());
  EXPECT_EQ(cuEventRecord(merged_, joined_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(origin_, merged_, 0), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(driver.cuStreamEndCapture(origin_, &graph), CUDA_SUCCESS);
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(CaptureOverContexts, OfAThreadsDefaultStreamEndsWithTheThread) {
  std::thread([&] {
    use(first_);
    EXPECT_EQ(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_SUCCESS);
    EXPECT_TRUE(arena().fences().capturing());
  }).join();
  EXPECT_FALSE(capturing(first_));
  EXPECT_FALSE(CapturesUnderWay::any());
}

/// No fence on the streams of both contexts is possible while one of them is captured.
TEST_F(CaptureOverContexts, AFreeThatWaitsForBothContextsIsDoneAtItsEnd) {
  ASSERT_EQ(cuCtxEnablePeerAccess(first_, 0), CUDA_SUCCESS);
  const CUdeviceptr here = allocate(kBytes);
  const CUdeviceptr elsewhere = allocate(kBytes);
  use(first_);
  begin_capture(origin_);
  free(elsewhere);
  use(second_);
  free(here);
  EXPECT_EQ(cuMemFree(here), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemGetAddressRange(nullptr, nullptr, here), CUDA_ERROR_NOT_FOUND);
  EXPECT_FALSE(is_handed_out(here, kBytes));
  EXPECT_FALSE(is_handed_out(elsewhere, kBytes));
  EXPECT_TRUE(is_whole());
  use(first_);
  end_capture(origin_);
  use(second_);
  EXPECT_EQ(statistics().allocated.current, Bytes{});
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(CaptureOverContexts, AFreeThatWaitsForItsEndGoesWithItsContext) {
  ASSERT_EQ(cuCtxEnablePeerAccess(first_, 0), CUDA_SUCCESS);
  const CUdeviceptr block = allocate(kBytes);
  use(first_);
  begin_capture(origin_);
  use(second_);
  free(block);
  ASSERT_EQ(cuDevicePrimaryCtxReset(1), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  std::vector<CUdeviceptr> blocks;  // one of them may have the address
  for (int i = 0; i < 8; ++i) blocks.push_back(allocate(kBytes));
  use(first_);
  end_capture(origin_);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  EXPECT_EQ(statistics().allocated.current, Bytes{8 * kBytes});
  for (const CUdeviceptr each : blocks) free(each);
}

/// With many captures in turn: the objects for their host functions end with the graphs.
TEST_F(CaptureOverContexts, HostFunctionsAreLeftToTheirGraphs) {
  ASSERT_NO_FATAL_FAILURE(begin());
  weir_standin_clear_counters();
  std::atomic<int> runs{0};
  const CUhostFn run = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cuLaunchHostFunc(joined_, run, &runs), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuGraphRetainUserObject"), 3U);
  const CUstream free_stream = make_stream();
  ASSERT_EQ(cuLaunchHostFunc(free_stream, run, &runs), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuGraphRetainUserObject"), 3U);
  const CUgraphExec launchable = instantiate(end());
  use(second_);
  ASSERT_EQ(cuStreamSynchronize(free_stream), CUDA_SUCCESS);
  EXPECT_EQ(runs, 1);
  weir_standin_hold(origin_);
  ASSERT_EQ(cuGraphLaunch(launchable, origin_), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphExecDestroy(launchable), CUDA_SUCCESS);
  weir_standin_release(origin_);
  wait_until([&] { return runs == 4; });
}

/// A driver that does not report the end of a graph.
TEST_F(CaptureOverContexts, HostFunctionsStayWhereTheGraphCannotHaveThem) {
  ASSERT_NO_FATAL_FAILURE(begin());
  weir_standin_fail("cuGraphRetainUserObject", 1, CUDA_ERROR_NOT_SUPPORTED, kWeirStandinOnce);
  int runs = 0;
  ASSERT_EQ(cuLaunchHostFunc(
                joined_, [](void* data) { ++*static_cast<int*>(data); }, &runs),
            CUDA_SUCCESS);
  const CUgraphExec launchable = instantiate(end());
  ASSERT_NO_FATAL_FAILURE(launch(launchable));
  ASSERT_NO_FATAL_FAILURE(launch(launchable));
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace weir::preload::testing
