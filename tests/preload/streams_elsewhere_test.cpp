// Memory of one context and work of another: whatever stream orders a free, the block is reused
// only behind the enqueued work. The hooks are linked in, so a driver call here is one of a program
// under Weir. Each test is a separate process.

#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/standin/standin.hpp"
#include "tests/support/refused.hpp"

namespace weir::preload {
namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20U;

class StreamsElsewhere : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("WEIR_BUDGET", "64MiB", 1);
    setenv("WEIR_MAX_WAIT", "50ms", 1);
    weir_standin_set_devices(2);
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    for (int i = 0; i < 2; ++i) {
      const auto at = static_cast<std::size_t>(i);
      ASSERT_EQ(cuDevicePrimaryCtxRetain(&contexts_.at(at), i), CUDA_SUCCESS);
      use(at);
      ASSERT_EQ(cuStreamCreate(&streams_.at(at), CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
  }
  void TearDown() override {
    for (const CUstream stream : streams_) weir_standin_release(stream);
  }

  void use(std::size_t context) { ASSERT_EQ(cuCtxSetCurrent(contexts_.at(context)), CUDA_SUCCESS); }

  /// A block of `context` that late work of the other one writes to.
  CUdeviceptr block_in_late_use(std::size_t context) {
    CUdeviceptr pointer = 0;
    use(context);
    EXPECT_EQ(cuMemAlloc(&pointer, kBytes), CUDA_SUCCESS);
    use(1 - context);
    weir_standin_hold(streams_.at(1 - context));
    EXPECT_EQ(cuMemsetD8Async(pointer, 7, kBytes, streams_.at(1 - context)), CUDA_SUCCESS);
    return pointer;
  }

  /// The context's next block of the same size.
  CUdeviceptr next_of(std::size_t context) {
    CUdeviceptr pointer = 0;
    use(context);
    EXPECT_EQ(cuMemAlloc(&pointer, kBytes), CUDA_SUCCESS);
    return pointer;
  }

  /// First what the second context waits for, on a stream of the library's.
  void synchronize() {
    for (const std::size_t context : {0U, 1U}) {
      use(context);
      ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
  }

  std::array<CUcontext, 2> contexts_{};
  std::array<CUstream, 2> streams_{};
};

TEST_F(StreamsElsewhere, AFreeInTheOrderOfAnotherContextsStreamWaitsForThatStream) {
  const CUdeviceptr pointer = block_in_late_use(1);
  ASSERT_EQ(cuMemFreeAsync(pointer, streams_.at(0)), CUDA_SUCCESS);
  EXPECT_NE(next_of(1), pointer);
  weir_standin_release(streams_.at(0));
  synchronize();
  EXPECT_EQ(next_of(1), pointer);
}

TEST_F(StreamsElsewhere, AFreeWaitsForPeersThatMayUseTheMemory) {
  use(0);
  ASSERT_EQ(cuCtxEnablePeerAccess(contexts_.at(1), 0), CUDA_SUCCESS);
  const CUdeviceptr pointer = block_in_late_use(1);
  use(1);
  ASSERT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  EXPECT_NE(next_of(1), pointer);
  weir_standin_release(streams_.at(0));
  synchronize();
  EXPECT_EQ(next_of(1), pointer);
}

TEST_F(StreamsElsewhere, AFreeInAPeerLeavesWhatThisOneWaitsFor) {
  for (const std::size_t context : {0U, 1U}) {
    use(context);
    ASSERT_EQ(cuCtxEnablePeerAccess(contexts_.at(1 - context), 0), CUDA_SUCCESS);
  }
  const CUdeviceptr pointer = block_in_late_use(1);
  use(0);
  CUdeviceptr of_peer = 0;
  ASSERT_EQ(cuMemAlloc(&of_peer, kBytes), CUDA_SUCCESS);
  use(1);
  ASSERT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  use(0);
  ASSERT_EQ(cuMemFree(of_peer), CUDA_SUCCESS);
  EXPECT_NE(next_of(1), pointer);
  weir_standin_release(streams_.at(0));
  synchronize();
  EXPECT_EQ(next_of(1), pointer);
}

TEST_F(StreamsElsewhere, AFreeWaitsForAStreamOfAPeerThatIsGone) {
  use(0);
  ASSERT_EQ(cuCtxEnablePeerAccess(contexts_.at(1), 0), CUDA_SUCCESS);
  const CUdeviceptr pointer = block_in_late_use(1);
  weir_standin_hold(weir_standin_all_streams());  // a destroyed one has no handle to release it by
  weir_standin_release(streams_.at(0));
  ASSERT_EQ(cuStreamDestroy(streams_.at(0)), CUDA_SUCCESS);
  use(1);
  ASSERT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  EXPECT_NE(next_of(1), pointer);
  weir_standin_release(weir_standin_all_streams());
  streams_.at(0) = nullptr;
  synchronize();
  EXPECT_EQ(next_of(1), pointer);
}

TEST_F(StreamsElsewhere, MemoryInTheOrderOfAStreamIsOfThatStreamsDevice) {
  use(0);
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuMemAllocAsync(&pointer, kBytes, streams_.at(1)), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_used(1), kBytes);
}

TEST_F(StreamsElsewhere, CopiesOnAnotherDevicesStreamDoNotStopTheFencesOfThisOne) {
  use(0);
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuMemAlloc(&pointer, kBytes), CUDA_SUCCESS);
  weir_standin_hold(streams_.at(1));
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(cuMemsetD8Async(pointer, 1, 16, streams_.at(1)), CUDA_SUCCESS);
  }
  CUdeviceptr other = 0;
  ASSERT_EQ(cuMemAlloc(&other, 12 * kBytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(other), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&other, 12 * kBytes), CUDA_SUCCESS);
}

