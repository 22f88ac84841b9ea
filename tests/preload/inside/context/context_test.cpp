// Contexts that end, several contexts of one device, several devices.

#include <gmock/gmock.h>

#include <thread>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/log_capture.hpp"

namespace weir::preload::testing {
namespace {

/// So large that the stand-in does not reuse the address at once.
constexpr std::size_t kLarge = 32 * kMib;

class ContextsInside : public Inside {
 protected:
  static Bytes used(int device) { return Process::get()->devices().get(device)->account().used(); }
  static void release(int device = 0) {
    EXPECT_EQ(cuDevicePrimaryCtxRelease(device), CUDA_SUCCESS);
  }
};

TEST_F(ContextsInside, AResetForgetsTheBlocks) {
  expect_refused("cuMemFree", CUDA_ERROR_INVALID_VALUE);
  expect_refused("cuMemFreeAsync", CUDA_ERROR_INVALID_VALUE);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUdeviceptr lost = allocate(kLarge);
  const CUdeviceptr cached = allocate(kMib);
  free(cached);
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  EXPECT_EQ(used(0), Bytes{});
  ASSERT_NO_FATAL_FAILURE(use_device(0));
  const CUdeviceptr fresh = allocate(kLarge);
  ASSERT_NE(fresh, lost);
  EXPECT_EQ(cuMemFree(lost), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeAsync(lost, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8(fresh, 1, kLarge), CUDA_SUCCESS);
  EXPECT_EQ(statistics().allocated.current, Bytes{kLarge});
  EXPECT_EQ(used(0), Bytes{kLarge});
  free(fresh);
}

TEST_F(ContextsInside, ThePoolOfOneThatIsGoneGivesNothingBackToTheDriver) {
  const weir::testing::LogCapture log;
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  free(allocate(kMib));
  settle();
  Pools& pool = arena().pool();
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  weir_standin_clear_counters();
  EXPECT_EQ(pool.trim(), mib(1));
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 0U);
  EXPECT_THAT(log.containing("cannot be released"), ::testing::IsEmpty());
  EXPECT_EQ(used(0), Bytes{});
}

TEST_F(ContextsInside, TheLastReleaseIsAReset) {
  expect_refused("cuMemFree", CUDA_ERROR_INVALID_VALUE);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  ASSERT_NO_FATAL_FAILURE(use_device(0));  // a second time
  const CUdeviceptr block = allocate(kLarge);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  EXPECT_EQ(used(0), Bytes{kLarge});
  EXPECT_EQ(cuMemsetD8(block, 1, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  EXPECT_EQ(used(0), Bytes{});
  ASSERT_NO_FATAL_FAILURE(use_device(0));
  EXPECT_EQ(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ContextsInside, TheLastOfTwoReleasesAtOnceIsAReset) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  release();
  for (int nth = 1; nth <= 3; ++nth) {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    (void)allocate(kLarge);
    Meanwhile other("cuDevicePrimaryCtxRelease", nth, [] { release(); });
    release();
    other.end();
    EXPECT_EQ(weir_standin_used(0), 0U) << nth;
    EXPECT_EQ(used(0), Bytes{}) << nth;
  }
}

TEST_F(ContextsInside, ARetainDuringTheLastReleaseHasAContextThatIsKnown) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  release();
  for (int nth = 1; nth <= 2; ++nth) {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    (void)allocate(kLarge);
    Meanwhile other("cuDevicePrimaryCtxGetState", nth, [] { use_device(0); });
    release();
    other.end();
    // The existing one, if it came first.
    EXPECT_EQ(used(0), Bytes{weir_standin_used(0)}) << nth;
    release();
    EXPECT_EQ(used(0), Bytes{}) << nth;
  }
}

TEST_F(ContextsInside, TheLastReleaseIsAResetWhileAnotherThreadLooksAtTheDevice) {
  weir::testing::expect_any_refused();  // who looks may come too late
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  (void)allocate(kLarge);
  Meanwhile other("cuDevicePrimaryCtxRelease", 1, [] { release(); });
  MemoryInfo info;
  (void)memory_info(0, info);
  other.end();
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(used(0), Bytes{});
}

TEST_F(ContextsInside, ADeviceWaitsForNoReleaseOfAnother) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_DEVICES", "2"}}));
  keep_busy(make_stream(), allocate(kMib));
  weir_standin_clear_counters();
  std::thread other([] { release(0); });
  // One is ours, on a reference for the time of a query; the last waits for the work.
  wait_until([] { return weir_standin_calls("cuDevicePrimaryCtxRelease") == 2; });
  use_device(1);
  free(allocate(kMib));
  release(1);
  EXPECT_EQ(used(0), mib(1)) << "the other still waits";
  release_all();
  other.join();
  EXPECT_EQ(used(0), Bytes{});
}

TEST_F(ContextsInside, ASignalHandlerMayRetainOneThatIsReleased) {
  ASSERT_NO_FATAL_FAILURE(start());
  (void)allocate(kMib);
  weir_standin_set_interrupt(
      "cuDevicePrimaryCtxRelease",
      [](void* /*data*/) {
        CUcontext context = nullptr;
        EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
        release();
      },
      nullptr);
  release();
  weir_standin_set_interrupt(nullptr, nullptr, nullptr);
  EXPECT_EQ(weir_standin_interrupted(), 2U);
  EXPECT_EQ(used(0), Bytes{});
}

TEST_F(ContextsInside, AResetWhileAStreamIsCapturedLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  begin_capture(stream);
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(use_device(0));
  EXPECT_FALSE(arena().fences().capturing());
  free(allocate(kMib));
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(ContextsInside, AContextOfItsOwnEndsWithItsBlocksAlone) {
  expect_refused("cuMemFree", CUDA_ERROR_INVALID_VALUE);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "128MiB"}}));
  const CUdeviceptr kept = allocate(kLarge);
  const CUcontext mine = make_context();
  const CUdeviceptr lost = allocate(kLarge);
  EXPECT_EQ(used(0), Bytes{2 * kLarge});
  ASSERT_EQ(cuCtxDestroy(mine), CUDA_SUCCESS);
  EXPECT_EQ(used(0), Bytes{kLarge});
  EXPECT_EQ(cuMemFree(lost), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8(kept, 1, kLarge), CUDA_SUCCESS);
  free(kept);
}

