// A block freed by cuMemFree is not reused while any stream works.

#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/host_bytes.hpp"
#include "tests/support/sanitized.hpp"

namespace weir::preload::testing {
namespace {

class FreedBySync : public Inside {
 protected:
  /// `use(block)` enqueues work that uses the block, while every stream is held.
  static void expect_kept_from_everybody(const std::function<void(CUdeviceptr)>& use) {
    const CUstream other = make_stream();
    const CUdeviceptr block = allocate(kBytes);
    weir_standin_hold(weir_standin_all_streams());
    use(block);
    free(block);
    EXPECT_FALSE(is_handed_out(block, kBytes));
    EXPECT_FALSE(is_handed_out(block, kBytes, other));
    EXPECT_FALSE(is_handed_out(block, kBytes, CU_STREAM_LEGACY));
    settle();
    EXPECT_EQ(statistics().awaiting.current, Bytes{});
    weir_standin_clear_counters();
    // Those requested above exist, too, and one of them may be taken first.
    bool found = false;
    for (int i = 0; i < 13 && !found; ++i) found = allocate(kBytes) == block;
    EXPECT_TRUE(found);
    EXPECT_EQ(weir_standin_calls("cuMemAlloc"), 0U);
  }
  static void use_on(CUstream stream, CUdeviceptr block) {
    EXPECT_EQ(cuMemsetD32Async(block, 7, kBytes / 4, stream), CUDA_SUCCESS);
  }
};

/// A driver reuses the handle of a destroyed stream, which the stand-in does not.
TEST_F(FreedBySync, AHandleThatIsUsedAgainIsAnotherStreamForEveryThread) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  Fences& fences = arena().fences();
  weir::testing::Gate gate;
  StreamId before{};
  StreamId after{};
  std::thread elsewhere([&] {
    before = fences.find(stream, false);
    EXPECT_EQ(fences.find(stream, false), before);
    gate.pass();
    after = fences.find(stream, false);
  });
  gate.await_arrival();
  EXPECT_EQ(fences.find(stream, false), before);
  fences.created(stream, false);
  const StreamId here = fences.find(stream, false);
  gate.open();
  elsewhere.join();
  EXPECT_NE(before, here);
  EXPECT_EQ(after, here);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  EXPECT_EQ(fences.find_known(stream, false), std::nullopt);
  EXPECT_NE(fences.find(stream, false), here);
}

TEST_F(FreedBySync, TheSameHandleIsAnotherStreamInAnotherContext) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_DEVICES", "2"}}));
  Fences& fences = arena().fences();
  const StreamId here = fences.find(nullptr, false);
  EXPECT_NE(fences.find(nullptr, true), here);
  EXPECT_EQ(fences.find(nullptr, false), here);
  EXPECT_NE(fences.find(CU_STREAM_PER_THREAD, false), here);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  EXPECT_NE(arena().fences().find(nullptr, false), here);
  EXPECT_EQ(fences.find(nullptr, false), here);
}

TEST_F(FreedBySync, AwaitsANonBlockingStream) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  expect_kept_from_everybody([&](CUdeviceptr block) { use_on(stream, block); });
}

TEST_F(FreedBySync, AwaitsABlockingStream) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream(CU_STREAM_DEFAULT);
  expect_kept_from_everybody([&](CUdeviceptr block) { use_on(stream, block); });
}

TEST_F(FreedBySync, AwaitsAStreamWithAPriority) {
  ASSERT_NO_FATAL_FAILURE(start());
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1), CUDA_SUCCESS);
  expect_kept_from_everybody([&](CUdeviceptr block) { use_on(stream, block); });
}

TEST_F(FreedBySync, AwaitsTheLegacyStream) {
  ASSERT_NO_FATAL_FAILURE(start());
  expect_kept_from_everybody([&](CUdeviceptr block) { use_on(nullptr, block); });
}

TEST_F(FreedBySync, AwaitsAStreamThatWasMadeAfterTheBlock) {
  ASSERT_NO_FATAL_FAILURE(start());
  expect_kept_from_everybody([&](CUdeviceptr block) { use_on(make_stream(), block); });
}

TEST_F(FreedBySync, AwaitsAStreamThatIsDestroyedMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  expect_kept_from_everybody([&](CUdeviceptr block) {
    use_on(stream, block);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  });
}

TEST_F(FreedBySync, AwaitsTheDefaultStreamOfThisThread) {
  ASSERT_NO_FATAL_FAILURE(start());
  expect_kept_from_everybody([&](CUdeviceptr block) {
    EXPECT_EQ(cuMemsetD32Async_ptsz(block, 7, kBytes / 4, nullptr), CUDA_SUCCESS);
  });
}

