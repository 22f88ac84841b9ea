// cuMemAllocAsync and cuMemFreeAsync: who may reuse a block, and when.

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

class Async : public Inside {
 protected:
  static void use(CUdeviceptr block, CUstream stream) {
    EXPECT_EQ(cuMemsetD32Async(block, 7, kBytes / 4, stream), CUDA_SUCCESS);
  }
  /// All memory that was freed and passed can be allocated again without the driver.
  static void expect_cached_after_settling(std::uint64_t bytes) {
    settle();
    EXPECT_EQ(statistics().awaiting.current, Bytes{});
    EXPECT_GE(statistics().cached.current, Bytes{bytes});
  }
};

TEST_F(Async, AStreamReusesItsOwnBlockWithoutACallOfTheDriver) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBytes, stream);
  keep_busy(stream, block);
  weir_standin_clear_counters();
  for (int i = 0; i < 20; ++i) {
    free(block, stream);
    EXPECT_EQ(allocate(kBytes, stream), block);
  }
  EXPECT_EQ(calls(), 0U);
}

TEST_F(Async, AnotherStreamGetsNoBlockWhoseOwnStreamStillWorks) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  const CUstream other = make_stream();
  const CUdeviceptr block = allocate(kBytes, stream);
  keep_busy(stream, block);
  free(block, stream);
  EXPECT_FALSE(is_handed_out(block, kBytes, other));
  EXPECT_FALSE(is_handed_out(block, kBytes));
  expect_cached_after_settling(kBytes);
}

TEST_F(Async, AFreeOnAnotherStreamAwaitsThatStream) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream home = make_stream();
  const CUstream other = make_stream();
  const CUdeviceptr block = allocate(kBytes, home);
  keep_busy(other, block);
  free(block, other);
  EXPECT_FALSE(is_handed_out(block, kBytes, home));
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  expect_cached_after_settling(kBytes);
  EXPECT_TRUE(is_handed_out(block, kBytes, home, 5));
}

TEST_F(Async, AFreeOnAnotherStreamAwaitsItsHomeForAThird) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream home = make_stream();
  const CUstream other = make_stream();
  const CUdeviceptr block = allocate(kBytes, home);
  keep_busy(home, block);
  free(block, other);
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  EXPECT_FALSE(is_handed_out(block, kBytes));
  expect_cached_after_settling(kBytes);
}

/// The default stream and blocking streams wait for each other, so a free on one of them follows
/// the other's work, even without work of its own.
TEST_F(Async, AFreeOnABlockingStreamAwaitsTheDefaultStream) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream(CU_STREAM_DEFAULT);
  const CUdeviceptr block = allocate(kBytes, stream);
  keep_busy(CU_STREAM_LEGACY, block);
  free(block, stream);
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  expect_cached_after_settling(kBytes);
}

TEST_F(Async, AFreeOnTheDefaultStreamAwaitsTheBlockingOnes) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream(CU_STREAM_DEFAULT);
  const CUdeviceptr block = allocate(kBytes, CU_STREAM_LEGACY);
  keep_busy(stream, block);
  free(block, CU_STREAM_LEGACY);
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  expect_cached_after_settling(kBytes);
}

TEST_F(Async, PyTorchsEventsAndWaitsGiveNoEarlyReuse) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream home = make_stream();
  const CUstream side = make_stream();
  const CUstream freeing = make_stream();
  const CUdeviceptr block = allocate(kBytes, home);
  use(block, home);
  // The program orders the streams this way; a fence of ours does not.
  ASSERT_EQ(cuStreamSynchronize(home), CUDA_SUCCESS);
  // As a framework frees memory that a side stream used: behind an event of that stream, on a third
  // stream.
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  keep_busy(side, block);
  ASSERT_EQ(cuEventRecord(event, side), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(freeing, event, 0), CUDA_SUCCESS);
  free(block, freeing);
  ASSERT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
  EXPECT_FALSE(is_handed_out(block, kBytes, home));
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  EXPECT_FALSE(is_handed_out(block, kBytes));
  expect_cached_after_settling(kBytes);
}

TEST_F(Async, MemoryOfCuMemAllocIsFreedInStreamOrder) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBytes);
  keep_busy(stream, block);
  free(block, stream);
  EXPECT_FALSE(is_handed_out(block, kBytes));
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  expect_cached_after_settling(kBytes);
}

TEST_F(Async, MemoryInStreamOrderIsFreedByCuMemFree) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBytes, stream);
  keep_busy(stream, block);
  free(block);
  EXPECT_FALSE(is_handed_out(block, kBytes));
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  expect_cached_after_settling(kBytes);
}

