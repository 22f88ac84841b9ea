// Memory of one context and work of others: whatever stream orders a free, the block is reused only
// behind the enqueued work, also while those contexts are captured, end, or are queried by several
// threads.

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
    begin_capture(captured_, CU_STREAM_CAPTURE_MODE_RELAXED);
    use(first_);
    ASSERT_EQ(cuCtxEnablePeerAccess(second_, 0), CUDA_SUCCESS);
  }
  void end_captured() const {
    use(second_);
    end_capture(captured_);
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
  end_captured();
  EXPECT_FALSE(is_handed_out(block, kBytes)) << "the other device goes on to use it";
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
  EXPECT_EQ(weir_standin_late_uses(), 0U);
}

TEST_F(FreeBehindPeers, OfTwoThreadsWhileOneIsCapturedSucceedsOnce) {
  ASSERT_NO_FATAL_FAILURE(start_captured());
  const CUdeviceptr block = allocate(kBytes);
  CUresult again = CUDA_SUCCESS;
  // Between the check whether the other context is captured and its consequence.
  Meanwhile other("cuThreadExchangeStreamCaptureMode", 1, [&] {
    use(first_);
    again = cuMemFree(block);
  });
  const CUresult code = cuMemFree(block);
  EXPECT_TRUE(other.has_begun());
  other.end();
  EXPECT_NE(code == CUDA_SUCCESS, again == CUDA_SUCCESS);
  std::vector<CUdeviceptr> live(4);
  for (CUdeviceptr& each : live) each = allocate(kBytes);
  end_captured();
  EXPECT_EQ(statistics().allocated.current, Bytes{4 * kBytes}) << "a neighbour was freed";
  for (const CUdeviceptr each : live) free(each);
}

TEST_F(FreeBehindPeers, WhileOneIsCapturedAgainAndAgainLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(start_captured());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 40; ++i) free(allocate(kBytes));
    end_captured();
    use(second_);
    begin_capture(captured_, CU_STREAM_CAPTURE_MODE_RELAXED);
    use(first_);
  }
  free(allocate(kBytes));
  end_captured();
  settle();
  EXPECT_EQ(statistics().allocated.current, Bytes{});
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

TEST_F(FreeBehindPeers, BreaksNoCaptureInAContextThatIsMetMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_DEVICES", "2"}}));
  first_ = current();
  std::atomic<int> pairs{0};
  std::atomic<bool> ended{false};
  std::thread busy([&] {
    use(first_);
    for (; !ended; ++pairs) free(allocate(kBytes));
  });
  const auto await_pairs = [&] { wait_until([&, until = pairs + 64] { return pairs >= until; }); };
  await_pairs();
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  begin_capture(CU_STREAM_PER_THREAD);
  await_pairs();
  end_capture(CU_STREAM_PER_THREAD);
  ended = true;
  busy.join();
}

class StreamsElsewhere : public Inside {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start(
        {{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "50ms"}, {"WEIR_STANDIN_DEVICES", "2"}}));
    for (int device : {1, 0}) {
      ASSERT_NO_FATAL_FAILURE(use_device(device));
      contexts_[device] = current();
      streams_[device] = make_stream();
    }
  }
  void allow_peer(int context) const {
    use(contexts_[context]);
    ASSERT_EQ(cuCtxEnablePeerAccess(contexts_[1 - context], 0), CUDA_SUCCESS);
  }
  /// A block of the second context, which is current, that late work of the first writes to.
  [[nodiscard]] CUdeviceptr block_in_late_use() const {
    use(contexts_[1]);
    const CUdeviceptr block = allocate(kLarge);
    use(contexts_[0]);
    keep_busy(streams_[0], block);
    use(contexts_[1]);
    return block;
  }
  void expect_free_waits(CUdeviceptr block) const {
    free(block);
    expect_in_use(block);
  }
  void expect_in_use(CUdeviceptr block) const {
    use(contexts_[1]);
    EXPECT_NE(allocate(kLarge), block);
    release_all();
    // First what the second context waits for, on a stream of the library's.
    for (const CUcontext context : contexts_) {
      use(context);
      ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    EXPECT_EQ(allocate(kLarge), block);
  }

  CUcontext contexts_[2] = {};
  CUstream streams_[2] = {};
};

TEST_F(StreamsElsewhere, AFreeWaitsForPeersThatMayUseTheMemory) {
  allow_peer(0);
  expect_free_waits(block_in_late_use());
}

TEST_F(StreamsElsewhere, AFreeInAPeerLeavesWhatThisOneWaitsFor) {
  allow_peer(1);
  allow_peer(0);
  const CUdeviceptr of_peer = allocate(kLarge);
  const CUdeviceptr block = block_in_late_use();
  free(block);
  use(contexts_[0]);
  free(of_peer);
  expect_in_use(block);
}

TEST_F(StreamsElsewhere, AFreeWaitsForAStreamOfAPeerThatIsGone) {
  allow_peer(0);
  const CUdeviceptr block = block_in_late_use();
  hold(weir_standin_all_streams());  // a destroyed one has no handle to release it by
  weir_standin_release(streams_[0]);
  ASSERT_EQ(cuStreamDestroy(streams_[0]), CUDA_SUCCESS);
  expect_free_waits(block);
}

TEST_F(StreamsElsewhere, MemoryInTheOrderOfAStreamIsOfThatStreamsDevice) {
  (void)allocate(kLarge, streams_[1]);
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_used(1), kLarge);
}

TEST_F(StreamsElsewhere, CopiesOnAnotherDevicesStreamDoNotStopTheFencesOfThisOne) {
  const CUdeviceptr block = allocate(kBytes);
  hold(streams_[1]);
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(cuMemsetD8Async(block, 1, 16, streams_[1]), CUDA_SUCCESS);
  }
  for (int i = 0; i < 2; ++i) free(allocate(48 * kMib));
}

}  // namespace
}  // namespace weir::preload::testing