TEST_F(FreedBySync, AwaitsTheDefaultStreamOfAnotherThread) {
  ASSERT_NO_FATAL_FAILURE(start());
  expect_kept_from_everybody([&](CUdeviceptr block) {
    std::thread([&] {
      ASSERT_NO_FATAL_FAILURE(use_device(0));
      use_on(CU_STREAM_PER_THREAD, block);
    }).join();
  });
}

TEST_F(FreedBySync, AwaitsAGraph) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  expect_kept_from_everybody([&](CUdeviceptr block) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    use_on(stream, block);
    ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  });
}

class StreamsThatAreGone : public Inside {
 protected:
  /// The peak of known streams, of so many that each had a block and ended.
  static std::size_t come_and_go(int streams) {
    std::size_t most = 0;
    for (int i = 0; i < streams; ++i) {
      const CUstream stream = make_stream();
      free(allocate(kBytes, stream), stream);
      EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
      most = std::max(most, arena().fences().streams());
    }
    return most;
  }
};

TEST_F(StreamsThatAreGone, AreForgottenOnceTheDeviceHasPassedTheirWork) {
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_LE(come_and_go(1000), 2 * Fences::kFewStreams);
}

TEST_F(StreamsThatAreGone, AreKnownUntilTheDeviceHasPassedTheirWork) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "naive"}}));
  const CUstream late = make_stream();
  const CUdeviceptr block = allocate(2 * kBytes, late);
  // Behind a held stream, since a destroyed one could not be released.
  const CUstream gate = make_stream();
  keep_busy(gate, block);
  CUevent behind = nullptr;
  ASSERT_EQ(cuEventCreate(&behind, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(behind, gate), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(late, behind, 0), CUDA_SUCCESS);
  free(block, late);
  EXPECT_EQ(cuStreamDestroy(late), CUDA_SUCCESS);
  come_and_go(1000);
  EXPECT_FALSE(is_handed_out(block, 2 * kBytes));
  settle();
  EXPECT_TRUE(is_handed_out(block, 2 * kBytes, nullptr, 16));
}

