// The legacy stream: an event on it makes all blocking streams wait for each other, and without one
// some work is behind no event. Tests when a fence uses one and when it must not.

#include <algorithm>
#include <atomic>
#include <vector>

#include "tests/preload/inside/inside.hpp"
#include "tools/preload/context/fence_due.hpp"

namespace weir::preload::testing {
namespace {

TEST(LegacyEvent, IsRecordedOnlyForWorkThatNothingElseIsBehind) {
  const auto needed = [](bool busy, bool event_on_blocking, bool streams_unknown, bool nameless) {
    return needs_legacy_event({.busy = busy,
                               .event_on_blocking = event_on_blocking,
                               .streams_unknown = streams_unknown,
                               .nameless = nameless});
  };
  for (const bool busy : {false, true}) {
    for (const bool event : {false, true}) {
      for (const bool unknown : {false, true}) {
        EXPECT_TRUE(needed(busy, event, unknown, true));
        EXPECT_EQ(needed(busy, event, unknown, false), busy && (unknown || !event));
      }
    }
  }
}

class LegacyStream : public Inside {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start()); }
  [[nodiscard]] static CUstream make_blocking() { return make_stream(CU_STREAM_DEFAULT); }
  /// Past the hooks.
  [[nodiscard]] static CUstream make_unseen() {
    CUstream stream = nullptr;
    EXPECT_EQ(driver()->cuStreamCreate(&stream, CU_STREAM_DEFAULT), CUDA_SUCCESS);
    return stream;
  }
  static void use(CUdeviceptr block, CUstream stream) {
    EXPECT_EQ(driver()->cuMemsetD8Async(block, 1, kBytes, stream), CUDA_SUCCESS);
  }
  /// Everything has ended: a request for enough blocks gets that one, too.
  [[nodiscard]] static bool comes_back(CUdeviceptr block) {
    settle();
    std::vector<CUdeviceptr> taken(16);
    for (CUdeviceptr& each : taken) each = allocate(kBytes);
    const bool found = std::ranges::count(taken, block) != 0;
    for (const CUdeviceptr each : taken) free(each);
    return found;
  }
  /// Frees a block that `busy` uses: work of another stream ends meanwhile, and nobody gets it.
  static void expect_no_wait(CUstream busy, void (*free_it)(CUdeviceptr block)) {
    const CUstream other = make_blocking();
    const CUdeviceptr block = allocate(kBytes);
    keep_busy(busy, block);
    free_it(block);
    weir_standin_clear_counters();
    arena().pool().poll();
    EXPECT_EQ(weir_standin_calls("cuEventRecord"), 1U);
    EXPECT_EQ(cuMemsetD8Async(allocate(kBytes), 3, kBytes, other), CUDA_SUCCESS);
    wait_until([&] { return cuStreamQuery(other) == CUDA_SUCCESS; });
    EXPECT_FALSE(is_handed_out(block, kBytes));
  }
  /// After a free: the work of `busy` ends, which the event for it may stand behind, and only the
  /// end of all gives the block back.
  static void expect_awaited_beside(CUstream busy, CUdeviceptr block) {
    arena().pool().poll();
    weir_standin_release(busy);
    EXPECT_EQ(cuStreamSynchronize(busy), CUDA_SUCCESS);
    EXPECT_FALSE(is_handed_out(block, kBytes));
    EXPECT_TRUE(comes_back(block));
  }
};

TEST_F(LegacyStream, AFreeMakesNoBlockingStreamWaitForAnother) {
  expect_no_wait(make_blocking(), [](CUdeviceptr block) { free(block); });
}

TEST_F(LegacyStream, AFreeInItsOrderMakesNoBlockingStreamWaitForAnother) {
  expect_no_wait(make_blocking(), [](CUdeviceptr block) { free(block, nullptr); });
}

TEST_F(LegacyStream, AFreeBesideTheThreadsOwnDefaultStreamMakesNoStreamWait) {
  expect_no_wait(CU_STREAM_PER_THREAD, [](CUdeviceptr block) { free(block); });
}

TEST_F(LegacyStream, IsAwaitedBesideABusyBlockingStream) {
  const CUstream busy = make_blocking();
  const CUdeviceptr block = allocate(kBytes);
  keep_busy(busy, allocate(kBytes));
  keep_busy(CU_STREAM_LEGACY, block);
  free(block);
  arena().pool().poll();
  weir_standin_release(busy);
  wait_until([&] { return weir_standin_pending(busy) <= 1; });  // but for the event
  EXPECT_FALSE(is_handed_out(block, kBytes));
  EXPECT_TRUE(comes_back(block));
}

TEST_F(LegacyStream, StandsForADestroyedStreamInItsOrder) {
  const CUstream busy = make_blocking();
  const CUstream gone = make_blocking();
  const CUdeviceptr block = allocate(kBytes);
  weir_standin_hold(weir_standin_all_streams());
  use(block, gone);
  use(allocate(kBytes), busy);
  ASSERT_EQ(cuStreamDestroy(gone), CUDA_SUCCESS);
  free(block, nullptr);
  EXPECT_FALSE(is_handed_out(block, kBytes));
  EXPECT_TRUE(comes_back(block));
}

TEST_F(LegacyStream, StandsForTheDefaultStreamOfAnotherThread) {
  const CUstream busy = make_blocking();
  const CUdeviceptr block = allocate(kBytes);
  keep_busy(busy, allocate(kBytes));
  std::atomic<bool> used{false};
  std::atomic<bool> checked{false};
  std::thread other([&] {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    weir_standin_hold(CU_STREAM_PER_THREAD);
    EXPECT_EQ(cuMemsetD8Async_ptsz(block, 1, kBytes, nullptr), CUDA_SUCCESS);
    used = true;
    while (!checked) std::this_thread::yield();
    weir_standin_release(CU_STREAM_PER_THREAD);
  });
  while (!used) std::this_thread::yield();
  free(block);
  arena().pool().poll();
  weir_standin_release(busy);
  EXPECT_EQ(cuStreamSynchronize(busy), CUDA_SUCCESS);
  EXPECT_FALSE(is_handed_out(block, kBytes));
  checked = true;
  other.join();
  EXPECT_TRUE(comes_back(block));
}

TEST_F(LegacyStream, StandsForABlockingStreamThatNobodySawWhereNoOtherIsBusy) {
  const CUstream unseen = make_unseen();
  const CUdeviceptr block = allocate(kBytes);
  hold(unseen);
  use(block, unseen);
  free(block);
  EXPECT_FALSE(is_handed_out(block, kBytes));
  EXPECT_TRUE(comes_back(block));
}

// Its first work names it, on any thread.
TEST_F(LegacyStream, StandsForAStreamThatNobodySawFromItsFirstWorkOn) {
  const CUstream busy = make_blocking();
  const CUstream unseen = make_unseen();
  const CUdeviceptr block = allocate(kBytes);
  keep_busy(busy, allocate(kBytes));
  keep_busy(unseen, block);
  free(block);
  expect_awaited_beside(busy, block);
}

// A named one shows that streams are created past the hooks: there may be more of them.
TEST_F(LegacyStream, StandsForStreamsThatNobodySawOnceOneOfThemIsNamed) {
  const CUstream busy = make_blocking();
  const CUstream named = make_unseen();
  const CUstream unseen = make_unseen();
  const CUdeviceptr block = allocate(kBytes);
  free(allocate(kBytes, named), named);
  keep_busy(busy, allocate(kBytes));
  hold(unseen);
  use(block, unseen);
  free(block);
  expect_awaited_beside(busy, block);
}

}  // namespace
}  // namespace weir::preload::testing
