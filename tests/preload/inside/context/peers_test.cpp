// Memory freed behind the work of several contexts, while those are captured, end, or are queried
// by several threads.

#include <atomic>
#include <thread>
#include <vector>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/log_capture.hpp"

namespace weir::preload::testing {
namespace {

constexpr std::size_t kLarge = 16 * kMib;

class FreeBehindPeers : public Inside {
 protected:
  static CUcontext make_context() {
    CUcontext context = nullptr;
    EXPECT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    return context;
  }
  static CUcontext current() {
    CUcontext context = nullptr;
    EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    return context;
  }
  static void use(CUcontext context) { ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS); }

  /// Sets up two devices that use each other's memory, the second being captured. The first one's
  /// context is current.
  void start_captured() {
    ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_DEVICES", "2"}}));
    first_ = current();
    ASSERT_NO_FATAL_FAILURE(use_device(1));
    second_ = current();
    ASSERT_EQ(cuCtxEnablePeerAccess(first_, 0), CUDA_SUCCESS);
    captured_ = make_stream();
    there_ = make_stream();
    free(allocate(kBytes));
    capture();
    use(first_);
    ASSERT_EQ(cuCtxEnablePeerAccess(second_, 0), CUDA_SUCCESS);
  }
  void capture() const {
    ASSERT_EQ(cuStreamBeginCapture(captured_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  }
  void end_capture() const {
    CUgraph graph = nullptr;
    use(second_);
    EXPECT_EQ(cuStreamEndCapture(captured_, &graph), CUDA_SUCCESS);
    use(first_);
  }

  CUcontext first_ = nullptr;
  CUcontext second_ = nullptr;
  CUstream captured_ = nullptr;
  CUstream there_ = nullptr;  ///< of the second device
};

/// Whether a fence covers the other context's work before that context ends.
class FreeBehindOneThatEnds : public FreeBehindPeers, public ::testing::WithParamInterface<bool> {};

TEST_P(FreeBehindOneThatEnds, IsComplete) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "32MiB"}, {"WEIR_MAX_WAIT", "50ms"}}));
  const CUcontext stays = current();
  const CUdeviceptr block = allocate(kBytes);
  const CUcontext ends = make_context();
  const CUstream stream = make_stream();
  keep_busy(stream, allocate(kBytes));
  free(block);
  use(stays);
  if (GetParam()) arena().pool().poll();
  release_all();
  ASSERT_EQ(cuCtxDestroy(ends), CUDA_SUCCESS);
  for (int i = 0; i < 8; ++i) free(allocate(kLarge));  // more than the budget in all
}

INSTANTIATE_TEST_SUITE_P(Fenced, FreeBehindOneThatEnds, ::testing::Bool());

// This ends: a fixed number of contexts.
TEST_F(FreeBehindPeers, SucceedsWhileOtherContextsComeAndGo) {
  ASSERT_NO_FATAL_FAILURE(start());
  const weir::testing::LogCapture log;
  const CUcontext stays = current();
  (void)make_context();  // memory of the first is freed from here
  std::atomic<bool> ended{false};
  std::thread other([&] {
    for (int i = 0; i < 300; ++i) {
      const CUcontext context = make_context();
      const CUdeviceptr block = allocate(kBytes);
      EXPECT_EQ(cuMemsetD8Async(block, 1, kBytes, make_stream()), CUDA_SUCCESS);
      EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
    }
    ended = true;
  });
  const CUcontext elsewhere = current();
  while (!ended) {
    use(stays);
    const CUdeviceptr block = allocate(kBytes);
    use(elsewhere);
    free(block);
  }
  other.join();
  use(stays);
  settle();
  EXPECT_EQ(statistics().allocated.current, Bytes{});
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
  EXPECT_TRUE(log.containing("a free failed").empty());
}

TEST_F(FreeBehindPeers, WhileOneIsCapturedWaitsForItsWorkAfterwards) {
  ASSERT_NO_FATAL_FAILURE(start_captured());
  const CUdeviceptr block = allocate(kBytes);
  use(second_);
  keep_busy(there_, block);
  use(first_);
  free(block);
  end_capture();
  EXPECT_FALSE(is_handed_out(block, kBytes)) << "the other device goes on to use it";
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
  EXPECT_EQ(weir_standin_late_uses(), 0U);
}

TEST_F(FreeBehindPeers, OfTwoThreadsWhileOneIsCapturedSucceedsOnce) {
  ASSERT_NO_FATAL_FAILURE(start_captured());
  struct Again {
    CUcontext context;
    CUdeviceptr block;
    std::thread thread{};
    CUresult code = CUDA_SUCCESS;
  } again{first_, allocate(kBytes)};
  // Between the check whether the other context is captured and its consequence.
  weir_standin_set_interrupt(
      "cuThreadExchangeStreamCaptureMode",
      [](void* data) {
        auto& its = *static_cast<Again*>(data);
        if (its.thread.joinable()) return;
        its.thread = std::thread([&its] {
          use(its.context);
          its.code = cuMemFree(its.block);
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it gets as far as it can
      },
      &again);
  const CUresult code = cuMemFree(again.block);
  weir_standin_set_interrupt(nullptr, nullptr, nullptr);
  ASSERT_TRUE(again.thread.joinable());
  again.thread.join();
  EXPECT_NE(code == CUDA_SUCCESS, again.code == CUDA_SUCCESS);
  std::vector<CUdeviceptr> live(4);
  for (CUdeviceptr& each : live) each = allocate(kBytes);
  end_capture();
  EXPECT_EQ(statistics().allocated.current, Bytes{4 * kBytes}) << "a neighbour was freed";
  for (const CUdeviceptr each : live) free(each);
}

TEST_F(FreeBehindPeers, WhileOneIsCapturedAgainAndAgainLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(start_captured());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 40; ++i) free(allocate(kBytes));
    end_capture();
    use(second_);
    ASSERT_NO_FATAL_FAILURE(capture());
    use(first_);
  }
  free(allocate(kBytes));
  end_capture();
  settle();
  EXPECT_EQ(statistics().allocated.current, Bytes{});
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

}  // namespace
}  // namespace weir::preload::testing