class ThreadsThatAreGone : public Inside {
 protected:
  /// Each thread has a block on its own default stream, and ends; `at_a_time` of them together.
  /// Returns the peak of known streams.
  static std::size_t come_and_go(std::size_t threads, std::size_t at_a_time) {
    std::size_t most = 0;
    for (std::size_t done = 0; done < threads; done += at_a_time) {
      std::vector<std::thread> together(at_a_time);
      for (std::thread& each : together) each = std::thread(use_own_stream);
      for (std::thread& each : together) each.join();
      most = std::max(most, arena().fences().streams());
    }
    return most;
  }
  /// The same, and now and then the device finishes all work.
  static std::size_t come_and_go_awaited(std::size_t threads, std::size_t at_a_time) {
    constexpr std::size_t kAwaited = 40;
    std::size_t most = 0;
    for (std::size_t done = 0; done < threads; done += kAwaited) {
      most = std::max(most, come_and_go(kAwaited, at_a_time));
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    return most;
  }
  static void use_own_stream() {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    free(allocate(kBytes, CU_STREAM_PER_THREAD), CU_STREAM_PER_THREAD);
  }
  /// Without the stand-in's device memory, which is also in the heap, except its pages.
  [[nodiscard]] static std::size_t host_bytes() {
    const Pool& of_segments = *arena().pool().parts().front().pool;
    return weir::testing::host_bytes() - of_segments.statistics().reserved.current.count;
  }
};

TEST_F(ThreadsThatAreGone, AreForgottenOnceTheDeviceHasPassedTheirWork) {
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_LE(come_and_go_awaited(1000, 1), 4 * Fences::kFewStreams);
  EXPECT_LE(come_and_go_awaited(1000, 20), 4 * Fences::kFewStreams) << "twenty at a time";
}

TEST_F(ThreadsThatAreGone, KeepNoHostMemory) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitizer keeps what is freed";
  ASSERT_NO_FATAL_FAILURE(start());
  mallopt(M_ARENA_MAX, 1);  // what threads take is counted, too
  // The minimum of several times: tables that grow are twice as large for a moment.
  const auto least_kept = [] {
    std::size_t least = SIZE_MAX;
    for (int round = 0; round < 4; ++round) {
      come_and_go_awaited(5'000, 1);
      settle();
      least = std::min(least, host_bytes());
    }
    return least;
  };
  const std::size_t before = least_kept();
  EXPECT_LE(least_kept(), before + 262'144) << "13 bytes for each thread";
}

// Nobody asks whether the device has passed their frees.
TEST_F(ThreadsThatAreGone, AreForgottenThoughNobodyAllocatesAnyMore) {
  ASSERT_NO_FATAL_FAILURE(start());
  std::vector<CUdeviceptr> blocks(1000);
  for (CUdeviceptr& block : blocks) block = allocate(kBytes);
  std::size_t most = 0;
  for (const CUdeviceptr block : blocks) {
    std::thread([&] {
      ASSERT_NO_FATAL_FAILURE(use_device(0));
      free(block, CU_STREAM_PER_THREAD);
    }).join();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    most = std::max(most, arena().fences().streams());
  }
  EXPECT_LE(most, 4 * Fences::kFewStreams);
}

TEST_F(ThreadsThatAreGone, AreKnownUntilTheDeviceHasPassedTheirWork) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream gate = make_stream();
  CUdeviceptr block = 0;
  std::thread([&] {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    block = allocate(2 * kBytes, CU_STREAM_PER_THREAD);
    keep_busy(gate, block);
    CUevent behind = nullptr;
    ASSERT_EQ(cuEventCreate(&behind, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(behind, gate), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(CU_STREAM_PER_THREAD, behind, 0), CUDA_SUCCESS);
    free(block, CU_STREAM_PER_THREAD);
  }).join();
  come_and_go(1000, 1);
  EXPECT_FALSE(is_handed_out(block, 2 * kBytes));
  settle();
  EXPECT_TRUE(is_handed_out(block, 2 * kBytes, nullptr, 16));
}

// Destructors of a thread's variables may free memory, and run after the thread's reported end.
TEST_F(ThreadsThatAreGone, MayFreeInTheOrderOfTheirStreamUntilTheVeryEnd) {
  ASSERT_NO_FATAL_FAILURE(start());
  static CUdeviceptr block = 0;
  static int calls = 0;
#if defined(__SANITIZE_THREAD__)
  // In the last round the thread sanitizer no longer knows the thread.
  static constexpr int kRounds = PTHREAD_DESTRUCTOR_ITERATIONS - 1;
#else
  static constexpr int kRounds = PTHREAD_DESTRUCTOR_ITERATIONS;
#endif
  pthread_key_t late = 0;
  const auto at_end = [](void* key) {
    // Repeatedly, to be behind any other destructor.
    if (++calls < kRounds) {
      pthread_setspecific(*static_cast<pthread_key_t*>(key), key);
    } else {
      use_device(0);
      keep_busy(CU_STREAM_PER_THREAD, block);
      free(block, CU_STREAM_PER_THREAD);
    }
  };
  ASSERT_EQ(pthread_key_create(&late, at_end), 0);
  std::thread([&] {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    block = allocate(2 * kBytes, CU_STREAM_PER_THREAD);
    pthread_setspecific(late, &late);
  }).join();
  EXPECT_EQ(calls, kRounds);
  EXPECT_FALSE(is_handed_out(block, 2 * kBytes));
  pthread_key_delete(late);
}

class FreedInStreamOrder : public Inside {
 protected:
  /// Iterations of frees and then launches on a busy stream, so that its fences take events. Nobody
  /// queries it.
  static void iterate(int iterations, std::uint32_t frees, std::uint32_t launches) {
    const CUstream stream = make_stream();
    const CUdeviceptr scratch = allocate(kBytes, stream);
    weir_standin_clear_counters();
    for (int i = 0; i < iterations; ++i) {
      weir_standin_hold(stream);
      EXPECT_EQ(cuMemsetD32Async(scratch, 7, kBytes / 4, stream), CUDA_SUCCESS);
      for (std::uint32_t k = 0; k < frees; ++k) free(allocate(kBytes, stream), stream);
      for (std::uint32_t k = 0; k < launches; ++k) {
        EXPECT_EQ(cuMemsetD32Async(scratch, 7, kBytes / 4, stream), CUDA_SUCCESS);
      }
      weir_standin_release(stream);
      EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    }
  }
};

TEST_F(FreedInStreamOrder, UsesFencesAgainThoughNobodyAsksForThem) {
  ASSERT_NO_FATAL_FAILURE(start());
  iterate(300, Fences::kPointsOfAFence, 0);
  EXPECT_GE(weir_standin_calls("cuEventRecord"), 300U);
  EXPECT_LE(weir_standin_calls("cuEventCreate"), 3U);
}

TEST_F(FreedInStreamOrder, UsesTheFencesOfLaunchesAgainToo) {
  ASSERT_NO_FATAL_FAILURE(start());
  iterate(300, 3, 40);
  EXPECT_GE(weir_standin_calls("cuEventRecord"), 300U);
  EXPECT_LE(weir_standin_calls("cuEventCreate"), 3U);
}

}  // namespace
}  // namespace weir::preload::testing