TEST_F(ContextsInside, ContextsOfOneDeviceShareItsBudget) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "20ms"}}));
  (void)allocate(48 * kMib);
  (void)make_context();
  EXPECT_EQ(try_allocate(32 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(free_bytes(), 16 * kMib);
  free(allocate(16 * kMib));
}

TEST_F(ContextsInside, WhatCannotFitIsRefusedAtOnceWhileOneEnds) {
  // With a wait longer than the test.
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  (void)allocate(8 * kMib);
  const CUcontext first = current();
  const CUcontext ending = make_context();
  keep_busy(make_stream(), allocate(kMib));
  use(first);
  std::thread other([ending] { EXPECT_EQ(cuCtxDestroy(ending), CUDA_SUCCESS); });
  wait_until([] { return weir_standin_calls("cuCtxDestroy") != 0; });
  EXPECT_EQ(try_allocate(60 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(try_allocate(60 * kMib, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(make_pages(60 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  release_all();
  other.join();
}

TEST_F(ContextsInside, WhatAnotherThreadGivesBackNowMakesRoom) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  free(allocate(60 * kMib));
  settle();
  const CUcontext here = current();
  Meanwhile other("cuMemFree", 1, [here] {
    EXPECT_EQ(cuCtxSetCurrent(here), CUDA_SUCCESS);
    EXPECT_EQ(make_pages(60 * kMib), CUDA_SUCCESS);
  });
  EXPECT_EQ(trim(0), mib(60));
  other.end();
}

TEST_F(ContextsInside, EachDeviceHasABudget) {
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_DEVICES", "2"}, {"WEIR_MAX_WAIT", "20ms"}}));
  (void)allocate(64 * kMib);
  EXPECT_EQ(try_allocate(kMib), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  const CUdeviceptr other = allocate(64 * kMib);
  EXPECT_EQ(used(0), mib(64));
  EXPECT_EQ(used(1), mib(64));
  EXPECT_EQ(weir_standin_used(1), 64 * kMib);
  free(other);
}

TEST_F(ContextsInside, MemoryIsFreedWhileAnotherDevicesContextIsCurrent) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_DEVICES", "2"}}));
  const CUcontext first = current();
  const CUstream stream = make_stream();
  const CUdeviceptr busy = allocate(kMib);
  const CUdeviceptr idle = allocate(2 * kMib, stream);
  keep_busy(stream, busy);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  const CUstream there = make_stream();
  free(busy);
  free(idle, there);
  EXPECT_EQ(statistics().reserved.current, Bytes{});
  use(first);
  EXPECT_EQ(statistics().allocated.current, Bytes{});
  EXPECT_FALSE(is_handed_out(busy, kMib));
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(ContextsInside, AFreeOnAnotherDevicesStreamAwaitsThatStream) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_DEVICES", "2"}}));
  const CUcontext first = current();
  const CUstream home = make_stream();
  const CUdeviceptr block = allocate(kMib, home);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  const CUcontext second = current();
  const CUstream there = make_stream();
  keep_busy(there, block);  // as with access between the two
  free(block, there);
  use(first);
  EXPECT_FALSE(is_handed_out(block, kMib, home));
  EXPECT_FALSE(is_handed_out(block, kMib));
  weir_standin_release(there);
  use(second);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  use(first);
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
  EXPECT_TRUE(is_handed_out(block, kMib, home, 5));
}

// As PyTorch's pluggable allocator does for the first tensor: its runtime has not created a context
// yet, and cudaMalloc, which it would call without Weir, would create one.
TEST_F(ContextsInside, MemoryForAFrameworkMakesTheDevicesContextWhereThereIsNone) {
  expect_refused("cuDevicePrimaryCtxGetState", CUDA_ERROR_INVALID_DEVICE);
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_STANDIN_DEVICES", "2"}, {"WEIR_STANDIN_CONTEXT_MEMORY", "8M"}}));
  const CUcontext first = current();
  unsigned int flags = 0;
  int active = 1;
  ASSERT_EQ(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
  ASSERT_EQ(active, 0);
  void* const memory = allocate_on(1, kMib, nullptr);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(current(), first);
  void* const more = allocate_on(1, kMib, nullptr);
  EXPECT_NE(more, nullptr);
  free_on(1, more, nullptr);
  free_on(1, memory, nullptr);
  // One reference, until the end: the program's own come and go.
  CUcontext second = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 1);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 0);
  EXPECT_EQ(allocate_on(7, kMib, nullptr), nullptr) << "there is no such device";
}

TEST_F(ContextsInside, WithoutAContextTheDriverAnswers) {
  expect_refused("cuMemAlloc", CUDA_ERROR_INVALID_CONTEXT);
  expect_refused("cuMemAllocAsync", CUDA_ERROR_INVALID_CONTEXT);
  expect_refused("cuStreamGetCtx", CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc(&pointer, kMib), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuMemAllocAsync(&pointer, kMib, nullptr), CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace weir::preload::testing
