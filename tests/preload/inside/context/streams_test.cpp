// A block freed by cuMemFree is not reused while any stream works.

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/sanitized.hpp"

namespace weir::preload::testing {
namespace {

class FreedBySync : public Inside {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start()); }
};
class FreedBySyncElsewhere : public FreedBySync {
  void SetUp() override {}
};

/// Work that uses the block, while every stream is held. The stream exists before the block.
struct Use {
  const char* name;
  CUstream (*make)();
  void (*use)(CUdeviceptr block, CUstream stream);
};
class FreedByUse : public FreedBySync, public ::testing::WithParamInterface<Use> {
 public:
  static std::vector<Use> uses() {
    const auto any = [] { return make_stream(); };
    const auto none = []() -> CUstream { return nullptr; };
    return {{"OfANonBlockingStream", any, use_on},
            {"OfABlockingStream", [] { return make_stream(CU_STREAM_DEFAULT); }, use_on},
            {"OfAStreamWithAPriority",
             [] {
               CUstream stream = nullptr;
               EXPECT_EQ(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1),
                         CUDA_SUCCESS);
               return stream;
             },
             use_on},
            {"OfTheLegacyStream", none, use_on},
            {"OfAStreamThatWasMadeAfterTheBlock", none,
             [](CUdeviceptr block, CUstream) { use_on(block, make_stream()); }},
            {"OfAStreamThatIsDestroyedMeanwhile", any,
             [](CUdeviceptr block, CUstream stream) {
               use_on(block, stream);
               EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
             }},
            {"OfTheDefaultStreamOfThisThread", none,
             [](CUdeviceptr block, CUstream) {
               EXPECT_EQ(cuMemsetD32Async_ptsz(block, 7, kBytes / 4, nullptr), CUDA_SUCCESS);
             }},
            {"OfTheDefaultStreamOfAnotherThread", none,
             [](CUdeviceptr block, CUstream) {
               on_another_thread([&] { use_on(block, CU_STREAM_PER_THREAD); });
             }},
            {"OfAGraph", any, [](CUdeviceptr block, CUstream stream) {
               CUgraph graph = nullptr;
               CUgraphExec exec = nullptr;
               begin_capture(stream);
               use_on(block, stream);
               ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
               ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
               ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
             }}};
  }

 private:
  static void use_on(CUdeviceptr block, CUstream stream) {
    EXPECT_EQ(cuMemsetD32Async(block, 7, kBytes / 4, stream), CUDA_SUCCESS);
  }
};

/// A driver reuses the handle of a destroyed stream, which the stand-in does not.
TEST_F(FreedBySync, AHandleThatIsUsedAgainIsAnotherStreamForEveryThread) {
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

TEST_F(FreedBySyncElsewhere, TheSameHandleIsAnotherStreamInAnotherContext) {
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

TEST_P(FreedByUse, AwaitsIt) {
  const CUstream stream = GetParam().make();
  const CUstream other = make_stream();
  const CUdeviceptr block = allocate(kBytes);
  weir_standin_hold(weir_standin_all_streams());
  GetParam().use(block, stream);
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

INSTANTIATE_TEST_SUITE_P(Uses, FreedByUse, ::testing::ValuesIn(FreedByUse::uses()),
                         [](const auto& each) { return std::string(each.param.name); });

/// So many that each had a block and ended.
class StreamsThatAreGone : public Inside {
 protected:
  static void come_and_go(int streams) {
    for (int i = 0; i < streams; ++i) {
      const CUstream stream = make_stream();
      free(allocate(kBytes, stream), stream);
      EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    }
  }
};

TEST_F(StreamsThatAreGone, AreKnownUntilTheDeviceHasPassedTheirWork) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "naive"}}));
  const CUstream late = make_stream();
  const CUdeviceptr block = allocate(2 * kBytes, late);
  // Behind a held stream, since a destroyed one could not be released.
  const CUstream gate = make_stream();
  keep_busy(gate, block);
  const CUevent behind = make_event();
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
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start()); }
};

// Nobody asks whether the device has passed their frees.
TEST_F(ThreadsThatAreGone, AreForgottenThoughNobodyAllocatesAnyMore) {
  std::vector<CUdeviceptr> blocks(1000);
  for (CUdeviceptr& block : blocks) block = allocate(kBytes);
  std::size_t most = 0;
  for (const CUdeviceptr block : blocks) {
    on_another_thread([&] { free(block, CU_STREAM_PER_THREAD); });
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    most = std::max(most, arena().fences().streams());
  }
  EXPECT_LE(most, 4 * FollowedStreams::kFewStreams);
}

TEST_F(ThreadsThatAreGone, AreKnownUntilTheDeviceHasPassedTheirWork) {
  const CUstream gate = make_stream();
  CUdeviceptr block = 0;
  on_another_thread([&] {
    block = allocate(2 * kBytes, CU_STREAM_PER_THREAD);
    keep_busy(gate, block);
    const CUevent behind = make_event();
    ASSERT_EQ(cuEventRecord(behind, gate), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(CU_STREAM_PER_THREAD, behind, 0), CUDA_SUCCESS);
    free(block, CU_STREAM_PER_THREAD);
  });
  for (int i = 0; i < 1000; ++i) {
    on_another_thread([] { free(allocate(kBytes, CU_STREAM_PER_THREAD), CU_STREAM_PER_THREAD); });
  }
  EXPECT_FALSE(is_handed_out(block, 2 * kBytes));
  settle();
  EXPECT_TRUE(is_handed_out(block, 2 * kBytes, nullptr, 16));
}

// Destructors of a thread's variables may free memory, and run after the thread's reported end.
TEST_F(ThreadsThatAreGone, MayFreeInTheOrderOfTheirStreamUntilTheVeryEnd) {
  static CUdeviceptr block = 0;
  static int calls = 0;
  // In the last round the thread sanitizer no longer knows the thread.
  static constexpr int kRounds = PTHREAD_DESTRUCTOR_ITERATIONS - WEIR_TEST_THREAD_SANITIZED;
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
  on_another_thread([&] {
    block = allocate(2 * kBytes, CU_STREAM_PER_THREAD);
    pthread_setspecific(late, &late);
  });
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
  for (const auto& [frees, launches] : {std::pair{+kPointsOfAFence, 0U}, std::pair{3U, 40U}}) {
    iterate(300, frees, launches);
    EXPECT_GE(weir_standin_calls("cuEventRecord"), 300U);
    EXPECT_LE(weir_standin_calls("cuEventCreate"), 3U);
  }
}

}  // namespace
}  // namespace weir::preload::testing