TEST_F(StreamsElsewhere, AStreamThatGoesDuringItsCaptureIsWaitedForAllTheSame) {
  use(0);
  const CUstream stream = streams_.at(0);
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuMemAllocAsync(&pointer, kBytes, stream), CUDA_SUCCESS);
  weir_standin_delay(stream, 20'000'000);
  ASSERT_EQ(cuMemsetD8Async(pointer, 7, kBytes, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  CUdeviceptr next = 0;
  ASSERT_EQ(cuMemAlloc(&next, kBytes), CUDA_SUCCESS);
  // The stand-in breaks the context of a copy or set that reaches another block's memory.
  ASSERT_EQ(cuMemFree(next), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  streams_.at(0) = nullptr;
}

TEST_F(StreamsElsewhere, ACaptureThatIsBegunTwiceStaysUnbroken) {
  weir::testing::expect_refused("cuStreamBeginCapture", CUDA_ERROR_ILLEGAL_STATE);
  use(0);
  const CUstream stream = streams_.at(0);
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuMemAlloc(&pointer, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_NE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
}

TEST_F(StreamsElsewhere, AGlobalCaptureInOneContextIsNotBrokenByFreesInAnother) {
  CUdeviceptr pointer = 0;
  use(0);
  ASSERT_EQ(cuMemAlloc(&pointer, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  use(1);
  ASSERT_EQ(cuStreamBeginCapture(streams_.at(1), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  std::thread([&] {
    use(0);
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(cuMemAlloc(&pointer, kBytes), CUDA_SUCCESS);
      EXPECT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
    }
  }).join();
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(streams_.at(1), &graph), CUDA_SUCCESS);
}

TEST(ContextMetLater, IsKnownBeforeACaptureBeginsInIt) {
  setenv("WEIR_BUDGET", "64MiB", 1);
  weir_standin_set_devices(2);
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  std::array<CUcontext, 2> contexts{};
  ASSERT_EQ(cuDevicePrimaryCtxRetain(contexts.data(), 0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&contexts.at(1), 1), CUDA_SUCCESS);
  std::atomic<int> pairs{0};
  std::atomic<bool> ended{false};
  std::thread busy([&] {
    EXPECT_EQ(cuCtxSetCurrent(contexts.front()), CUDA_SUCCESS);
    while (!ended) {
      CUdeviceptr pointer = 0;
      EXPECT_EQ(cuMemAlloc(&pointer, kBytes), CUDA_SUCCESS);
      EXPECT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
      ++pairs;
    }
  });
  const auto await_pairs = [&] {
    for (const int until = pairs + 64; pairs < until;) std::this_thread::yield();
  };
  await_pairs();
  EXPECT_EQ(cuCtxSetCurrent(contexts.at(1)), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_SUCCESS);
  await_pairs();
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph), CUDA_SUCCESS);
  ended = true;
  busy.join();
}

TEST_F(StreamsElsewhere, ABudgetLargerThanADeviceIsAllOfThatDevice) {
  weir_standin_set_memory(8 * kBytes);
  std::size_t total = 0;
  ASSERT_EQ(cuDeviceTotalMem(&total, 1), CUDA_SUCCESS);
  EXPECT_EQ(total, 8 * kBytes);
}

TEST(SwapInLog, IsWritten) {
  std::string path = "/tmp/weir-swap-in-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  setenv("WEIR_ALLOC_LOG", path.c_str(), 1);
  CUcontext context = nullptr;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc(&pointer, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  struct stat written {};  // by its name: the log replaces the old file
  EXPECT_EQ(stat(path.c_str(), &written), 0);
  EXPECT_GT(written.st_size, 0);
  close(file);
  unlink(path.c_str());
}

}  // namespace
}  // namespace weir::preload