TEST_F(Async, AStreamThatIsDestroyedLeavesItsBlocksBehindItsWork) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBytes, stream);
  const CUdeviceptr held = allocate(2 * kBytes, stream);
  weir_standin_hold(weir_standin_all_streams());
  use(block, stream);
  free(block, stream);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  const CUstream next = make_stream();
  EXPECT_FALSE(is_handed_out(block, kBytes, next));
  EXPECT_FALSE(is_handed_out(block, kBytes));
  free(held, next);
  EXPECT_FALSE(is_handed_out(held, 2 * kBytes, make_stream()));
  settle();
  // Four blocks of the same size were the new stream's, and then cuMemAlloc's, since the stream is
  // idle. Anybody may use the memory of the ended stream.
  weir_standin_clear_counters();
  for (int i = 0; i < 5; ++i) (void)allocate(kBytes, next);
  EXPECT_EQ(weir_standin_calls("cuMemAlloc"), 0U);
}

TEST_F(Async, EachThreadsDefaultStreamIsAStreamOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "naive"}}));
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocAsync_ptsz(&block, kBytes, nullptr), CUDA_SUCCESS);
  keep_busy(CU_STREAM_PER_THREAD, block);
  ASSERT_EQ(cuMemFreeAsync_ptsz(block, nullptr), CUDA_SUCCESS);
  std::thread([&] {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    EXPECT_FALSE(is_handed_out(block, kBytes, CU_STREAM_PER_THREAD));
  }).join();
  EXPECT_FALSE(is_handed_out(block, kBytes, nullptr));
  CUdeviceptr again = 0;
  ASSERT_EQ(cuMemAllocAsync(&again, kBytes, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  EXPECT_EQ(again, block);
}

TEST_F(Async, APoolsPerThreadFormUsesTheThreadsDefaultStream) {
  ASSERT_NO_FATAL_FAILURE(start());
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync_ptsz(&block, kBytes, pool, nullptr), CUDA_SUCCESS);
  keep_busy(CU_STREAM_PER_THREAD, block);
  ASSERT_EQ(cuMemFreeAsync_ptsz(block, nullptr), CUDA_SUCCESS);
  CUdeviceptr again = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync_ptsz(&again, kBytes, pool, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(again, block);
}

TEST_F(Async, ABlockOfAThreadThatIsGoneAwaitsItsDefaultStream) {
  ASSERT_NO_FATAL_FAILURE(start());
  weir_standin_hold(weir_standin_all_streams());
  CUdeviceptr block = 0;
  std::thread([&] {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    block = allocate(kBytes, CU_STREAM_PER_THREAD);
    use(block, CU_STREAM_PER_THREAD);
    free(block, CU_STREAM_PER_THREAD);
  }).join();
  EXPECT_FALSE(is_handed_out(block, kBytes, make_stream()));
  // The next thread may get the last one's number from the system, but not its blocks.
  std::thread([&] {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    EXPECT_FALSE(is_handed_out(block, kBytes, CU_STREAM_PER_THREAD));
  }).join();
  expect_cached_after_settling(kBytes);
}

TEST_F(Async, ABlockGoesToAnotherStreamBehindAWaitOnTheDevice) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "1MiB"}}));
  const CUstream first = make_stream();
  const CUstream second = make_stream();
  const CUdeviceptr block = allocate(kMib, first);
  hold(first);
  ASSERT_EQ(cuMemsetD32Async(block, 1, kMib / 4, first), CUDA_SUCCESS);
  free(block, first);
  weir_standin_clear_counters();
  // The first stream never ends its work before this returns, so the host does not wait.
  ASSERT_EQ(allocate(kMib, second), block);
  EXPECT_EQ(weir_standin_calls("cuStreamWaitEvent"), 1U);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 0U);
  EXPECT_EQ(statistics().handovers, 1U);
  EXPECT_EQ(statistics().waits, 0U);
  ASSERT_EQ(cuMemsetD32Async(block, 2, kMib / 4, second), CUDA_SUCCESS);
  // Gives the second stream time to start its work too early.
  const CUstream third = make_stream();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(cuLaunchHostFunc(
                  third, [](void*) {}, nullptr),
              CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(third), CUDA_SUCCESS);
  }
  EXPECT_NE(weir_standin_pending(second), 0U);
  settle();
  EXPECT_EQ(*reinterpret_cast<const unsigned*>(block), 2U);
}

}  // namespace
}  // namespace weir::preload::testing
